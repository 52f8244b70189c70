//! Which thread looks at newly loaded libraries and hooks them before they are used. Other threads
//! that arrive meanwhile wait, because they may be about to use such a library. But the first
//! thread may be waiting for the loader, and the loader for a waiting thread, if that is inside a
//! library's constructor. So a thread waits for a limited time. Once it has gone on, the new
//! libraries may be in use and must not be hooked any more.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::clock;
use crate::lock::Tried;

/// Many times as long as a look takes, unless it has to wait for the loader.
const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_micros(100);

/// No thread looks.
const FREE: u8 = 0;
const LOOKS: u8 = 1;
/// Functions are being hooked, which is over soon.
const HOOKS: u8 = 2;
/// Another thread stopped waiting.
const LEFT: u8 = 3;

#[derive(Debug)]
pub(super) struct Turns<T> {
    state: AtomicU8,
    /// A thread stopped waiting during the last turn, which may not have seen what that thread
    /// opened.
    left_before: AtomicBool,
    value: Tried<T>,
}

/// The right to look at new libraries, and what is needed for it, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a, T> {
    turns: &'a Turns<T>,
    pub(super) value: MutexGuard<'a, T>,
    /// New libraries may already be in use.
    is_late: bool,
}

impl<T> Turns<T> {
    pub(super) const fn new(value: T) -> Self {
        Turns {
            state: AtomicU8::new(FREE),
            left_before: AtomicBool::new(false),
            value: Tried::new(value),
        }
    }

    /// `None` if another thread has it for too long.
    pub(super) fn take(&self) -> Option<Turn<'_, T>> {
        let mut since = None;
        loop {
            if let Some(value) = self.value.try_lock() {
                self.state.store(LOOKS, Ordering::Release);
                let is_late = self.left_before.swap(false, Ordering::AcqRel);
                return Some(Turn { turns: self, value, is_late });
            }
            let is_over = since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE;
            if self.state.load(Ordering::Acquire) == LEFT || is_over && self.leave() {
                return None;
            }
            clock::pause(PAUSE);
        }
    }

    fn leave(&self) -> bool {
        self.state.compare_exchange(LOOKS, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl<T> Turn<'_, T> {
    /// `None` where what is new may be in use already.
    pub(super) fn hook<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        let state = &self.turns.state;
        let may = !self.is_late
            && state.compare_exchange(LOOKS, HOOKS, Ordering::AcqRel, Ordering::Acquire).is_ok();
        let _until_done = may.then(|| Looking(state));
        may.then(work)
    }
}

/// Back from hooking to looking, whatever happens.
struct Looking<'a>(&'a AtomicU8);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.store(LOOKS, Ordering::Release);
    }
}

impl<T> Drop for Turn<'_, T> {
    /// Before the lock is given back.
    fn drop(&mut self) {
        if self.turns.state.swap(FREE, Ordering::AcqRel) == LEFT {
            self.turns.left_before.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn whoever_comes_waits_for_the_turn() {
        let turns = Turns::new(0);
        let mut turn = turns.take().expect("nobody has it");
        thread::scope(|scope| {
            let other = scope.spawn(|| turns.take().map(|turn| *turn.value));
            thread::sleep(PATIENCE / 10);
            assert_eq!(turn.hook(|| 5), Some(5), "nobody has left");
            *turn.value = 7;
            drop(turn);
            assert_eq!(other.join().expect("it ends"), Some(7));
        });
    }

    #[test]
    fn nothing_is_hooked_once_somebody_went_on() {
        let turns = Turns::new(());
        let turn = turns.take().expect("nobody has it");
        thread::scope(|scope| {
            let others: Vec<_> = (0..2).map(|_| scope.spawn(|| turns.take().is_none())).collect();
            others.into_iter().for_each(|other| assert!(other.join().expect("it ends")));
        });
        assert_eq!(turn.hook(|| ()), None);
        drop(turn);
        let next = turns.take().expect("nobody has it");
        assert_eq!(next.hook(|| ()), None, "this one may see what was opened before that");
        drop(next);
        assert_eq!(turns.take().expect("nobody has it").hook(|| ()), Some(()));
    }
}
