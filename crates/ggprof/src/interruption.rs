//! What Ctrl-C finds half-written does not stay.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use tempfile::NamedTempFile;

/// The file that is being written, under a name that nobody knows.
static HALF_WRITTEN: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Until it is dropped, the file is removed if the command is interrupted.
pub(crate) struct Removal;

impl Removal {
    /// Makes a file. A signal waits until its name is known.
    pub(crate) fn of(
        make: impl FnOnce() -> io::Result<NamedTempFile>,
    ) -> io::Result<(Self, NamedTempFile)> {
        let mut half_written = lock();
        let file = make()?;
        *half_written = Some(file.path().to_owned());
        Ok((Self, file))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        *lock() = None;
    }
}

fn lock() -> MutexGuard<'static, Option<PathBuf>> {
    HALF_WRITTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Lets signals that end the command remove what is half-written first. For commands that read
/// recordings; the launcher of programs has its own way with signals, and writes to the end.
#[cfg(target_os = "linux")]
pub(crate) fn watch() {
    use crate::launch::was_ignored;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !was_ignored(signal));
    // Without it, only a part of a file may be left behind.
    let Ok(mut signals) = Signals::new(heard) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            let half_written = lock();
            half_written.iter().for_each(|file| _ = std::fs::remove_file(file));
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn watch() {}
