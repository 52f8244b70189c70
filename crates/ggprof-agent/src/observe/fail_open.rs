//! The guard around all code of the agent that runs inside a hook.
//!
//! It keeps hooks from entering themselves (the agent's own calls into ggml pass through them too),
//! catches panics and counts them: after a few, the agent switches itself off. The real function is
//! always called outside the guard. So it runs exactly once, and `catch_unwind` never sees a
//! foreign exception.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::this_thread::ThisThread;
use crate::recorder::current::count_fault;

/// Runs `work`, or gives `otherwise` when we are already inside a guard on this
/// thread or `work` panics.
#[inline(always)]
pub(crate) fn guard<R>(otherwise: R, work: impl FnOnce(&ThisThread) -> R) -> R {
    ThisThread::with(|this| {
        if this.inside.replace(true) {
            return otherwise;
        }
        let result = catch_unwind(AssertUnwindSafe(|| work(this)));
        this.inside.set(false);
        match result {
            Ok(value) => value,
            Err(payload) => {
                // Dropping the payload could panic again.
                std::mem::forget(payload);
                count_fault();
                otherwise
            }
        }
    })
}

/// The guard of the path that every op takes: re-entrancy only. What runs here
/// cannot panic (no indexing, no unwrapping, no arithmetic that is checked), and
/// the landing pad that would catch it costs a quarter of the op's budget.
#[inline(always)]
pub(crate) fn hot<R>(otherwise: R, work: impl FnOnce(&ThisThread) -> R) -> R {
    ThisThread::with(|this| if this.inside.get() { otherwise } else { work(this) })
}

/// The guard of what has to be done even when the call comes from inside another guard: keeping
/// foreign objects apart, and what a foreign library calls back from within a call of ours.
#[inline(always)]
pub(crate) fn contained<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(payload) => {
            std::mem::forget(payload);
            count_fault();
            otherwise
        }
    }
}
