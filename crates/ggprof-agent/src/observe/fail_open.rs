//! The guard around all code of the agent that runs inside a hook.
//!
//! It keeps hooks from entering themselves (the agent's own calls into ggml pass through them too),
//! catches panics and counts them: after a few, the agent switches itself off. The real function is
//! always called outside the guard. So it runs exactly once, and `catch_unwind` never sees a
//! foreign exception.
//!
//! A thread that another one cancels ends at its next call that may wait, such as `open` or `write`,
//! and its stack is unwound from there. The agent makes such calls where the program would not, and
//! the C library ends a process in which something catches that. So no thread is cancelled inside a
//! guard; it is at the program's own next call.
//!
//! In a forked child whose locks are abandoned (`lock`), no guard lets anything in.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::this_thread::ThisThread;
use crate::lock;
use crate::recorder::children;
use crate::recorder::current::count_fault;

/// Runs `work`, or gives `otherwise` when we are already inside a guard on this
/// thread or `work` panics.
#[inline(always)]
pub(crate) fn guard<R>(otherwise: R, work: impl FnOnce(&ThisThread) -> R) -> R {
    ThisThread::with(|this| {
        if this.inside.replace(true) {
            return otherwise;
        }
        if lock::are_abandoned() {
            // This thread stays inside: nothing of the agent's runs on it any more.
            children::count_if_lost();
            return otherwise;
        }
        let result = caught(otherwise, || work(this));
        this.inside.set(false);
        result
    })
}

/// The guard of the path that every op takes: re-entrancy only. What runs here
/// cannot panic (no indexing, no unwrapping, no arithmetic that is checked), and
/// the landing pad that would catch it costs a quarter of the op's budget.
#[inline(always)]
pub(crate) fn hot<R>(otherwise: R, work: impl FnOnce(&ThisThread) -> R) -> R {
    ThisThread::with(|this| if this.inside.get() { otherwise } else { work(this) })
}

/// The guard for code that must run even inside another guard: code that keeps foreign objects
/// apart, and callbacks from a foreign library that we called.
#[inline(always)]
pub(crate) fn contained<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    if lock::are_abandoned() {
        return otherwise;
    }
    caught(otherwise, work)
}

/// The guard of what the program cannot do without: finding the functions that it calls.
#[inline(always)]
pub(crate) fn in_any_case<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    caught(otherwise, work)
}

#[inline(always)]
fn caught<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    let cancelling = set_cancelling(CANCEL_DISABLE);
    let result = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(payload) => {
            // Dropping the payload could panic again.
            std::mem::forget(payload);
            count_fault();
            otherwise
        }
    };
    set_cancelling(cancelling);
    result
}

const CANCEL_ENABLE: c_int = 0;
const CANCEL_DISABLE: c_int = 1;

/// Whether other threads can cancel this one from now on; gives what was so before. Not inlined: every hook
/// has two calls of it.
#[inline(never)]
fn set_cancelling(state: c_int) -> c_int {
    // It may unwind: a thread can ask to be cancelled at any moment, and the end of a guard is one.
    unsafe extern "C-unwind" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
    // In programs without threads, glibc before 2.34 does nothing and leaves this as it is.
    let mut before = CANCEL_ENABLE;
    // SAFETY: one of the two states, or what the function itself gave; the place is ours.
    unsafe { pthread_setcancelstate(state, &mut before) };
    before
}
