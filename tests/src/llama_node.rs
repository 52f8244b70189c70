//! @fugood/llama.node: an application whose llama.cpp is one library built by clang with LTO,
//! installed once into the target directory.

use std::path::Path;
use std::process::Command;

use crate::{built, npm};

pub(crate) const VERSION: &str = "1.7.15";

/// The command that generates so many tokens.
pub fn command(model: &Path, tokens: u32) -> Result<Command, String> {
    let packages = ["@fugood/llama.node", "@fugood/node-llama-linux-x64"];
    let packages = packages.map(|name| format!("{name}@{VERSION}"));
    let directory = npm::installed("llama-node", &packages.each_ref().map(String::as_str))?;
    // Node.js looks for packages beside the script.
    let script = directory.join("llama-node.mjs");
    std::fs::copy(built::application("llama-node.mjs"), &script)
        .map_err(|error| error.to_string())?;
    let mut command = Command::new("node");
    command.arg(script).arg(model).arg(tokens.to_string());
    Ok(command)
}
