//! ggml as its users have it: the libraries node-llama-cpp publishes on npm,
//! fetched once into the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;

/// December 2024, December 2025, and the newest when this was written.
pub const VERSIONS: [&str; 3] = ["3.3.2", "3.14.5", "3.22.1"];
pub const NEWEST: &str = VERSIONS[2];

static FETCHING: Mutex<()> = Mutex::new(());

/// The directory of a version's libraries; `None`, with a sentence, when they
/// cannot be had.
pub fn libraries(version: &str) -> Option<PathBuf> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join("ggml").join(version);
    let libraries = directory.join("package/bins/linux-x64");
    if !libraries.is_dir()
        && let Err(problem) = fetch(version, &directory)
    {
        assert!(
            std::env::var_os("GGPROF_REQUIRE_GGML").is_none(),
            "ggml {version} cannot be fetched: {problem}"
        );
        eprintln!("not tested: ggml {version} cannot be fetched: {problem}");
        return None;
    }
    libraries.canonicalize().ok()
}

fn fetch(version: &str, directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|e| e.to_string())?;
    let package = format!("@node-llama-cpp/linux-x64@{version}");
    run(Command::new("npm").args(["pack", "--silent", &package]).current_dir(directory))?;
    let archive = format!("node-llama-cpp-linux-x64-{version}.tgz");
    run(Command::new("tar").args(["xzf", &archive]).current_dir(directory))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
