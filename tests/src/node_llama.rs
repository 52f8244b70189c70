//! node-llama-cpp: a real application on published llama.cpp libraries, installed once into
//! the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::npm;

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
    let package = |name: &str| format!("{name}@{version}");
    let packages = [package("node-llama-cpp"), package("@node-llama-cpp/linux-x64")];
    let name = format!("node-llama-cpp/{version}");
    let directory = npm::installed(&name, &packages.each_ref().map(String::as_str))?;
    // Node.js looks for packages beside the script.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/generate.mjs");
    std::fs::copy(source, directory.join("generate.mjs")).map_err(|error| error.to_string())?;
    Ok(directory)
}
