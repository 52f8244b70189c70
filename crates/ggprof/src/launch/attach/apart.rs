//! Work on threads of another process, done by a thread of ours that ends with it.
//!
//! A thread that does not stop when it is asked to cannot be let go either: it would stop later, and stand
//! until whoever asked for that has ended. So this happens on a thread that ends right afterwards.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

const PAUSE: Duration = Duration::from_micros(100);

/// Does it; when this returns, no thread of another process is in our hands any more.
pub(super) fn from_us<R: Send>(work: impl FnOnce() -> R + Send) -> io::Result<R> {
    let (done, directory) = std::thread::scope(|scope| {
        let name = std::thread::Builder::new().name("attach".to_owned());
        let thread = name.spawn_scoped(scope, || (work(), directory_of_this_thread()))?;
        thread.join().map_err(|_| io::Error::other("an internal fault of ggprof"))
    })?;
    // The system says that it has ended a moment before it lets go of what was in its hands.
    while directory.as_ref().is_some_and(|directory| directory.exists()) {
        std::thread::sleep(PAUSE);
    }
    Ok(done)
}

/// `None` without /proc, where nothing is attached to.
fn directory_of_this_thread() -> Option<PathBuf> {
    Some(PathBuf::from("/proc").join(std::fs::read_link("/proc/thread-self").ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_thread_has_ended() {
        let directory = from_us(|| directory_of_this_thread().unwrap()).unwrap();
        assert!(!directory.exists());
        assert_ne!(Some(directory), directory_of_this_thread());
    }
}
