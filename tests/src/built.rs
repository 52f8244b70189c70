//! What the tests run: the agent and the workload, built as users get them, and
//! the small host programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The workspace's target directory.
pub fn target_directory() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => workspace.join(directory),
        None => workspace.join("target"),
    }
}

pub fn agent() -> PathBuf {
    release_directory().join("libggprof_agent.so")
}

/// The command; it finds the agent beside itself.
pub fn ggprof() -> PathBuf {
    release_directory().join("ggprof")
}

pub fn workload() -> PathBuf {
    release_directory().join("ggprof-workload")
}

/// A program of `host-programs/`, compiled; its name with extension.
pub fn host_program(source: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("host-programs");
    let directory = target_directory().join("host-programs");
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    let program = directory.join(source.replace('.', "_"));
    let compiler = if source.ends_with(".cpp") { "g++" } else { "gcc" };
    // Tests run side by side: each compiles to a name of its own, then renames.
    let fresh = program.with_extension(format!("{}", std::process::id()));
    let status = Command::new(compiler)
        .args(["-O1", "-g", "-Wall", "-Werror", "-o"])
        .arg(&fresh)
        .arg(sources.join(source))
        .args(["-ldl", "-lpthread"])
        .status()
        .expect("a C compiler is installed");
    assert!(status.success(), "{source} does not compile");
    std::fs::rename(&fresh, &program).expect("the program can be put in place");
    program
}

/// The libraries of the fake CUDA device (`fake-cuda/`), compiled: driver and runtime, the
/// backend, and the tracing library, whose path is given as well.
pub fn fake_cuda() -> (PathBuf, PathBuf) {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let directory = BUILT.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-cuda");
        let name = format!("fake-cuda-{}", std::process::id());
        let directory = target_directory().join("host-programs").join(name);
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        let libraries = [
            ("cuda.c", "libcuda.so.1"),
            ("backend.c", "libggml-fake.so"),
            ("cupti.c", "libcupti.so.13"),
        ];
        for (source, library) in libraries {
            let status = Command::new("gcc")
                .args(["-O1", "-g", "-Wall", "-Werror", "-fPIC", "-shared", "-o"])
                .arg(directory.join(library))
                .arg(sources.join(source))
                .arg(format!("-Wl,-soname,{library},-rpath,$ORIGIN"))
                .args((source != "cuda.c").then(|| directory.join("libcuda.so.1")))
                .status()
                .expect("a C compiler is installed");
            assert!(status.success(), "{source} does not compile");
        }
        directory.canonicalize().expect("it was just made")
    });
    (directory.clone(), directory.join("libcupti.so.13"))
}

/// Release builds: what is measured and shipped. Built once per test program.
fn release_directory() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "ggprof-agent", "-p", "ggprof-workload"])
            .args(["-p", "ggprof"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the agent does not build");
        target_directory().join("release").canonicalize().expect("cargo made the directory")
    })
}
