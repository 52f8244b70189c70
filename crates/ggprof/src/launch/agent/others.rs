//! Agents of other versions of ggprof in the same place, which nobody needs any more.
//!
//! Whoever uses an agent says so: a command holds a lock on its directory for as long as it runs, and
//! the directory's time is that of its last use, to the day. What was not used for long and is not
//! locked is removed. A program that has such an agent loaded keeps it: its file stays until it is not
//! mapped any more. Only what `ggprof env` printed so long ago, in a shell that is open since, would name
//! a file that is gone; the dynamic linker says so, and starts programs without it.

use super::place::NAME_DIGITS;
use crate::launch::sockets::is_private;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Longer than most shells and servers run.
const KEPT: Duration = Duration::from_secs(90 * DAY.as_secs());

/// Says that the agent in this directory is in use, until the result is dropped.
pub(super) fn in_use(directory: &Path) -> io::Result<File> {
    let opened = File::open(directory)?;
    // Nobody waits: one that is being removed at this moment is written anew.
    flock(&opened, FlockOperation::NonBlockingLockShared)?;
    if age(&opened)? > DAY {
        opened.set_modified(SystemTime::now())?;
    }
    Ok(opened)
}

/// Removes what was not used for long.
pub(super) fn remove_old(place: &Path) {
    for directory in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = directory.file_name();
        let is_hash =
            name.len() == NAME_DIGITS && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
        if is_hash {
            // The next version tries again.
            let _ = remove_if_old(&directory.path());
        }
    }
}

fn remove_if_old(directory: &Path) -> io::Result<()> {
    let opened = File::open(directory)?;
    if is_private(directory) && age(&opened)? > KEPT {
        flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

/// Since its last use; one in the future counts as now.
fn age(directory: &File) -> io::Result<Duration> {
    Ok(directory.metadata()?.modified()?.elapsed().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;
    use std::path::PathBuf;

    fn used(place: &Path, name: &str, days_ago: u32) -> PathBuf {
        let directory = place.join(name);
        DirBuilder::new().mode(0o700).create(&directory).unwrap();
        std::fs::write(directory.join("libggprof_agent.so"), name).unwrap();
        let opened = File::open(&directory).unwrap();
        opened.set_modified(SystemTime::now() - DAY * days_ago).unwrap();
        directory
    }

    #[test]
    fn what_nobody_used_for_long_goes() {
        let place = tempfile::tempdir().unwrap();
        let old = used(place.path(), "0123456789abcdef", 91);
        let young = used(place.path(), "123456789abcdef0", 89);
        let locked = used(place.path(), "23456789abcdef01", 91);
        let other = used(place.path(), "peaks", 91);
        let lock = File::open(&locked).unwrap();
        flock(&lock, FlockOperation::LockShared).unwrap();
        remove_old(place.path());
        assert!(!old.exists() && young.exists() && locked.exists() && other.exists());
    }

    #[test]
    fn a_use_is_noted() {
        let place = tempfile::tempdir().unwrap();
        let agent = used(place.path(), "0123456789abcdef", 91);
        let in_use = in_use(&agent).unwrap();
        remove_old(place.path());
        drop(in_use);
        remove_old(place.path());
        assert!(agent.exists());
    }
}
