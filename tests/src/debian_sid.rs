//! Programs of Debian sid, which packages the newest llama.cpp and whisper.cpp, run by sid's own
//! dynamic loader.
//!
//! ggml looks for its backends in a directory of the system, which is not sid's here, and then
//! beside the running executable, which is the loader. So the loader is copied, under the program's
//! name, into a directory with links to the backends that are wanted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;
use crate::{debian, tool};

/// These and what they depend on.
const PACKAGES: [&str; 7] = [
    "llama.cpp-tools",
    "llama.cpp-tools-extra",
    "libggml0-backend-blas",
    "libggml0-backend-rpc",
    "libggml0-backend-vulkan",
    "libopenblas0-pthread",
    "libwhisper1",
];
/// Without what they depend on, a video player among it: `whisper-bench` does without.
const ALONE: [&str; 2] = ["whisper.cpp-tools", "promtool"];

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
const BACKENDS: &str = "usr/lib/x86_64-linux-gnu/ggml/backends0";
const PROGRAMS: [&str; 3] =
    ["usr/bin", "usr/libexec/x86_64-linux-gnu/llama/bin", "usr/libexec/x86_64-linux-gnu/ggml"];

static FETCHING: Mutex<()> = Mutex::new(());

/// A command that runs a program (`llama-server`, `ggml-rpc-server`, `test-backend-ops`, `promtool`, …) with
/// these backends (`cpu`, or one kind of processor as `cpu-x64`; `blas`, `rpc`, `vulkan`). `None`, with a
/// sentence, where sid cannot be had.
pub fn command(program: &str, backends: &[&str]) -> Option<Command> {
    tool::fetched("Debian sid's ggml", prepared(program, backends))
}

pub(crate) fn prepared(program: &str, backends: &[&str]) -> Result<Command, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let root = root()?;
    let executable = PROGRAMS.iter().map(|place| root.join(place).join(program));
    let executable = executable.into_iter().find(|path| path.is_file());
    let executable = executable.ok_or_else(|| format!("sid's packages have no {program}"))?;
    let directory = target_directory().join("debian-sid").join(backends.join("+"));
    let loader = beside_backends(&root, &directory, program, backends)
        .map_err(|error| format!("{} cannot be prepared: {error}", directory.display()))?;
    let libraries = [root.join(LIBRARIES), root.join(LIBRARIES).join("llama"), directory];
    let mut libraries = libraries.map(|path| path.to_string_lossy().into_owned()).to_vec();
    if backends.contains(&"vulkan") {
        // The driver is this system's.
        libraries.push("/usr/lib/x86_64-linux-gnu".to_owned());
    }
    let mut command = Command::new(loader);
    command.arg("--inhibit-cache").arg("--library-path").arg(libraries.join(":")).arg(executable);
    Ok(command)
}

/// A command that runs a program of this system on sid's C library, with libraries of a folder.
pub fn with_newer_libc(program: &Path, libraries: &Path) -> Result<Command, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let root = root()?;
    let own = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
    let places: Vec<String> = [libraries.to_path_buf(), root.join(LIBRARIES)]
        .iter()
        .chain(&own)
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let mut command = Command::new(root.join(LOADER));
    command.args(["--inhibit-cache", "--library-path"]).arg(places.join(":")).arg(program);
    Ok(command)
}

/// The loader's copy under the program's name, in a directory with the backends and with links to the
/// BLAS that was chosen, as distributions have it.
fn beside_backends(
    root: &Path,
    directory: &Path,
    program: &str,
    backends: &[&str],
) -> std::io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    for library in fs::read_dir(root.join(BACKENDS))? {
        let library = library?;
        let name = library.file_name().to_string_lossy().into_owned();
        let whole = name.trim_start_matches("libggml-").trim_end_matches(".so");
        let kind = whole.split('-').next().unwrap_or_default();
        let link = directory.join(&name);
        if (backends.contains(&kind) || backends.contains(&whole)) && !link.exists() {
            symlink(Path::new("../root").join(BACKENDS).join(&name), link)?;
        }
    }
    let directory = directory.canonicalize()?;
    for name in ["libblas.so.3", "libopenblas.so.0"] {
        let link = directory.join(name);
        if !link.exists() {
            symlink(root.join(LIBRARIES).join("openblas-pthread").join(name), link)?;
        }
    }
    let loader = directory.join(program);
    if !loader.is_file() {
        fs::copy(root.join(LOADER), &loader)?;
    }
    Ok(loader)
}

/// The directory with everything unpacked.
fn root() -> Result<PathBuf, String> {
    debian::unpacked("debian-sid", "sid", &PACKAGES, &ALONE)
}
