//! A carried agent as a file, in a directory that is named after its contents and stays: the next
//! start finds it there. The dynamic linker will run what lies in the file, so nobody but the user
//! may be able to put something else there: owner, mode and contents are checked at every start, and
//! so is the way to the directory.

use super::super::sockets::is_private;
use super::{Agent, FILE, is_loadable, others};
use crate::launch::preload;
use ggprof_agents::Agent as Carried;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Digits of the hash in a directory's name.
pub(super) const NAME_DIGITS: usize = 16;
/// Nobody else may write it.
const OTHERS_WRITE: u32 = 0o022;
/// Only the owner of a file removes it from such a directory.
const STICKY: u32 = 0o1000;

/// Where the user's programs keep what they can make again, and where there is room for a while.
pub(super) fn directories() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|place| place.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let user = rustix::process::geteuid().as_raw();
    let own = cache.or_else(home).map(|place| place.join("ggprof"));
    let shared = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
    own.into_iter().chain(shared.map(|place| place.join(format!("ggprof-{user}")))).collect()
}

/// The agents in a directory, where it is fit for them.
pub(super) fn agent(place: &Path, glibc: &Carried, musl: Option<&Carried>) -> Option<Agent> {
    let place = fit(place)?;
    let (path, held) = placed(&place, glibc)?;
    let (musl, held_for_musl) = musl.and_then(|musl| placed(&place, musl)).unzip();
    let entry = preload::for_both(&path, musl.as_deref()).ok()?;
    let held = [held].into_iter().chain(held_for_musl).map(OwnedFd::from).collect();
    Some(Agent { musl, entry, _held: held, ..Agent::of_glibc(glibc.processor(), path) })
}

/// The directory's real path, once it is there, the user's alone, and programs can be run from it.
fn fit(place: &Path) -> Option<PathBuf> {
    if std::fs::symlink_metadata(place).is_err() {
        // Before anything is made: as root with another user's HOME, it would be root's for ever.
        let there = place.ancestors().skip(1).find(|directory| directory.exists())?;
        if !there.canonicalize().ok()?.ancestors().all(is_safe) {
            return None;
        }
        DirBuilder::new().mode(0o700).recursive(true).create(place).ok()?;
    }
    let place = is_private(place).then(|| place.canonicalize().ok()).flatten()?;
    let no_execution = statvfs(&place).ok()?.f_flag.contains(StatVfsMountFlags::NOEXEC);
    (!no_execution && is_loadable(&place) && place.ancestors().skip(1).all(is_safe))
        .then_some(place)
}

/// Whether nobody else can put another directory in the place of ours.
fn is_safe(directory: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    directory.metadata().is_ok_and(|found| {
        let mode = found.permissions().mode();
        [0, user].contains(&found.uid()) && (mode & OTHERS_WRITE == 0 || mode & STICKY != 0)
    })
}

/// The library under the name of its contents, and the lock that keeps it there. What is there already
/// and is not it is replaced.
fn placed(place: &Path, agent: &Carried) -> Option<(PathBuf, File)> {
    let directory = place.join(&agent.sha256[..NAME_DIGITS]);
    if std::fs::symlink_metadata(&directory).is_err() {
        // Another launcher may make it at the same time.
        let _ = DirBuilder::new().mode(0o700).create(&directory);
    }
    let file = directory.join(FILE);
    if !is_private(&directory) {
        return None;
    }
    let in_use = others::in_use(&directory).ok()?;
    if !is_it(&file, agent) {
        write(&directory, &file, agent).ok()?;
        others::remove_old(place);
    }
    is_it(&file, agent).then_some((file, in_use))
}

fn is_it(file: &Path, agent: &Carried) -> bool {
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let Ok(opened) = open.open(file) else { return false };
    let user = rustix::process::geteuid().as_raw();
    let is_ours = opened.metadata().is_ok_and(|found| {
        let mode = found.permissions().mode();
        found.is_file() && found.uid() == user && mode & OTHERS_WRITE == 0
    });
    is_ours && agent.is(&opened).unwrap_or(false)
}

/// Under another name first: a program that starts meanwhile finds it whole or not at all.
fn write(directory: &Path, file: &Path, agent: &Carried) -> io::Result<()> {
    let mut part = tempfile::NamedTempFile::new_in(directory)?;
    part.write_all(&agent.unpacked()?)?;
    let opened: &File = part.as_file();
    opened.set_permissions(Permissions::from_mode(0o500))?;
    part.persist(file)?;
    Ok(())
}
