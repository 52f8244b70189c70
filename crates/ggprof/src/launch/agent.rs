//! Finds the library that is loaded into the program.

use super::program;
use anyhow::bail;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) const FILE: &str = "libggprof_agent.so";

/// The agent beside the command, where the build puts it, or where an installation does.
/// `GGPROF_AGENT` names another.
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("GGPROF_AGENT") {
        let path = PathBuf::from(path);
        if !path.is_file() {
            bail!("GGPROF_AGENT names {}, which is not a file. Unset it.", path.display());
        }
        return loadable(std::path::absolute(path)?);
    }
    let command = own_path();
    let directory = command.parent().unwrap_or(Path::new("."));
    let places = [directory.join(FILE), directory.join("../lib/ggprof").join(FILE)];
    match places.iter().find(|path| path.is_file()) {
        Some(path) => loadable(path.canonicalize()?),
        None => bail!(
            "the recording agent {FILE} is not installed, so nothing can be recorded. Install it \
             with `cargo xtask install`, or name it with GGPROF_AGENT."
        ),
    }
}

/// This command's file: as the system knows it, or, without /proc, as we were called.
fn own_path() -> PathBuf {
    let called = || std::env::args_os().next().and_then(|name| program::find(&name));
    let path = std::env::current_exe().ok().or_else(called).unwrap_or_default();
    path.canonicalize().unwrap_or(path)
}

/// `LD_PRELOAD` takes a list, so a path in it can hold none of what separates the list.
fn loadable(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.as_os_str().as_bytes().iter().any(|&byte| byte == b':' || byte.is_ascii_whitespace()) {
        bail!(
            "the recording agent is at {}, and the dynamic linker does not accept paths with a space \
             or colon. Install ggprof somewhere else.",
            path.display()
        );
    }
    Ok(path)
}
