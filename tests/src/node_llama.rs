//! node-llama-cpp: a real application on published llama.cpp libraries, installed once into
//! the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;

static INSTALLING: Mutex<()> = Mutex::new(());

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct Generation<'a> {
    /// Of the application and its libraries.
    pub version: &'a str,
    pub model: &'a Path,
    pub tokens: u32,
    pub threads: usize,
}

impl Generation<'_> {
    /// The command that does it, on the CPU.
    pub fn command(&self) -> Result<Command, String> {
        let mut command = Command::new("node");
        command.arg(install(self.version)?.join("generate.mjs")).arg(self.model);
        command.args([self.tokens.to_string(), self.threads.to_string()]);
        Ok(command)
    }
}

/// Installs the application without its optional packages, which are 600 MB of CUDA.
fn install(version: &str) -> Result<PathBuf, String> {
    let _one_at_a_time = INSTALLING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join("node-llama-cpp").join(version);
    let script = directory.join("generate.mjs");
    if !directory.join("node_modules/node-llama-cpp/package.json").is_file() {
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let package = |name: &str| format!("{name}@{version}");
        let output = Command::new("npm")
            .args(["install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--no-save", "--prefix", "."])
            .args([package("node-llama-cpp"), package("@node-llama-cpp/linux-x64")])
            .current_dir(&directory)
            .output()
            .map_err(|error| format!("npm cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/generate.mjs");
    std::fs::copy(source, &script).map_err(|error| error.to_string())?;
    directory.canonicalize().map_err(|error| error.to_string())
}
