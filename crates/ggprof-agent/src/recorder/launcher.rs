//! Whether the launcher is still there that a recording was made for. If `ggprof attach` is killed, nobody
//! else ends the recording of a program that may run for months.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// To look takes three calls of the system.
const EVERY_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Launcher {
    /// It holds a lock on this one.
    directory: PathBuf,
    looked_ns: AtomicU64,
}

impl Launcher {
    pub(super) fn new(directory: PathBuf, now_ns: u64) -> Launcher {
        Launcher { directory, looked_ns: AtomicU64::new(now_ns) }
    }

    /// Asked as often as one likes, by any thread.
    pub(super) fn is_gone(&self, now_ns: u64) -> bool {
        let looked = self.looked_ns.load(Relaxed);
        now_ns.saturating_sub(looked) >= EVERY_NS
            && self.looked_ns.compare_exchange(looked, now_ns, Relaxed, Relaxed).is_ok()
            && is_free(&self.directory)
    }
}

/// Whether nobody holds it, as far as that can be seen.
fn is_free(directory: &Path) -> bool {
    let Ok(opened) = File::open(directory) else { return false };
    // SAFETY: a descriptor of ours. A lock that is had ends with it, right away.
    unsafe { libc::flock(opened.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_when_its_lock_is() {
        let directory = std::env::temp_dir().join(format!("held-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let held = File::open(&directory).expect("it is there");
        // SAFETY: a descriptor of ours.
        assert_eq!(unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX) }, 0);
        let launcher = Launcher::new(directory.clone(), 0);
        assert!(!launcher.is_gone(EVERY_NS), "it is there");
        drop(held);
        assert!(!launcher.is_gone(EVERY_NS + 1), "a moment ago it was");
        assert!(launcher.is_gone(2 * EVERY_NS));
        std::fs::remove_dir(&directory).expect("it is ours");
        assert!(!launcher.is_gone(3 * EVERY_NS), "nothing can be seen");
    }
}
