//! What the program was doing when it gave work to a device. Records arrive later and identify the
//! call by a number only; this table keeps the last calls by number.
//!
//! # Hot path: no allocation, no locks, no panics

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ggprof_spool::layout::{NO_NODE, NONE};

use crate::recorder::mapped;

/// More than the calls whose records CUPTI may hold back. A power of two.
const LAUNCH_SLOTS: usize = 1 << 16;

/// A call that handed work to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) split: u32,
    pub(crate) backend: u32,
    /// [`NO_NODE`] for a whole CUDA graph: its records name their nodes.
    pub(crate) position: u32,
    /// The executable graph that was launched, 0 for single work.
    pub(crate) executable: u64,
    /// Start of the copy of ggml's that the call belongs to, 0 for none.
    pub(crate) cause: u64,
    /// When the call began, on the clock of the records.
    pub(crate) called_ns: u64,
}

impl Launch {
    /// A call about which nothing is known.
    pub(crate) const UNKNOWN: Launch = Launch {
        split: NONE,
        backend: NONE,
        position: NO_NODE,
        executable: 0,
        cause: 0,
        called_ns: 0,
    };
}

/// While `correlation` is 0, the slot is being written; otherwise it is complete.
#[derive(Debug)]
struct LaunchSlot {
    correlation: AtomicU32,
    split: AtomicU32,
    backend: AtomicU32,
    position: AtomicU32,
    executable: AtomicU64,
    cause: AtomicU64,
    called_ns: AtomicU64,
}

/// Made when CUPTI is first attached: as a part of the library it would be larger than all the rest, and
/// take address space and page tables of every process.
static TABLE: OnceLock<Option<&'static [LaunchSlot]>> = OnceLock::new();

impl LaunchSlot {
    /// A table of empty slots, if there is memory for it.
    fn table() -> Option<&'static [LaunchSlot]> {
        let slots = mapped::array::<LaunchSlot>(LAUNCH_SLOTS)?;
        // SAFETY: a new mapping that stays; zeros are empty slots.
        Some(unsafe { std::slice::from_raw_parts(slots.as_ptr(), LAUNCH_SLOTS) })
    }

    fn of(correlation: u32) -> Option<&'static LaunchSlot> {
        (*TABLE.get()?)?.get(correlation as usize & (LAUNCH_SLOTS - 1))
    }
}

/// Keeps a call. Numbers are given out one after the other, so a slot is reused only after as many
/// calls as there are slots.
pub(crate) fn keep(correlation: u32, launch: Launch) {
    let Some(place) = LaunchSlot::of(correlation) else { return };
    place.correlation.store(0, Ordering::Relaxed);
    // Orders the store above before those below: a reader that saw a part of the new call finds 0
    // or the new number when it checks again.
    std::sync::atomic::fence(Ordering::Release);
    place.split.store(launch.split, Ordering::Relaxed);
    place.backend.store(launch.backend, Ordering::Relaxed);
    place.position.store(launch.position, Ordering::Relaxed);
    place.executable.store(launch.executable, Ordering::Relaxed);
    place.cause.store(launch.cause, Ordering::Relaxed);
    place.called_ns.store(launch.called_ns, Ordering::Relaxed);
    place.correlation.store(correlation, Ordering::Release);
}

pub(crate) fn find(correlation: u32) -> Option<Launch> {
    let place = LaunchSlot::of(correlation)?;
    if correlation == 0 || place.correlation.load(Ordering::Acquire) != correlation {
        return None;
    }
    let launch = Launch {
        split: place.split.load(Ordering::Relaxed),
        backend: place.backend.load(Ordering::Relaxed),
        position: place.position.load(Ordering::Relaxed),
        executable: place.executable.load(Ordering::Relaxed),
        cause: place.cause.load(Ordering::Relaxed),
        called_ns: place.called_ns.load(Ordering::Relaxed),
    };
    std::sync::atomic::fence(Ordering::Acquire);
    (place.correlation.load(Ordering::Relaxed) == correlation).then_some(launch)
}

/// Forgets all calls: when CUPTI is attached, its numbers start over.
pub(crate) fn forget() {
    for place in TABLE.get_or_init(LaunchSlot::table).iter().copied().flatten() {
        place.correlation.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_used_again_answers_for_its_last_call_only() {
        let launch = Launch { split: 7, position: 3, ..Launch::UNKNOWN };
        let later = Launch { split: 8, ..launch };
        forget();
        keep(5, launch);
        assert_eq!(find(5), Some(launch));
        assert_eq!(find(6), None);
        keep(5 + LAUNCH_SLOTS as u32, later);
        assert_eq!(find(5), None);
        assert_eq!(find(5 + LAUNCH_SLOTS as u32), Some(later));
    }
}
