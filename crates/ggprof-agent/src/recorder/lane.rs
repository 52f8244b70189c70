//! Lanes: the right to write records. A thread holds a lane for the length of
//! one hook call, and with it a block of the file, the slot of the running graph
//! and the memory of nodes seen before (`observe::graph`). A thread comes back
//! to the lane it used last, so that memory stays warm.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ggprof_spool::layout::{LossKind, UNIT};
use ggprof_spool::writer::BlockWriter;

use super::Recorder;
use super::run_slot::RunSlot;
use crate::lifecycle;
use crate::observe::graph::KnownNodes;

/// Threads that compute graphs at the same moment, workers not counted.
const LANES: usize = 64;

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: &'static [Lane],
    /// Bit per lane: a graph runs in its slot. A worker looks for its run once
    /// per graph, and need not touch the slots of idle lanes.
    running: AtomicU64,
}

#[derive(Debug)]
struct Lane {
    held: AtomicBool,
    slot: RunSlot,
    inner: UnsafeCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    writer: BlockWriter,
    sequence: u32,
    known: KnownNodes,
}

// SAFETY: `inner` is only reached through a HeldLane, of which `held` allows
// one at a time; `slot` is made of atomics.
unsafe impl Sync for Lane {}

impl Lanes {
    /// Leaked on purpose: worker threads keep pointers to the slots.
    pub(crate) fn new() -> Lanes {
        let lanes = (0..LANES).map(|_| Lane {
            held: AtomicBool::new(false),
            slot: RunSlot::new(),
            inner: UnsafeCell::new(Inner {
                writer: BlockWriter::without_block(),
                sequence: 0,
                known: KnownNodes::default(),
            }),
        });
        Lanes { lanes: Box::leak(lanes.collect()), running: AtomicU64::new(0) }
    }

    pub(crate) fn hold<'r>(
        &self,
        recorder: &'r Recorder,
        preferred: usize,
    ) -> Option<HeldLane<'r>> {
        let order = (preferred..LANES).chain(0..preferred.min(LANES));
        let number = order.into_iter().find(|&n| self.lanes[n].try_hold())?;
        Some(HeldLane { recorder, lane: &self.lanes[number], number })
    }

    /// The slots in which graphs run now, for a worker looking for its own.
    pub(crate) fn running_slots(&self) -> impl Iterator<Item = &'static RunSlot> + use<> {
        let lanes = self.lanes;
        let mut left = self.running.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let number = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            lanes.get(number).map(|lane| &lane.slot)
        })
    }
}

const _: () = assert!(LANES <= u64::BITS as usize);

impl Lane {
    fn try_hold(&self) -> bool {
        !self.held.load(Ordering::Relaxed) && !self.held.swap(true, Ordering::Acquire)
    }
}

/// A lane in use; dropping it lets the next thread have it.
#[derive(Debug)]
pub(crate) struct HeldLane<'r> {
    pub(crate) recorder: &'r Recorder,
    lane: &'static Lane,
    pub(crate) number: usize,
}

impl HeldLane<'_> {
    pub(crate) fn slot(&self) -> &'static RunSlot {
        &self.lane.slot
    }

    /// The graph in the slot begins to run.
    pub(crate) fn begin_run(&self, nodes: usize) {
        self.slot().begin(nodes);
        self.recorder.lanes().running.fetch_or(1 << self.number, Ordering::Release);
    }

    pub(crate) fn end_run(&self) {
        self.recorder.lanes().running.fetch_and(!(1 << self.number), Ordering::Release);
        self.slot().end();
    }

    /// Writes a record of one unit.
    #[inline]
    pub(crate) fn put(&self, record: &[u8; UNIT]) {
        if self.inner().writer.put(record).is_err() && self.take_block() {
            let _ = self.inner().writer.put(record);
        }
    }

    pub(crate) fn put_long(&self, fixed: &mut [u8], tail: &[u8]) {
        if self.inner().writer.put_long(fixed, tail).is_err() && self.take_block() {
            let _ = self.inner().writer.put_long(fixed, tail);
        }
    }

    /// What this lane remembers of nodes. Taken out while in use, so that it
    /// and `put` never borrow the lane's inside at the same time.
    pub(crate) fn take_known(&self) -> KnownNodes {
        std::mem::take(&mut self.inner().known)
    }

    pub(crate) fn return_known(&self, known: KnownNodes) {
        self.inner().known = known;
    }

    #[allow(clippy::mut_from_ref)]
    fn inner(&self) -> &mut Inner {
        // SAFETY: `held` gives this thread the lane alone, a HeldLane is not
        // shared between threads, and no caller above keeps the reference
        // across another call of this function.
        unsafe { &mut *self.lane.inner.get() }
    }

    #[cold]
    fn take_block(&self) -> bool {
        match self.recorder.spool.take_block() {
            Ok(block) => {
                let inner = self.inner();
                inner.sequence += 1;
                // SAFETY: a fresh block of the mapped file, handed out once and
                // never unmapped (`SpoolFile`).
                unsafe {
                    inner.writer.start(block.base, self.number as u32, inner.sequence, block.index);
                }
                true
            }
            Err(reason) => {
                self.recorder.lose(LossKind::NoBlock, 1);
                lifecycle::stop(self.recorder, reason);
                false
            }
        }
    }
}

impl Drop for HeldLane<'_> {
    fn drop(&mut self) {
        self.lane.held.store(false, Ordering::Release);
    }
}
