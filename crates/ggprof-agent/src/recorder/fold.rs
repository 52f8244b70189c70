//! Folds the shares of all threads into one record per op, when the graph has run.
//!
//! Every thread met the nodes in the same order, so the logs are merged like sorted lists. Only
//! sums and maxima are computed here, because single shares are not kept by default; everything
//! else is left to the reader.

use std::sync::atomic::Ordering::Relaxed;

use ggprof_spool::layout::{MEASURED_HOST, OP_FUSED, OP_SHIFT_BIT, OpEvent, ThreadShare};

use super::lane::HeldLane;
use super::share::{self, AT_END, Share, Spans};
use super::thread_log::ThreadLog;
use crate::arch;

/// How many shares ahead memory is prefetched. Other threads wrote the shares, so they come from the
/// caches of other cores, each after a hundred nanoseconds. These are four cache lines per thread.
const AHEAD: usize = 10;

/// The split whose shares are folded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldedSplit {
    pub(crate) split: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// What ggml gave back; 0 where the whole graph was computed.
    pub(crate) status: i32,
    /// It is known that the barriers after ops are not seen.
    pub(crate) waits_unseen: bool,
}

/// What folding gives back to the split's end record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folded {
    pub(crate) ops: u32,
    pub(crate) threads: u16,
    /// The barriers after ops are not seen.
    pub(crate) waits_unseen: bool,
}

/// Writes one op record per computed node; `on_fused` hears of fusions first.
pub(crate) fn write_ops(
    lane: &HeldLane<'_>,
    mut split: FoldedSplit,
    on_fused: &mut dyn FnMut(u32, u32),
) -> Folded {
    let logs = || lane.slot().logs();
    let has_company = logs().nth(1).is_some();
    let waits_unseen = has_company && logs().any(ThreadLog::waits_unseen);
    split.waits_unseen = has_company && (split.waits_unseen || waits_unseen);
    let mut cursors: Vec<Cursor> = logs().map(|log| Cursor::new(log, split)).collect();
    let is_long = share::is_long(split.end.wrapping_sub(split.start));
    let ops = if is_long || split.waits_unseen {
        write_all::<true>(lane, split, &mut cursors, on_fused)
    } else {
        write_all::<false>(lane, split, &mut cursors, on_fused)
    };
    Folded { ops, threads: cursors.len() as u16, waits_unseen }
}

/// Not inlined into its caller, which is large: the loop needs every register. `CAREFUL` as for
/// [`OpInTicks::of`].
#[inline(never)]
fn write_all<const CAREFUL: bool>(
    lane: &HeldLane<'_>,
    split: FoldedSplit,
    cursors: &mut [Cursor],
    on_fused: &mut dyn FnMut(u32, u32),
) -> u32 {
    let mut ops = 0;
    let mut position = cursors.iter().map(Cursor::position).min().unwrap_or(AT_END);
    while position != AT_END {
        let over_by =
            (CAREFUL && split.waits_unseen).then(|| next_start(cursors, position, split.end));
        if lane.recorder.threads {
            put_shares(lane, split, position, cursors, over_by);
        }
        let (op, next) = fold_op::<CAREFUL>(cursors, position, over_by);
        if op.fused != 0 {
            on_fused(position, op.fused);
        }
        lane.put(&op.encode(split, position).encode());
        ops += 1;
        position = next;
    }
    ops
}

/// Adds up the shares of the node at a position, and returns the position of the next node. All
/// threads meet all nodes, so all cursors are nearly always at the same one.
#[inline(always)]
fn fold_op<const CAREFUL: bool>(
    cursors: &mut [Cursor],
    position: u32,
    over_by: Option<u64>,
) -> (OpInTicks, u32) {
    if let [alone] = cursors {
        return (OpInTicks::of::<CAREFUL>(alone.take(), over_by), alone.position());
    }
    let (mut op, mut next) = (OpInTicks::NONE, AT_END);
    for cursor in cursors {
        if cursor.position() == position {
            op.add(&OpInTicks::of::<CAREFUL>(cursor.take(), over_by));
        }
        next = next.min(cursor.position());
    }
    (op, next)
}

/// When the first thread begins what comes after the position, or the split ends: all have finished it
/// by then, because ggml has a barrier after each op, seen or not.
fn next_start(cursors: &[Cursor], position: u32, split_end: u64) -> u64 {
    let starts =
        cursors.iter().filter_map(|it| it.rest().find(|share| share.position() != position));
    starts.map(Share::start).min().unwrap_or(split_end)
}

/// How far one thread's log has been merged.
struct Cursor {
    /// The next share, or the mark after the last one.
    next: &'static Share,
    log: &'static ThreadLog,
}

impl Cursor {
    fn new(log: &'static ThreadLog, split: FoldedSplit) -> Cursor {
        let next = log.finished_shares(split.end, split.status == 0, split.waits_unseen);
        for distance in 0..AHEAD {
            arch::ask_to_read(std::ptr::from_ref(next).wrapping_add(distance));
        }
        Cursor { next, log }
    }

    /// The position of the node whose share is next.
    #[inline(always)]
    fn position(&self) -> u32 {
        self.next.position()
    }

    /// The next share, where its position says that there is one.
    #[inline(always)]
    fn take(&mut self) -> &'static Share {
        let share = self.next;
        arch::ask_to_read(std::ptr::from_ref(share).wrapping_add(AHEAD));
        self.next = behind(share);
        share
    }

    /// All shares from the next one on.
    fn rest(&self) -> impl Iterator<Item = &'static Share> {
        let is_share = |share: &&Share| share.position() != AT_END;
        std::iter::successors(Some(self.next).filter(is_share), move |&share| {
            Some(behind(share)).filter(is_share)
        })
    }
}

/// Moves on to what follows a share that is not the mark.
#[inline(always)]
fn behind(share: &'static Share) -> &'static Share {
    // SAFETY: a share is followed by another one or by the mark (`ThreadLog::finished_shares`);
    // nobody asks what follows the mark, whose position is that of no node.
    unsafe { &*std::ptr::from_ref(share).add(1) }
}

/// One op over some threads, in full ticks.
struct OpInTicks {
    first: u64,
    last: u64,
    busy_sum: u64,
    busy_max: u64,
    wait_sum: u64,
    threads: u16,
    fused: u32,
}

impl OpInTicks {
    const NONE: OpInTicks = OpInTicks {
        first: u64::MAX,
        last: 0,
        busy_sum: 0,
        busy_max: 0,
        wait_sum: 0,
        threads: 0,
        fused: 0,
    };

    /// Over one. `CAREFUL`: in a long split, or where only the moment is known by which it was over.
    #[inline(always)]
    fn of<const CAREFUL: bool>(share: &Share, over_by: Option<u64>) -> OpInTicks {
        let (start, mut spans) = (share.start(), share.spans::<CAREFUL>());
        if let (true, Some(over_by)) = (CAREFUL, over_by) {
            spans = spans.over_by(start, over_by);
        }
        let busy = spans.length.saturating_sub(spans.inner_wait);
        OpInTicks {
            first: start,
            last: start + spans.length,
            busy_sum: busy,
            busy_max: busy,
            wait_sum: spans.inner_wait + spans.after_wait,
            threads: 1,
            fused: share.fused(),
        }
    }

    #[inline(always)]
    fn add(&mut self, other: &OpInTicks) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.busy_sum += other.busy_sum;
        self.busy_max = self.busy_max.max(other.busy_max);
        self.wait_sum += other.wait_sum;
        self.threads += other.threads;
        self.fused |= other.fused;
    }

    #[inline(always)]
    fn encode(&self, split: FoldedSplit, position: u32) -> OpEvent {
        let start = self.first.saturating_sub(split.start);
        let duration = self.last.wrapping_sub(self.first);
        let fused = if self.fused != 0 { OP_FUSED } else { 0 };
        let mut event = OpEvent {
            flags: MEASURED_HOST | fused,
            threads: self.threads,
            split: split.split,
            position,
            start: start as u32,
            duration: duration as u32,
            busy_sum: self.busy_sum as u32,
            busy_max: self.busy_max as u32,
            wait_sum: self.wait_sum as u32,
        };
        let shift = shift_for(start | duration | self.busy_sum | self.wait_sum);
        if shift != 0 {
            self.shift_times(&mut event, start, duration, shift);
        }
        event
    }

    /// For the rare op that takes seconds.
    #[cold]
    fn shift_times(&self, event: &mut OpEvent, start: u64, duration: u64, shift: u8) {
        event.flags |= shift << OP_SHIFT_BIT;
        event.start = (start >> shift) as u32;
        event.duration = (duration >> shift) as u32;
        event.busy_sum = (self.busy_sum >> shift) as u32;
        event.busy_max = (self.busy_max >> shift) as u32;
        event.wait_sum = (self.wait_sum >> shift) as u32;
    }
}

/// An op of which only one thread's time is known; `start` counts from the split's.
pub(crate) fn op_of_one_thread(
    flags: u8,
    (split, position): (u32, u32),
    start: u64,
    duration: u64,
) -> OpEvent {
    let shift = shift_for(start | duration);
    OpEvent {
        flags: flags | shift << OP_SHIFT_BIT,
        threads: 1,
        split,
        position,
        start: (start >> shift) as u32,
        duration: (duration >> shift) as u32,
        busy_sum: (duration >> shift) as u32,
        busy_max: (duration >> shift) as u32,
        wait_sum: 0,
    }
}

/// How far to shift so that the number fits 32 bits: 0 for all but long ops.
#[inline(always)]
fn shift_for(ticks: u64) -> u8 {
    if ticks >> 32 == 0 {
        return 0;
    }
    32_u8.saturating_sub(ticks.leading_zeros() as u8).min(31)
}

/// Each thread's share of the node, as it is.
#[cold]
fn put_shares(
    lane: &HeldLane<'_>,
    split: FoldedSplit,
    position: u32,
    cursors: &[Cursor],
    over_by: Option<u64>,
) {
    for cursor in cursors.iter().filter(|cursor| cursor.position() == position) {
        let part = cursor.next;
        let start = part.start().saturating_sub(split.start);
        let spans = part.spans::<true>();
        let spans = over_by.map_or(spans, |over_by| spans.over_by(part.start(), over_by));
        let Spans { length: duration, inner_wait, after_wait } = spans;
        let shift = shift_for(start | duration | inner_wait | after_wait);
        let share = ThreadShare {
            flags: shift << OP_SHIFT_BIT,
            thread: cursor.log.thread_index.load(Relaxed) as u16,
            split: split.split,
            position,
            start: (start >> shift) as u32,
            duration: (duration >> shift) as u32,
            inner_wait: (inner_wait >> shift) as u32,
            after_wait: (after_wait >> shift) as u32,
            os_thread: cursor.log.os_thread(),
        };
        lane.put(&share.encode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_shifted_only_when_they_do_not_fit() {
        assert_eq!(shift_for(0), 0);
        assert_eq!(shift_for(u64::from(u32::MAX)), 0);
        assert_eq!(shift_for(1 << 32), 1);
        assert_eq!(shift_for(1 << 40), 9);
    }
}
