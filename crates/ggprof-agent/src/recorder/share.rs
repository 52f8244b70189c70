//! One thread's part of one op, in 24 bytes. It is small because the thread that folds reads the
//! shares of all other threads from the caches of other cores, and the other threads are idle
//! meanwhile.
//!
//! # Hot path: no allocation, no locks, no panics

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What one thread did for one op. That thread writes the start and the node when the op begins, and
/// the rest when it ends. The thread that folds reads all of it, and completes the last share of each
/// log.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Share {
    start: AtomicU64,
    /// From the start until the thread last reached a barrier, or the next op.
    length: AtomicU32,
    /// Time at barriers inside of it, and at the one after it.
    inner_wait: AtomicU32,
    after_wait: AtomicU32,
    /// Where the node stands. Bit `FIRST_FUSED_BIT + d`: the node `d` places further on was computed
    /// with this one.
    node: AtomicU32,
}

const _: () = assert!(size_of::<Share>() == 24);

/// Graphs have fewer nodes than this many bits can number.
const FIRST_FUSED_BIT: u32 = 24;
/// The position of the mark after a log's last share; no graph has so many nodes.
pub(super) const AT_END: u32 = (1 << FIRST_FUSED_BIT) - 1;
const _: () = assert!(super::run_slot::MAX_NODES < AT_END as usize);

impl Share {
    #[inline(always)]
    pub(super) fn begin(&self, position: u32, now: u64) {
        self.start.store(now, Relaxed);
        self.node.store(position, Relaxed);
    }

    /// Waits are in ticks, the end is a moment.
    #[inline(always)]
    pub(super) fn finish(&self, end: u64, inner_wait: u64, after_wait: u64) {
        let length = end.wrapping_sub(self.start());
        if is_long(length | inner_wait | after_wait) {
            return self.finish_coarsely(length, inner_wait, after_wait);
        }
        self.length.store(length as u32, Relaxed);
        self.inner_wait.store(inner_wait as u32, Relaxed);
        self.after_wait.store(after_wait as u32, Relaxed);
    }

    /// Its callers call this last, so that they need no stack frame.
    #[cold]
    #[inline(never)]
    fn finish_coarsely(&self, length: u64, inner_wait: u64, after_wait: u64) {
        self.length.store(pack(length), Relaxed);
        self.inner_wait.store(pack(inner_wait), Relaxed);
        self.after_wait.store(pack(after_wait), Relaxed);
    }

    /// Makes it the mark after a log's last share.
    pub(super) fn mark_end(&self) {
        self.node.store(AT_END, Relaxed);
    }

    pub(super) fn set_fused(&self, distances: u32) {
        self.node.store(self.position() | distances << FIRST_FUSED_BIT, Relaxed);
    }

    #[inline(always)]
    pub(super) fn position(&self) -> u32 {
        self.node.load(Relaxed) & AT_END
    }

    /// All nodes between this one and the one at the position, if they are few.
    pub(super) fn fuse_until(&self, position: u32) {
        let between = position.saturating_sub(self.position());
        if (2..=u32::BITS - FIRST_FUSED_BIT).contains(&between) {
            self.set_fused(self.fused() | ((1 << between) - 2));
        }
    }

    /// Bit `d`: the node `d` places further on was computed with this one.
    #[inline(always)]
    pub(super) fn fused(&self) -> u32 {
        self.node.load(Relaxed) >> FIRST_FUSED_BIT
    }

    #[inline(always)]
    pub(super) fn start(&self) -> u64 {
        self.start.load(Relaxed)
    }

    /// `LONG` is false for a split that is so short that none of its spans can be packed: checking
    /// each one would cost as much as adding them up.
    #[inline(always)]
    pub(super) fn spans<const LONG: bool>(&self) -> Spans {
        let span = |packed: &AtomicU32| {
            let packed = packed.load(Relaxed);
            if LONG { unpack(packed) } else { u64::from(packed) }
        };
        Spans {
            length: span(&self.length),
            inner_wait: span(&self.inner_wait),
            after_wait: span(&self.after_wait),
        }
    }
}

/// The lengths of a share and of its waits, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    pub(super) length: u64,
    pub(super) inner_wait: u64,
    pub(super) after_wait: u64,
}

impl Spans {
    /// The spans of a share whose barrier at the end is not seen: it began at `start`, and was over
    /// by `over_by`. The last barrier that was seen is inside of it, and how long its thread waited
    /// at the end is not known.
    pub(super) fn over_by(self, start: u64, over_by: u64) -> Spans {
        let length = over_by.saturating_sub(start);
        Spans { length, inner_wait: (self.inner_wait + self.after_wait).min(length), after_wait: 0 }
    }
}

/// Marks a number of ticks that stands for this many times as many: half a second and more, for
/// which a microsecond is exact enough.
const COARSE: u32 = 1 << 31;
const COARSE_SHIFT: u32 = 12;

/// Whether so many ticks are kept coarsely.
#[inline(always)]
pub(super) fn is_long(ticks: u64) -> bool {
    ticks >= u64::from(COARSE)
}

/// Ticks in 32 bits. A clock that goes backwards between two processors gives none.
fn pack(ticks: u64) -> u32 {
    let ticks = u64::try_from(ticks.cast_signed()).unwrap_or(0);
    if is_long(ticks) {
        (ticks >> COARSE_SHIFT).min(u64::from(COARSE - 1)) as u32 | COARSE
    } else {
        ticks as u32
    }
}

fn unpack(packed: u32) -> u64 {
    match packed & COARSE {
        0 => u64::from(packed),
        _ => u64::from(packed & !COARSE) << COARSE_SHIFT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Share {
        fn begun_at(position: u32) -> Share {
            let none = || AtomicU32::new(0);
            let share = Share {
                start: AtomicU64::new(0),
                length: none(),
                inner_wait: none(),
                after_wait: none(),
                node: none(),
            };
            share.begin(position, 1);
            share
        }
    }

    #[test]
    fn nodes_in_between_are_fused_if_they_fit() {
        let share = Share::begun_at(7);
        for (until, fused) in [(6, 0), (8, 0), (9, 0b10), (11, 0b1110), (15, 0xfe), (16, 0xfe)] {
            share.fuse_until(until);
            assert_eq!((share.position(), share.fused()), (7, fused), "until {until}");
        }
    }

    #[test]
    fn where_the_last_wait_is_unseen_a_share_lasts_until_all_have_finished() {
        // A barrier inside of it, 40 ticks after its start, where it waited for 10.
        let spans = Spans { length: 40, inner_wait: 5, after_wait: 10 };
        let Spans { length, inner_wait, after_wait } = spans.over_by(1000, 1100);
        assert_eq!((length, inner_wait, after_wait), (100, 15, 0));
        // A thread that begins when the others have finished.
        let Spans { length, inner_wait, after_wait } = spans.over_by(1000, 900);
        assert_eq!((length, inner_wait, after_wait), (0, 0, 0));
    }

    #[test]
    fn short_times_are_exact_and_long_ones_nearly() {
        for ticks in [0, 1, 12_345, (1 << 31) - 1] {
            assert_eq!(unpack(pack(ticks)), ticks);
        }
        for ticks in [1 << 31, 3_000_000_000_u64, 1 << 40] {
            let kept = unpack(pack(ticks));
            assert!(kept <= ticks && ticks - kept < 1 << COARSE_SHIFT, "{ticks}: {kept}");
        }
        assert_eq!(unpack(pack(1 << 60)), u64::from(COARSE - 1) << COARSE_SHIFT);
        assert_eq!(unpack(pack(1_u64.wrapping_sub(2))), 0);
    }
}
