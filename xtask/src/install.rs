//! `cargo xtask install`: installs the command, which carries its agent, with its manual pages and
//! completions, and the library for programs that profile themselves where compilers find it.

use crate::dist::contents::Contents;
use crate::shell;
use anyhow::Context;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = match arguments {
        [] => home()?.join(".local"),
        [flag, root] if flag == "--root" => std::path::absolute(root)?,
        _ => return Err(crate::misused("install")),
    };
    shell::cargo(&["build", "--release", "--package", "ggprof", "--package", "ggml-profiler"])?;
    let release = shell::target().join("release");
    let library = release.join("libggml_profiler.so");
    for entry in Contents::gather(&release.join("ggprof"), &library)?.installation() {
        put(&entry.bytes, entry.mode(), &root.join(&entry.path))?;
    }
    println!(
        "Installed {}, and {} with its header.",
        root.join("bin/ggprof").display(),
        root.join("lib/libggml-profiler.so").display()
    );
    Ok(())
}

fn home() -> anyhow::Result<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set; use --root DIRECTORY")
}

/// Writes beside the target and renames: a file that is in use is replaced, not rewritten.
fn put(bytes: &[u8], mode: u32, to: &Path) -> anyhow::Result<()> {
    let directory = to.parent().context("a directory to install to")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot make {directory:?}"))?;
    let part = to.with_extension("part");
    fs::write(&part, bytes).with_context(|| format!("cannot write {part:?}"))?;
    fs::set_permissions(&part, Permissions::from_mode(mode))?;
    fs::rename(&part, to).with_context(|| format!("cannot write {to:?}"))
}
