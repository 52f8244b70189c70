//! The directory of the sockets that control running recordings; only the user can open it.

use anyhow::{Context, bail};
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const SOCKET: &str = "sock";

/// A launcher, as the name of its socket tells: its number is unique in its PID namespace only,
/// and containers may share the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launcher {
    pub(crate) pid: u32,
    pub(crate) namespace: u64,
}

impl Launcher {
    /// This process.
    pub(crate) fn here() -> Launcher {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
        Launcher { pid: std::process::id(), namespace }
    }

    pub(crate) fn of(socket: &Path) -> Option<Launcher> {
        let mut parts = socket.file_stem()?.to_str()?.split('-');
        Some(Launcher { pid: parts.next()?.parse().ok()?, namespace: parts.next()?.parse().ok()? })
    }
}

/// A new socket of this launcher.
pub(crate) fn listen() -> anyhow::Result<(UnixListener, PathBuf)> {
    let directory = directory()?;
    let Launcher { pid, namespace } = Launcher::here();
    // It gets its name once it listens: one that refuses counts as left behind by a launcher
    // that was killed, and is removed.
    let made = tempfile::Builder::new()
        .prefix(&format!("{pid}-{namespace}-"))
        .suffix(".new")
        .make_in(&directory, |path| UnixListener::bind(path));
    let cannot = || format!("a socket in {} cannot be made", directory.display());
    let (listener, unnamed) = made.with_context(cannot)?.into_parts();
    std::fs::set_permissions(&unnamed, Permissions::from_mode(0o600)).with_context(cannot)?;
    let socket = unnamed.with_extension(SOCKET);
    unnamed.persist(&socket).with_context(cannot)?;
    Ok((listener, socket))
}

/// The directory for a new socket, made if need be.
fn directory() -> anyhow::Result<PathBuf> {
    let [first, ..] = &places()[..] else { bail!("there is no directory for a socket") };
    if std::fs::symlink_metadata(first).is_err() {
        let made = DirBuilder::new().mode(0o700).create(first);
        made.with_context(|| format!("cannot create {}", first.display()))?;
    }
    if !is_private(first) {
        bail!("{} is not a directory that only you can open", first.display());
    }
    Ok(first.clone())
}

/// The sockets of all launchers of the user.
pub(crate) fn all() -> Vec<PathBuf> {
    let private = places().into_iter().filter(|place| is_private(place));
    let entries = private.filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    let is_socket = |path: &PathBuf| {
        let named = path.extension().is_some_and(|extension| extension == SOCKET);
        named && std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
    };
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_socket).collect();
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

/// A directory that only the user can open, and not a link to one.
pub(super) fn is_private(place: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(place).is_ok_and(|found| {
        found.is_dir() && found.uid() == user && found.permissions().mode() & 0o077 == 0
    })
}
