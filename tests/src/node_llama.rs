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
    /// Layers on a Vulkan device; `None` computes on the CPU without one.
    pub vulkan_layers: Option<u32>,
}

impl Generation<'_> {
    /// The command that does it.
    pub fn command(&self) -> Result<Command, String> {
        let libraries = self.vulkan_layers.map_or("linux-x64", |_| "linux-x64-vulkan");
        let mut command = Command::new("node");
        let script = install(self.version, libraries)?.join("generate.mjs");
        command.arg(script).arg(self.model);
        command.args([self.tokens.to_string(), self.threads.to_string()]);
        command.args(self.vulkan_layers.map(|layers| layers.to_string()));
        Ok(command)
    }
}

/// Installs the application without its optional packages, which are 600 MB of CUDA.
fn install(version: &str, libraries: &str) -> Result<PathBuf, String> {
    let package = |name: &str| format!("{name}@{version}");
    let packages = [package("node-llama-cpp"), package(&format!("@node-llama-cpp/{libraries}"))];
    let kind = libraries.trim_start_matches("linux-x64");
    let name = format!("node-llama-cpp/{version}{kind}");
    let directory = npm::installed(&name, &packages.each_ref().map(String::as_str))?;
    // Node.js looks for packages beside the script.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/generate.mjs");
    std::fs::copy(source, directory.join("generate.mjs")).map_err(|error| error.to_string())?;
    Ok(directory)
}
