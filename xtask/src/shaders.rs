//! `cargo xtask shaders`: makes the shaders that measure Vulkan devices from their sources.

use crate::shell;
use anyhow::{Context, bail};
use std::fs;
use std::process::Command;

const FOLDER: &str = "crates/ggprof-peaks/src/vulkan/shaders";
/// Shaders that need more than the oldest Vulkan that ggml runs on.
const NEWER: [&str; 2] = ["dot", "matrices"];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if !arguments.is_empty() {
        return Err(crate::misused("shaders"));
    }
    let folder = shell::root().join(FOLDER);
    for entry in fs::read_dir(&folder)? {
        let source = entry?.path();
        if source.extension().is_none_or(|extension| extension != "comp") {
            continue;
        }
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        let target = if NEWER.contains(&&*name) { "vulkan1.3" } else { "vulkan1.1" };
        let mut compile = Command::new("glslang");
        compile.args(["--quiet", "-g0", "--target-env", target, "-o"]);
        compile.arg(source.with_extension("spv")).arg(&source);
        let status = compile.status().context(
            "glslang cannot be started; install version 14 or newer (glslang-tools of Debian 13)",
        )?;
        if !status.success() {
            bail!("{} was not compiled", source.display());
        }
    }
    Ok(())
}
