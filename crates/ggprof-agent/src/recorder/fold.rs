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
    let mut cursors: [Cursor; MAX_CURSORS] = [const { Cursor { log: None, next: 0 } }; MAX_CURSORS];
    let mut threads = 0;
    for (cursor, log) in cursors.iter_mut().zip(lane.slot().logs()) {
        cursor.log = Some(log);
        threads += 1;
    }
    let cursors = &mut cursors[..threads];
    let mut ops = 0;
    while let Some(position) = cursors.iter().filter_map(Cursor::position).min() {
        let mut op = OpInTicks::default();
        for cursor in cursors.iter_mut() {
            while cursor.position() == Some(position) {
                let Some((log, part)) = cursor.take(split) else { break };
                op.add(&part);
                if lane.recorder.threads {
                    put_share(lane, split, position, log, &part);
                }
            }
        }
        if op.fused != 0 {
            on_fused(position, op.fused);
        }
        lane.put(&op.encode(split, position).encode());
        ops += 1;
    }
    Folded { ops, threads: threads as u16 }
}

const MAX_CURSORS: usize = 512;

/// How far one thread's log has been merged.
struct Cursor {
    log: Option<&'static ThreadLog>,
    next: usize,
}

impl Cursor {
    #[inline]
    fn position(&self) -> Option<u32> {
        let share = self.log?.shares().get(self.next)?;
        Some(share.position.load(Relaxed))
    }

    #[inline]
    fn take(&mut self, split: FoldedSplit) -> Option<(&'static ThreadLog, Part)> {
        let log = self.log?;
        let shares = log.shares();
        let share = shares.get(self.next)?;
        self.next += 1;
        Some((log, Part::of(share, self.next == shares.len(), split)))
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
    fn of(share: &Share, is_last: bool, split: FoldedSplit) -> Part {
        let start = share.start.load(Relaxed);
        let mut end = share.end.load(Relaxed);
        let mut after_wait = share.after_wait.load(Relaxed);
        if end == 0 {
            end = split.end;
        }
        if is_last {
            // The thread may still be on its way out of the last barrier; it
            // waited there until the graph ended.
            after_wait = split.end.saturating_sub(end);
        }
        Part {
            start,
            end: end.max(start),
            inner_wait: share.inner_wait.load(Relaxed),
            after_wait,
            fused: share.fused.load(Relaxed),
        }
    }

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
    fn add(&mut self, part: &Part) {
        self.first = if self.threads == 0 { part.start } else { self.first.min(part.start) };
        self.last = self.last.max(part.end);
        self.busy_sum += part.busy();
        self.busy_max = self.busy_max.max(part.busy());
        self.wait_sum += part.inner_wait + part.after_wait;
        self.threads += 1;
        self.fused |= part.fused;
    }

    fn encode(&self, split: FoldedSplit, position: u32) -> OpEvent {
        let start = self.first.saturating_sub(split.start);
        let duration = self.last.saturating_sub(self.first);
        let shift = shift_for(start | duration | self.busy_sum | self.wait_sum);
        let fused = if self.fused != 0 { OP_FUSED } else { 0 };
        OpEvent {
            flags: MEASURED_HOST | fused | shift << OP_SHIFT_BIT,
            threads: self.threads,
            split: split.split,
            position,
            start: (start >> shift) as u32,
            duration: (duration >> shift) as u32,
            busy_sum: (self.busy_sum >> shift) as u32,
            busy_max: (self.busy_max >> shift) as u32,
            wait_sum: (self.wait_sum >> shift) as u32,
        }
    }
}

/// How far to shift so that the number fits 32 bits: 0 for all but long ops.
pub(crate) fn shift_for(ticks: u64) -> u8 {
    32_u8.saturating_sub(ticks.leading_zeros() as u8).min(31)
}

fn put_share(lane: &HeldLane<'_>, split: FoldedSplit, position: u32, log: &ThreadLog, part: &Part) {
    let start = part.start.saturating_sub(split.start);
    let duration = part.end - part.start;
    let shift = shift_for(start | duration | part.inner_wait | part.after_wait);
    let share = ThreadShare {
        flags: shift << OP_SHIFT_BIT,
        thread: log.thread_index.load(Relaxed) as u16,
        split: split.split,
        position,
        start: (start >> shift) as u32,
        duration: (duration >> shift) as u32,
        inner_wait: (part.inner_wait >> shift) as u32,
        after_wait: (part.after_wait >> shift) as u32,
        os_thread: log.os_thread(),
    };
    lane.put(&share.encode());
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
