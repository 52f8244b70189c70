//! The stand-in for `ggml_barrier`, where a thread waits for the others. It runs twice for every op
//! on every thread, and all threads wait for the slowest one. So it is written in assembly
//! (`arch`), with as few instructions as it takes to note when the thread arrives and when it
//! continues.
//!
//! It keeps every register, because a compiler that sees all callers of a short function lets them
//! keep values in registers that the function does not touch. All arguments reach the real
//! function.
//!
//! # Hot path: no allocation, no locks, no panics

use std::sync::atomic::AtomicUsize;

use super::cpu_ops::{LIBRARIES, per_library};
use crate::arch;
use crate::clock;
use crate::observe::cpu_op;
use crate::observe::fail_open;
use crate::observe::this_thread::ThisThread;
use crate::recorder::thread_log::ThreadLog;

/// The real functions.
pub(crate) static BARRIER: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];

/// To be called in place of the function, or at its own entry
/// (`patch::inline::StandIn::KeepsRegisters`).
pub(crate) fn stand_in(library: usize) -> usize {
    per_library!(barrier)[library] as usize
}

arch::barrier_stand_in! {
    /// What is noted is what [`ThreadLog::reach_barrier`] and [`ThreadLog::leave_barrier`] note.
    fn barrier,
    /// The same where the cycle counter is not the clock.
    fn barrier_by_slow_clock;
    real: BARRIER, has_counter: clock::COUNT_CYCLES, reach: reach_barrier, leave: leave_barrier;
    in this thread: inside ThisThread::INSIDE, log ThisThread::LOG;
    in its log: n_threads ThreadLog::N_THREADS, current ThreadLog::CURRENT,
        reached ThreadLog::REACHED, left ThreadLog::LEFT, inner_wait ThreadLog::INNER_WAIT;
}

extern "C" fn reach_barrier() -> bool {
    fail_open::hot(false, cpu_op::reach_barrier)
}

extern "C" fn leave_barrier() {
    fail_open::hot((), cpu_op::leave_barrier);
}
