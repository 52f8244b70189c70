//! The shares of all threads into one record per op, when the graph has run.
//!
//! Every thread met the nodes in the same order, so the logs are merged like
//! sorted lists. Nothing is computed that the reader could compute: sums and
//! maxima only, because the single shares are not kept unless asked for.

use std::sync::atomic::Ordering::Relaxed;

use ggprof_spool::layout::{MEASURED_HOST, OP_FUSED, OP_SHIFT_BIT, OpEvent, ThreadShare};

use super::lane::HeldLane;
use super::thread_log::{Share, ThreadLog};

/// The split whose shares are folded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldedSplit {
    pub(crate) split: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What folding gives back to the split's end record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folded {
    pub(crate) ops: u32,
    pub(crate) threads: u16,
}

/// Writes one op record per computed node; `on_fused` hears of fusions first.
pub(crate) fn write_ops(
    lane: &HeldLane<'_>,
    split: FoldedSplit,
    mut on_fused: impl FnMut(u32, u32),
) -> Folded {
    let mut cursors: Vec<Cursor> = lane.slot().logs().map(Cursor::new).collect();
    let waits_unseen = waits_are_unseen(&cursors);
    let mut ops = 0;
    while let Some(position) = next_position(&cursors) {
        let next_start = if waits_unseen { next_start(&cursors, position) } else { u64::MAX };
        if lane.recorder.threads {
            put_shares(lane, split, position, &cursors);
        }
        let mut op = OpInTicks { first: u64::MAX, ..OpInTicks::default() };
        for cursor in &mut cursors {
            if let Some(part) = cursor.take(position, split.end) {
                op.add(&part.until(next_start));
            }
        }
        if op.fused != 0 {
            on_fused(position, op.fused);
        }
        lane.put(&op.encode(split, position).encode());
        ops += 1;
    }
    Folded { ops, threads: cursors.len() as u16 }
}

/// Whether several threads wait for each other where nobody sees it, because the compiler put the
/// barrier in line. Then a share seems to last until its thread begins the next one.
fn waits_are_unseen(cursors: &[Cursor]) -> bool {
    /// To wait for no time at all so often is not possible.
    const LOOKED_AT: usize = 16;
    let waited = |share: &Share| share.after_wait.load(Relaxed) != 0;
    cursors.len() > 1 && !cursors.iter().any(|it| it.rest.iter().take(LOOKED_AT).any(waited))
}

/// When the first thread begins what comes after the position: all have finished it by then.
fn next_start(cursors: &[Cursor], position: u32) -> u64 {
    let starts = cursors.iter().filter_map(|cursor| {
        let mut rest = cursor.rest.iter();
        rest.find(|share| share.position.load(Relaxed) != position)
    });
    starts.map(|share| share.start.load(Relaxed)).min().unwrap_or(u64::MAX)
}

/// The least position at which a thread has a share left. All threads meet all
/// nodes, so it is nearly always where the first one stands.
#[inline(always)]
fn next_position(cursors: &[Cursor]) -> Option<u32> {
    let (first, others) = cursors.split_first()?;
    let mut least = first.position();
    for cursor in others {
        if cursor.position() != least {
            least = least.min(cursor.position());
        }
    }
    (least != AT_END).then_some(least)
}

/// No node stands so far back.
const AT_END: u32 = u32::MAX;

/// How far one thread's log has been merged.
struct Cursor {
    rest: &'static [Share],
    log: &'static ThreadLog,
}

impl Cursor {
    fn new(log: &'static ThreadLog) -> Cursor {
        Cursor { log, rest: log.shares() }
    }

    #[inline(always)]
    fn position(&self) -> u32 {
        self.rest.first().map_or(AT_END, |share| share.position.load(Relaxed))
    }

    /// The thread's share of the node at the position, if it has one.
    #[inline(always)]
    fn take(&mut self, position: u32, split_end: u64) -> Option<Part> {
        let (share, rest) = self.rest.split_first()?;
        if share.position.load(Relaxed) != position {
            return None;
        }
        self.rest = rest;
        Some(Part::of(share, rest.is_empty(), split_end))
    }

    /// The next share without taking it.
    fn peek(&self, split_end: u64) -> Option<Part> {
        let (share, rest) = self.rest.split_first()?;
        Some(Part::of(share, rest.is_empty(), split_end))
    }
}

/// A share in plain numbers.
struct Part {
    start: u64,
    end: u64,
    inner_wait: u64,
    after_wait: u64,
    fused: u32,
}

impl Part {
    #[inline(always)]
    fn of(share: &Share, is_last: bool, split_end: u64) -> Part {
        let start = share.start.load(Relaxed);
        let mut end = share.end.load(Relaxed);
        let mut after_wait = share.after_wait.load(Relaxed);
        if is_last {
            // The thread may still be on its way out of the last barrier; it
            // waited there until the graph ended.
            if end == 0 {
                end = split_end;
            }
            after_wait = split_end.saturating_sub(end);
        }
        Part {
            start,
            end: end.max(start),
            inner_wait: share.inner_wait.load(Relaxed),
            after_wait,
            fused: share.fused.load(Relaxed),
        }
    }

    /// The same, over at this moment at the latest.
    #[inline(always)]
    fn until(self, latest: u64) -> Part {
        Part { end: self.end.min(latest).max(self.start), ..self }
    }

    #[inline(always)]
    fn busy(&self) -> u64 {
        (self.end - self.start).saturating_sub(self.inner_wait)
    }
}

/// One op over all threads, in full ticks.
#[derive(Default)]
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
    #[inline(always)]
    fn add(&mut self, part: &Part) {
        self.first = self.first.min(part.start);
        self.last = self.last.max(part.end);
        self.busy_sum += part.busy();
        self.busy_max = self.busy_max.max(part.busy());
        self.wait_sum += part.inner_wait + part.after_wait;
        self.threads += 1;
        self.fused |= part.fused;
    }

    #[inline(always)]
    fn encode(&self, split: FoldedSplit, position: u32) -> OpEvent {
        let start = self.first.saturating_sub(split.start);
        let duration = self.last.saturating_sub(self.first);
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
fn put_shares(lane: &HeldLane<'_>, split: FoldedSplit, position: u32, cursors: &[Cursor]) {
    for cursor in cursors.iter().filter(|cursor| cursor.position() == position) {
        let Some(part) = cursor.peek(split.end) else { continue };
        let start = part.start.saturating_sub(split.start);
        let duration = part.end - part.start;
        let shift = shift_for(start | duration | part.inner_wait | part.after_wait);
        let share = ThreadShare {
            flags: shift << OP_SHIFT_BIT,
            thread: cursor.log.thread_index.load(Relaxed) as u16,
            split: split.split,
            position,
            start: (start >> shift) as u32,
            duration: (duration >> shift) as u32,
            inner_wait: (part.inner_wait >> shift) as u32,
            after_wait: (part.after_wait >> shift) as u32,
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
