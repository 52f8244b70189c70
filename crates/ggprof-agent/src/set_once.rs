//! A value that is set once, as a rule when the agent is loaded, and read from then on.
//!
//! `OnceLock` does more: threads wait while another one makes the value. For that it calls the standard
//! library and lies in memory that is not zero at the start. In processes that never use ggml, that
//! alone costs two pages.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

const UNSET: u8 = 0;
const BEING_SET: u8 = 1;
const SET: u8 = 2;

#[derive(Debug)]
pub(crate) struct SetOnce<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the one thread that changes the state from `UNSET`, and only read once
// the state is `SET`.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    pub(crate) const fn new() -> Self {
        SetOnce { state: AtomicU8::new(UNSET), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Whether this was the first time; later values are dropped.
    pub(crate) fn set(&self, value: T) -> bool {
        let begun = (Ordering::Relaxed, Ordering::Relaxed);
        let is_first = self.state.compare_exchange(UNSET, BEING_SET, begun.0, begun.1).is_ok();
        if is_first {
            // SAFETY: no other thread comes here, and none reads the value before the state is `SET`.
            unsafe { (*self.value.get()).write(value) };
            self.state.store(SET, Ordering::Release);
        }
        is_first
    }

    pub(crate) fn get(&self) -> Option<&T> {
        let is_set = self.state.load(Ordering::Acquire) == SET;
        // SAFETY: it was written before the state became `SET`, and is never written again.
        is_set.then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_stays() {
        static WORD: SetOnce<&str> = SetOnce::new();
        assert_eq!(WORD.get(), None);
        assert!(WORD.set("first"));
        assert!(!WORD.set("second"));
        assert_eq!(WORD.get(), Some(&"first"));
    }
}
