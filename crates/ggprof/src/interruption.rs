//! What Ctrl-C finds half-written does not stay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard};
use tempfile::NamedTempFile;

/// Files and directories that are to go then, in the order in which they were made.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Until it is dropped, what was made is removed if the command is interrupted.
pub(crate) struct Removal {
    path: PathBuf,
}

impl Removal {
    /// Makes a file under a name that nobody knows. A signal waits until we know it.
    pub(crate) fn of(
        make: impl FnOnce() -> io::Result<NamedTempFile>,
    ) -> io::Result<(Self, NamedTempFile)> {
        let mut unfinished = lock();
        let file = make()?;
        let path = file.path().to_owned();
        unfinished.push(path.clone());
        Ok((Self { path }, file))
    }

    /// Makes a directory, which stays if something comes into it, also when nothing interrupts.
    pub(crate) fn of_directory(
        make: impl FnOnce() -> io::Result<PathBuf>,
    ) -> io::Result<(Self, PathBuf)> {
        let mut unfinished = lock();
        let path = make()?;
        unfinished.push(path.clone());
        Ok((Self { path: path.clone() }, path))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let mut unfinished = lock();
        unfinished.retain(|path| *path != self.path);
        // Not of a file, nor if something is in it.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Does what must not be done by half: a signal waits for it.
pub(crate) fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _signals_wait = lock();
    work()
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir(path);
    }
}

/// Lets signals that end the command remove what is unfinished first. For commands that read
/// recordings; the launcher of programs has its own way with signals, and writes to the end.
#[cfg(target_os = "linux")]
pub(crate) fn watch() {
    use crate::inherited::was_ignored;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !was_ignored(signal));
    // Without it, only a part of a file may be left behind.
    let Ok(mut signals) = Signals::new(heard) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            let unfinished = lock();
            unfinished.iter().rev().for_each(|path| remove(path));
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn watch() {}

/// A file that would become larger than this process may write is an error like any other: the signal
/// that comes with it would end the command without a word, and leave what is unfinished. A program that
/// is started has the signal's default again, or ignores it if it was ignored.
#[cfg(target_os = "linux")]
pub(crate) fn outlive_file_limit() {
    let limit = rustix::process::Signal::XFSZ.as_raw();
    if !crate::inherited::was_ignored(limit) {
        // Nobody asks whether it came. Where it cannot be had, things are as they were.
        let _ = signal_hook::flag::register(limit, Arc::default());
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn outlive_file_limit() {}
