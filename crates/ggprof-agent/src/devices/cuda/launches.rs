//! What the program was doing when it gave work to a device. Records arrive later and identify the
//! call by a number only; this table keeps the last calls by number.
//!
//! # Hot path: no allocation, no locks, no panics

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ggprof_spool::layout::{NO_NODE, NONE};

/// More than the calls whose records CUPTI may hold back. A power of two.
const PLACES: usize = 1 << 16;

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

/// A place is being written while its number is 0, and is whole otherwise.
#[derive(Debug)]
struct Place {
    correlation: AtomicU32,
    split: AtomicU32,
    backend: AtomicU32,
    position: AtomicU32,
    executable: AtomicU64,
    cause: AtomicU64,
    called_ns: AtomicU64,
}

static TABLE: [Place; PLACES] = [const { Place::empty() }; PLACES];

impl Place {
    const fn empty() -> Self {
        Place {
            correlation: AtomicU32::new(0),
            split: AtomicU32::new(0),
            backend: AtomicU32::new(0),
            position: AtomicU32::new(0),
            executable: AtomicU64::new(0),
            cause: AtomicU64::new(0),
            called_ns: AtomicU64::new(0),
        }
    }

    fn of(correlation: u32) -> &'static Place {
        &TABLE[correlation as usize & (PLACES - 1)]
    }
}

/// Numbers are given out one after the other, so a place is used again only after
/// as many calls as there are places.
pub(crate) fn keep(correlation: u32, launch: Launch) {
    let place = Place::of(correlation);
    place.correlation.store(0, Ordering::Relaxed);
    // Nothing of the new call is seen before that: a reader who saw some of it finds 0 or the
    // new number when it looks again.
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
    let place = Place::of(correlation);
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

/// When CUPTI is attached again its numbers start anew.
pub(crate) fn forget() {
    for place in &TABLE {
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
        keep(5, launch);
        assert_eq!(find(5), Some(launch));
        assert_eq!(find(6), None);
        keep(5 + PLACES as u32, later);
        assert_eq!(find(5), None);
        assert_eq!(find(5 + PLACES as u32), Some(later));
    }
}
