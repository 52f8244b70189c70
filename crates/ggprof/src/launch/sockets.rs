//! Where the sockets are through which running recordings are controlled: in a directory that
//! only the user can open.

use anyhow::{Context, bail};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory for a new socket, made if need be.
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    let [first, ..] = &places()[..] else { bail!("there is no place for a socket") };
    if !first.exists() {
        let made = DirBuilder::new().mode(0o700).create(first);
        made.with_context(|| format!("{} cannot be made", first.display()))?;
    }
    if !is_private(first) {
        bail!("{} is open to others", first.display());
    }
    Ok(first.clone())
}

/// The sockets of all launchers of the user.
pub(crate) fn all() -> Vec<PathBuf> {
    let private = places().into_iter().filter(|place| is_private(place));
    let entries = private.filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    sockets.sort();
    sockets
}

/// The user's runtime directory, and one in /tmp for sessions that have none.
fn places() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|place| place.is_dir()).map(|place| place.join("ggprof"));
    runtime.into_iter().chain([PathBuf::from(format!("/tmp/ggprof-{user}"))]).collect()
}

/// A directory of the user's that nobody else can look into, and no link to one.
fn is_private(place: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(place).is_ok_and(|found| {
        found.is_dir() && found.uid() == user && found.permissions().mode() & 0o077 == 0
    })
}
