//! Lanes: the right to write records. A thread holds a lane for the length of one hook call, and
//! with it a block of the file, the slot of the running graph and the memory of what was seen
//! before (`observe::lane_memory`). A thread returns to the lane it used last, so that this memory
//! stays in its caches.

use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ggprof_spool::layout::{self, LossCounter, UNIT};
use ggprof_spool::writer::BlockWriter;

use super::Recorder;
use super::admission::Admission;
use super::blocks::BlockUse;
use super::definitions::Owner;
use super::mapped;
use super::run_slot::RunSlot;
use crate::clock;
use crate::fault::fault_point;

/// Threads that compute graphs at the same moment, workers not counted.
pub(crate) const LANES: usize = 64;

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
    inner: UnsafeCell<LaneState>,
}

#[derive(Debug)]
struct LaneState {
    writer: BlockWriter,
    sequence: u32,
    /// What the lane's users remember; `None` until there is something, and while it is in use.
    memory: Option<Box<dyn Any + Send>>,
    /// Whose descriptions the lane remembers (`blocks`).
    epoch: u32,
}

// SAFETY: `inner` is only reached through a HeldLane, of which `held` allows
// one at a time; `slot` is made of atomics.
unsafe impl Sync for Lane {}

impl Lanes {
    /// Never given back: worker threads keep pointers to the slots. `None` without memory.
    pub(crate) fn new() -> Option<Lanes> {
        let lanes = mapped::array::<Lane>(LANES)?;
        for number in 0..LANES {
            // SAFETY: inside of the new mapping, which nobody else knows.
            unsafe { lanes.add(number).write(Lane::new()) };
        }
        // SAFETY: all of them were written, and stay.
        let lanes = unsafe { std::slice::from_raw_parts(lanes.as_ptr(), LANES) };
        Some(Lanes { lanes, running: AtomicU64::new(0) })
    }

    pub(crate) fn hold<'r>(
        &self,
        recorder: &'r Recorder,
        preferred: usize,
        admission: Admission<'r>,
    ) -> Option<HeldLane<'r>> {
        let (number, alone) = match self.lanes.get(preferred).and_then(Lane::try_hold) {
            Some(alone) => (preferred, alone),
            None => self.hold_any()?,
        };
        Some(HeldLane { recorder, alone, number, admission })
    }

    #[cold]
    fn hold_any(&self) -> Option<(usize, Alone)> {
        let mut lanes = self.lanes.iter().enumerate();
        lanes.find_map(|(number, lane)| Some((number, lane.try_hold()?)))
    }

    /// Takes the block away from a lane that no thread holds.
    pub(crate) fn vacate(&self, number: usize) -> bool {
        let Some(alone) = self.lanes[number].try_hold() else { return false };
        // SAFETY: we have the lane alone.
        unsafe { (*alone.0.inner.get()).writer = BlockWriter::without_block() };
        true
    }

    pub(crate) fn have_running_slots(&self) -> bool {
        self.running.load(Ordering::Acquire) != 0
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
    fn new() -> Lane {
        Lane {
            held: AtomicBool::new(false),
            slot: RunSlot::new(),
            inner: UnsafeCell::new(LaneState {
                writer: BlockWriter::without_block(),
                sequence: 0,
                memory: None,
                epoch: 0,
            }),
        }
    }

    fn try_hold(&'static self) -> Option<Alone> {
        let ours = !self.held.load(Ordering::Relaxed) && !self.held.swap(true, Ordering::Acquire);
        ours.then(|| Alone(self))
    }
}

/// A lane that this thread alone has, until it is dropped.
#[derive(Debug)]
struct Alone(&'static Lane);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

/// A lane in use; dropping it lets the next thread have it.
#[derive(Debug)]
pub(crate) struct HeldLane<'r> {
    pub(crate) recorder: &'r Recorder,
    alone: Alone,
    pub(crate) number: usize,
    admission: Admission<'r>,
}

/// A graph runs in the slot of a lane. It ends when this is dropped, which must be before
/// the lane is.
#[derive(Debug)]
pub(crate) struct RunningGraph<'r> {
    lanes: &'r Lanes,
    slot: &'static RunSlot,
    number: usize,
}

impl Drop for RunningGraph<'_> {
    fn drop(&mut self) {
        self.lanes.running.fetch_and(!(1 << self.number), Ordering::Release);
        self.slot.end();
    }
}

impl<'r> HeldLane<'r> {
    pub(crate) fn slot(&self) -> &'static RunSlot {
        &self.alone.0.slot
    }

    /// The graph in the slot begins to run.
    pub(crate) fn begin_run(&self, nodes: usize) -> RunningGraph<'r> {
        let (lanes, slot, number) = (self.recorder.lanes(), self.slot(), self.number);
        slot.begin(nodes);
        let running = RunningGraph { lanes, slot, number };
        lanes.running.fetch_or(1 << number, Ordering::Release);
        running
    }

    /// Whether anything may be written now. Where not, all that writes does nothing.
    pub(crate) fn writes(&self) -> bool {
        self.admission.writes()
    }

    /// Called once, before anything is written.
    pub(crate) fn keep_up_with(&self, epoch: u32) {
        let inner = self.inner();
        if inner.epoch != epoch {
            inner.epoch = epoch;
            inner.memory = None;
        }
        // While the lane holds a block of this epoch or an older one, what it describes is kept.
        if inner.writer.block().is_none() {
            self.take_block();
        }
    }

    /// Writes an event of one unit.
    #[inline]
    pub(crate) fn put(&self, record: &[u8; UNIT]) {
        if self.writes() && self.inner().writer.put(record).is_err() && self.take_block() {
            let _ = self.inner().writer.put(record);
        }
    }

    #[inline(always)]
    pub(crate) fn put_long(&self, fixed: &mut [u8], tail: &[u8]) {
        if self.writes() && self.inner().writer.put_long(fixed, tail).is_err() && self.take_block()
        {
            let _ = self.inner().writer.put_long(fixed, tail);
        }
    }

    /// Writes a description, which events refer to by number.
    pub(crate) fn define(&self, record: &[u8; UNIT]) {
        if self.writes() {
            self.recorder.definitions().put(self.recorder, record);
        } else {
            self.recorder.set_epoch_due();
        }
    }

    pub(crate) fn define_long(&self, fixed: &mut [u8], tail: &[u8]) {
        if self.writes() {
            self.recorder.definitions().put_long(self.recorder, fixed, tail);
        } else {
            self.recorder.set_epoch_due();
        }
    }

    /// Writes the description of something that the program made, which is valid until it
    /// is gone.
    pub(crate) fn define_lasting(&self, owner: Owner, record: &[u8; UNIT]) {
        self.recorder.definitions().remember(owner, record, self.writes());
        self.define(record);
    }

    /// The same for an object of which more becomes known: this replaces the earlier description.
    pub(crate) fn define_newest(&self, owner: Owner, record: &mut [u8]) {
        self.recorder.definitions().replace(owner, record, self.writes());
        self.define_long(record, &[]);
    }

    /// The same for the last time: the object is gone.
    pub(crate) fn define_last(&self, owner: Owner, record: &mut [u8]) {
        if self.writes() {
            self.forget(owner);
            self.define_long(record, &[]);
        } else {
            self.recorder.definitions().bury(owner, record);
            self.recorder.set_epoch_due();
        }
    }

    /// The object is gone: it will not be described again.
    pub(crate) fn forget(&self, owner: Owner) {
        self.recorder.definitions().forget(owner);
    }

    /// What this lane remembers, of its epoch. Taken out while in use, so that it and `put`
    /// never borrow the lane's inside at the same time.
    pub(crate) fn take_memory<M: Any + Send + Default>(&self) -> Box<M> {
        let memory = self.inner().memory.take();
        memory.and_then(|memory| memory.downcast().ok()).unwrap_or_default()
    }

    pub(crate) fn return_memory<M: Any + Send>(&self, memory: Box<M>) {
        self.inner().memory = Some(memory);
    }

    #[allow(clippy::mut_from_ref)]
    fn inner(&self) -> &mut LaneState {
        // SAFETY: `held` gives this thread the lane alone, a HeldLane is not
        // shared between threads, and no caller above keeps the reference
        // across another call of this function.
        unsafe { &mut *self.alone.0.inner.get() }
    }

    #[cold]
    fn take_block(&self) -> bool {
        let wanted = BlockUse { lane: Some(self.number), epoch: self.inner().epoch };
        let Some(block) = self.recorder.take_block(wanted) else {
            self.recorder.lose(LossCounter::NoBlock, 1);
            return false;
        };
        fault_point!();
        let inner = self.inner();
        self.recorder.spool.let_go(inner.writer.block(), block.index);
        inner.sequence += 1;
        // SAFETY: an empty block of the mapped file that no other writer has; it is taken
        // away only by `vacate` (`blocks`).
        unsafe {
            inner.writer.start(block.base, self.number as u32, inner.sequence, block.index);
        }
        if self.recorder.limited {
            // In a ring, older samples may be overwritten before the events of this block are.
            let _ = inner.writer.put(&clock::sample().encode());
        }
        true
    }
}

const _: () = assert!(LANES < layout::DEFINITIONS_LANE as usize);
