//! What the tests run: the agent and the workload, built as users get them, and
//! the small host programs.

use crate::tool;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the tests are built for, as Rust calls it.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The workspace's target directory.
pub fn target_directory() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => workspace.join(directory),
        None => workspace.join("target"),
    }
}

/// The agent that was just built, or the one that `GGPROF_TEST_AGENT` names: as it is handed out.
pub fn agent() -> PathBuf {
    let named = std::env::var_os("GGPROF_TEST_AGENT").map(PathBuf::from);
    named.unwrap_or_else(|| directory().join("libggprof_agent.so"))
}

/// The agent with its checks, and with steps that can be made to fail: not as users get it.
pub fn checked_agent() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let arguments = ["build", "--quiet", "--profile", "checked", "-p", "ggprof-agent"];
        cargo(&[&arguments[..], &["--features", "inject-faults"]].concat(), &[]);
        let built = target_directory().join("checked/libggprof_agent.so");
        built.canonicalize().expect("cargo made it")
    };
    BUILT.get_or_init(build).clone()
}

/// The command; it finds the agent beside itself.
pub fn ggprof() -> PathBuf {
    directory().join("ggprof")
}

/// The command with the agent inside, in a directory where there is nothing else.
pub fn one_file() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| carrying("one-file", &[(TARGET, agent())])).clone()
}

/// The command with these agents inside, each with its target. Not optimised: an optimised one takes
/// minutes to build, and differs in nothing that is tested with it.
pub(crate) fn carrying(name: &str, agents: &[(&str, PathBuf)]) -> PathBuf {
    let directory = target_directory().join(name);
    std::fs::create_dir_all(directory.join("bin")).expect("the target directory can be written");
    let directory = directory.canonicalize().expect("it was just made");
    let stripped = agents.iter().map(|(target, agent)| {
        let file = directory.join(target);
        let mut strip = Command::new("strip");
        tool::output(strip.arg(agent).arg("-o").arg(&file)).expect("it can be stripped");
        format!("{target}={}", file.display())
    });
    let named = stripped.collect::<Vec<_>>().join(":");
    cargo(&["build", "--quiet", "-p", "ggprof"], &[("GGPROF_AGENTS", &named)]);
    let fresh = directory.join(format!("ggprof.{}", std::process::id()));
    std::fs::copy(target_directory().join("debug/ggprof"), &fresh).expect("it was built");
    let command = directory.join("bin/ggprof");
    std::fs::rename(fresh, &command).expect("it can be placed");
    command
}

pub fn workload() -> PathBuf {
    directory().join("ggprof-workload")
}

/// A script of `applications/`.
pub fn application(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("applications").join(name)
}

/// A program of `host-programs/`, compiled; its name with extension.
pub fn host_program(source: &str) -> PathBuf {
    let compiler = if source.ends_with(".cpp") { "g++" } else { "gcc" };
    compile(source, "program", compiler, &["-Wall", "-Werror", "-ldl", "-lpthread"])
        .unwrap_or_else(|problem| panic!("{source} does not compile: {problem}"))
}

/// A library of `host-programs/`, for programs that others preload it into.
pub fn host_library(source: &str) -> PathBuf {
    compile(source, "so", "gcc", &["-Wall", "-Werror", "-shared", "-fPIC", "-ldl"])
        .unwrap_or_else(|problem| panic!("{source} does not compile: {problem}"))
}

/// A program of `host-programs/` that links libraries; `kind` tells its variants apart.
pub fn linked_program(source: &str, kind: &str, flags: &[&str]) -> PathBuf {
    compile(source, kind, "gcc", flags)
        .unwrap_or_else(|problem| panic!("{source} does not compile: {problem}"))
}

/// The directory of libggml-profiler, under the name that it is installed as.
pub fn profiler_library() -> PathBuf {
    static PLACED: OnceLock<PathBuf> = OnceLock::new();
    let place = || {
        let built = directory().join("libggml_profiler.so");
        let directory = target_directory().join("profiler-library");
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        let fresh = directory.join(format!("{}", std::process::id()));
        std::fs::copy(built, &fresh).expect("it was built");
        std::fs::rename(&fresh, directory.join("libggml-profiler.so")).expect("it can be placed");
        directory.canonicalize().expect("it was just made")
    };
    PLACED.get_or_init(place).clone()
}

/// The directory of its header.
pub fn profiler_header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ggml-profiler/include")
}

/// A program of `host-programs/` for another kind of system than ours; `None`, with a
/// sentence, where no compiler makes such programs.
pub fn foreign_program(
    source: &str,
    kind: &str,
    compiler: &str,
    flags: &[&str],
) -> Option<PathBuf> {
    let compiled = compile(source, kind, compiler, flags);
    compiled.inspect_err(|problem| eprintln!("not tested: {problem}")).ok()
}

/// Compiles with these flags behind the source.
pub(crate) fn compile(
    source: &str,
    kind: &str,
    compiler: &str,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("host-programs");
    let directory = target_directory().join("host-programs");
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    let program = directory.join(format!("{}.{kind}", source.replace('.', "_")));
    // Tests run side by side: each compiles to a name of its own, then renames.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let fresh = program.with_extension(format!("{kind}-{}-{number}", std::process::id()));
    let output = Command::new(compiler)
        .args(["-O1", "-g", "-o"])
        .arg(&fresh)
        .arg(sources.join(source))
        .args(flags)
        .output()
        .map_err(|problem| format!("{compiler}: {problem}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    std::fs::rename(&fresh, &program).expect("the program can be put in place");
    Ok(program)
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
            ("cuda.c", "libcuda.so.1", None),
            ("backend.c", "libggml-fake.so", Some("-DKNOWS_CHUNKS")),
            ("backend.c", "libggml-fake-older.so", None),
            ("cupti.c", "libcupti.so.13", None),
        ];
        for (source, library, option) in libraries {
            let status = Command::new("gcc")
                .args(option)
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

/// A directory with all that is run: the agent as users get it, and, with their checks, the command
/// beside it, the workload and the C library. Filled once per test program.
fn directory() -> &'static Path {
    static FILLED: OnceLock<PathBuf> = OnceLock::new();
    FILLED.get_or_init(|| {
        let agent = ["rustc", "--quiet", "--release", "-p", "ggprof-agent", "--lib"];
        cargo(&[&agent[..], &["--crate-type", "cdylib"]].concat(), &[]);
        let others = ["-p", "ggprof-workload", "-p", "ggprof", "-p", "ggml-profiler"];
        let checked = ["build", "--quiet", "--profile", "checked", "--no-default-features"];
        cargo(&[&checked[..], &others].concat(), &[]);
        let directory = target_directory().join("tried");
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        let directory = directory.canonicalize().expect("it was just made");
        place("release", "libggprof_agent.so", &directory);
        for file in ["ggprof", "ggprof-workload", "libggml_profiler.so"] {
            place("checked", file, &directory);
        }
        directory
    })
}

/// A file that cargo built, at its place in `directory`, never half.
fn place(profile: &str, file: &str, directory: &Path) {
    let built = target_directory().join(profile).join(file);
    let fresh = directory.join(format!("{file}.{}", std::process::id()));
    std::fs::hard_link(built, &fresh).expect("it was built");
    std::fs::rename(&fresh, directory.join(file)).expect("it can be placed");
    // Renaming does nothing where the two are already the same file.
    _ = std::fs::remove_file(fresh);
}

fn cargo(arguments: &[&str], variables: &[(&str, &str)]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo.envs(variables.iter().copied());
    assert!(cargo.status().expect("cargo runs").success(), "cargo {arguments:?} fails");
}
