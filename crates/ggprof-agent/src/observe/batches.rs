//! What the program hands to libllama: a batch of tokens of one or several sequences, and the call
//! that computes it. A call is written down when a graph run in it is recorded, so that there are no
//! calls in the recording without one.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use ggprof_spool::layout::{BATCH_ENCODE, BATCH_SEQUENCE_BYTES, BatchBegin, BatchEnd};

use super::begun::{Begun, CanBeLeft, Frame};
use super::contexts;
use super::fail_open;
use super::run::UNWOUND;
use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::batch_facts::BatchFacts;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;

/// How many calls of libllama the process has made, recorded or not.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// The number of a call, or of a graph run that stands for one.
pub(super) fn next_call() -> u32 {
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The function that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchFunction {
    Decode,
    Encode,
}

/// A call of libllama that this thread is in.
#[derive(Debug)]
pub(crate) struct BatchCall {
    number: u32,
    context: u32,
    start: u64,
    batch: BatchFacts,
    is_written: Cell<bool>,
}

/// What happens on this thread belongs to the call, until this is dropped. Dropped by a passing
/// exception, the call's end is still written.
#[derive(Debug)]
pub(crate) struct ThreadInCall(Begun<BatchCall>);

impl ThreadInCall {
    /// `None` inside another call, and where nothing is recorded.
    pub(crate) fn enter(
        this: &ThisThread,
        frame: Frame,
        function: BatchFunction,
        context: Pointer,
        facts: impl FnOnce() -> BatchFacts,
    ) -> Option<ThreadInCall> {
        current::recording_or_forked()?;
        let number = next_call();
        if !this.call.get().is_null() {
            return None;
        }
        let mut batch = facts();
        fault_point!();
        let start = clock::ticks();
        if function == BatchFunction::Encode {
            batch.flags |= BATCH_ENCODE;
        }
        let context = contexts::number(context);
        let call = BatchCall { number, context, start, batch, is_written: Cell::new(false) };
        let begun = Begun::new(this, frame, call);
        fault_point!();
        this.call.set(begun.value());
        Some(ThreadInCall(begun))
    }

    /// After the real function, outside any guard.
    pub(crate) fn finish(mut self, status: c_int) {
        self.end(status);
    }

    fn end(&mut self, status: c_int) {
        if let Some(call) = self.0.take() {
            call.end(status, clock::ticks());
        }
    }
}

impl Drop for ThreadInCall {
    fn drop(&mut self) {
        self.end(UNWOUND);
    }
}

impl CanBeLeft for BatchCall {
    fn left(self) {
        let ticks = ThisThread::with(|this| this.last_seen.get()).max(self.start);
        self.end(UNWOUND, ticks);
    }
}

impl BatchCall {
    fn end(self, status: c_int, ticks: u64) {
        ThisThread::with(|this| this.call.set(std::ptr::null()));
        if self.is_written.get() {
            fail_open::guard((), |this| self.write_end(this, status, ticks));
        }
    }

    fn write_begin(&self, this: &ThisThread, lane: &HeldLane<'_>) {
        let BatchFacts { flags, tokens, outputs, sequences } = &self.batch;
        let begin = BatchBegin {
            flags: *flags,
            call: self.number,
            context: self.context,
            os_thread: this.os_thread(),
            tokens: *tokens,
            outputs: *outputs,
            sequences: sequences.len() as u32,
            ticks: self.start,
            ..Default::default()
        };
        let mut tail = Vec::with_capacity(sequences.len() * BATCH_SEQUENCE_BYTES);
        sequences.iter().for_each(|sequence| tail.extend_from_slice(&sequence.encode()));
        lane.put_long(&mut begin.encode(), &tail);
        fault_point!();
    }

    fn write_end(&self, this: &ThisThread, status: c_int, ticks: u64) {
        fault_point!();
        this.with_lane(|lane| {
            let end = BatchEnd { call: self.number, status, ticks, ..Default::default() };
            lane.put(&end.encode());
        });
        contexts::note_computed(self.context, self.number);
    }
}

/// Called before a graph run of this thread is recorded: records the call that it is part of, once.
pub(crate) fn note_run(this: &ThisThread, lane: &HeldLane<'_>) {
    // SAFETY: it is this thread's, and removed from here before it is freed (`BatchCall::end`).
    let Some(call) = (unsafe { this.call.get().as_ref() }) else { return };
    if !call.is_written.replace(true) {
        fault_point!();
        call.write_begin(this, lane);
    }
}
