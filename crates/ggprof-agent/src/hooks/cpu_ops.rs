//! Stand-ins inside a CPU backend's library. They run for every op on every thread. Each library
//! has its own set (`LIBRARY` is its number), so that a constant index finds the real function:
//! several builds of the backend may be loaded at once, and libraries are loaded and closed at any
//! time.
//!
//! # Hot path: no allocation, no locks, no panics

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::library;
use crate::arch;
use crate::observe::cpu_op::{self, ComputeParams};
use crate::observe::fail_open;

/// Libraries with ops hooked at the same time.
pub(crate) const LIBRARIES: usize = 8;
/// `ggml_compute_forward_*` slots over all libraries: a build has about 120.
pub(crate) const FORWARDS: usize = 512;

pub(crate) static EXTRA: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];
pub(crate) static FORWARD: [AtomicUsize; FORWARDS] = [const { AtomicUsize::new(0) }; FORWARDS];

/// Makes one stand-in for each library.
macro_rules! per_library {
    ($stand_in:ident) => {
        [
            $stand_in::<0> as *const (),
            $stand_in::<1> as *const (),
            $stand_in::<2> as *const (),
            $stand_in::<3> as *const (),
            $stand_in::<4> as *const (),
            $stand_in::<5> as *const (),
            $stand_in::<6> as *const (),
            $stand_in::<7> as *const (),
        ]
    };
}
pub(super) use per_library;

pub(crate) fn extra_stand_in(library: usize) -> usize {
    per_library!(extra_compute_forward)[library] as usize
}

arch::stand_in! {
    /// `ggml_cpu_extra_compute_forward`: the first thing ggml calls for every node
    /// it is about to compute, on every thread. `library::hook_ops` stored the real function
    /// before it installed this.
    fn extra_compute_forward<LIBRARY>, tells announced(arguments), jumps EXTRA[LIBRARY]
}

/// The arguments are what they seem if the second one is a node of a running graph.
extern "C-unwind" fn announced(params: *const ComputeParams, tensor: usize) {
    fail_open::hot((), |this| cpu_op::begin(this, params, tensor));
}

// A stand-in for each function, which only says which one it is.
arch::numbered_entries!("ggprof_forward_hooks", FORWARDS, forward);

pub(crate) fn forward_stand_in(slot: usize) -> usize {
    unsafe extern "C" {
        static ggprof_forward_hooks: u8;
    }
    (&raw const ggprof_forward_hooks) as usize + slot * arch::ENTRIES_APART
}

arch::stand_in! {
    /// One of `ggml_compute_forward_*`, by its number. Its signature is not known: a fusion takes
    /// several tensors.
    fn forward, asks forward_called(arguments, number)
}

/// Returns the real function for `forward` to jump to. Of the arguments only
/// the first is known to be what it seems; the others are compared with the
/// graph's nodes and never followed.
extern "C-unwind" fn forward_called(
    params: *const ComputeParams,
    tensor: usize,
    second: usize,
    third: usize,
    fourth: usize,
    slot: u32,
) -> usize {
    let others = [second, third, fourth];
    let news = fail_open::hot(None, |this| cpu_op::begin_unannounced(this, params, tensor, others));
    if let Some(news) = news {
        note_use(slot as usize, news);
    }
    FORWARD[slot as usize].load(Ordering::Relaxed)
}

/// After this many calls that showed nothing new, a hook is removed.
const IDLE_CALLS: u32 = 1000;
/// Marks a hook that has shown something new: it is never removed.
const USEFUL: u32 = u32::MAX;

static CALLS_WITHOUT_NEWS: [AtomicU32; FORWARDS] = [const { AtomicU32::new(0) }; FORWARDS];

#[inline(always)]
fn note_use(slot: usize, news: bool) {
    // Two threads at once may count as one: an approximate number is enough.
    let Some(calls) = CALLS_WITHOUT_NEWS.get(slot) else { return };
    let before = calls.load(Ordering::Relaxed);
    if before == USEFUL {
        return;
    }
    calls.store(if news { USEFUL } else { before + 1 }, Ordering::Relaxed);
    if before == IDLE_CALLS {
        fail_open::guard((), |_| library::unhook_forward(slot));
    }
}

/// A slot that is reused must report everything again.
pub(crate) fn forget_use(slot: usize) {
    CALLS_WITHOUT_NEWS[slot].store(0, Ordering::Relaxed);
}
