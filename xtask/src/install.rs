//! `cargo xtask install`: installs the command and its agent where they find each other, and the
//! library for programs that profile themselves where compilers find it.

use crate::shell;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = match arguments {
        [] => home()?.join(".local"),
        [flag, root] if flag == "--root" => std::path::absolute(root)?,
        _ => bail!("cargo xtask install [--root DIRECTORY], by default ~/.local"),
    };
    let command = shell::build_ggprof()?;
    put(&command, &root.join("bin/ggprof"))?;
    let agent = "libggprof_agent.so";
    put(&command.with_file_name(agent), &root.join("lib/ggprof").join(agent))?;
    shell::cargo(&["build", "--release", "--package", "ggml-profiler"])?;
    let library = command.with_file_name("libggml_profiler.so");
    put(&library, &root.join("lib/libggml-profiler.so"))?;
    let header = shell::root().join("crates/ggml-profiler/include/ggml-profiler.h");
    put(&header, &root.join("include/ggml-profiler.h"))?;
    println!(
        "Installed {}, its agent, and {} with its header.",
        root.join("bin/ggprof").display(),
        root.join("lib/libggml-profiler.so").display()
    );
    Ok(())
}

fn home() -> anyhow::Result<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set; use --root DIRECTORY")
}

/// Copies beside the target and renames: an agent that is in use is replaced, not rewritten.
fn put(from: &Path, to: &Path) -> anyhow::Result<()> {
    let directory = to.parent().context("a directory to install to")?;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {directory:?}"))?;
    let part = to.with_extension("part");
    std::fs::copy(from, &part).with_context(|| format!("cannot write {part:?}"))?;
    std::fs::rename(&part, to).with_context(|| format!("cannot write {to:?}"))
}
