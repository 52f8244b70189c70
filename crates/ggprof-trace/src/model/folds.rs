//! What the threads of ops did, in columns: 14 bytes for each.

use super::event::ThreadFold;
use super::narrow::Narrow;
use std::ops::Range;

/// The shares of all events' threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Folds {
    threads: Vec<u16>,
    busy_sum_ns: Narrow,
    wait_sum_ns: Narrow,
    busy_max_ns: Narrow,
}

impl Folds {
    /// Appends folds, none of whose times is greater than `limit`.
    #[inline]
    pub(super) fn extend(
        &mut self,
        folds: impl ExactSizeIterator<Item = ThreadFold> + Clone,
        limit: u64,
    ) {
        // No machine has more threads.
        let threads = folds.clone().map(|fold| fold.threads.min(u16::MAX.into()) as u16);
        self.threads.extend(threads);
        self.busy_sum_ns.extend(folds.clone().map(|fold| fold.busy_sum_ns), limit);
        self.wait_sum_ns.extend(folds.clone().map(|fold| fold.wait_sum_ns), limit);
        self.busy_max_ns.extend(folds.map(|fold| fold.busy_max_ns), limit);
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.threads.reserve_exact(more);
        self.busy_sum_ns.reserve(more);
        self.wait_sum_ns.reserve(more);
        self.busy_max_ns.reserve(more);
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<ThreadFold> {
        let threads = self.threads.get(at).copied().filter(|&threads| threads > 0)?;
        Some(ThreadFold {
            busy_sum_ns: self.busy_sum_ns.get(at),
            wait_sum_ns: self.wait_sum_ns.get(at),
            busy_max_ns: self.busy_max_ns.get(at),
            threads: threads.into(),
        })
    }

    /// Those of some events.
    #[inline]
    pub(super) fn of(&self, events: Range<usize>) -> impl Iterator<Item = ThreadFold> + '_ {
        let threads = self.threads[events.clone()].iter();
        let busy = self.busy_sum_ns.of(events.clone()).zip(self.busy_max_ns.of(events.clone()));
        let times = busy.zip(self.wait_sum_ns.of(events));
        let fold = |(&threads, ((busy_sum_ns, busy_max_ns), wait_sum_ns)): (&u16, _)| ThreadFold {
            busy_sum_ns,
            wait_sum_ns,
            busy_max_ns,
            threads: threads.into(),
        };
        threads.zip(times).map(fold)
    }

    /// How many threads an event ran on, and how long they worked.
    #[inline]
    pub(super) fn busy(&self, at: usize) -> (u32, u64) {
        (self.threads[at].into(), self.busy_sum_ns.get(at))
    }

    /// The most threads that an event ran on.
    pub(super) fn most_threads(&self) -> Option<u32> {
        self.threads.iter().copied().max().map(u32::from)
    }
}
