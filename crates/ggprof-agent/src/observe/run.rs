//! A graph run: one call of the program to compute a graph, from the outermost
//! entry point to its return. A graph computed without a scheduler is a run of
//! its own.

use ggprof_spool::layout::{GraphRunBegin, GraphRunEnd, NONE};

use super::schedulers;
use crate::ffi::api::Pointer;
use crate::recorder::Recorder;
use crate::recorder::gate::UNRECORDED;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, fail_open, lifecycle};

/// Status of a run that a C++ exception ended; ggml's own are small.
pub(crate) const UNWOUND: i32 = i32::MIN;

/// The run this thread is in. Dropped by a passing exception it still ends.
#[derive(Debug)]
pub(crate) struct Run {
    /// Or [`UNRECORDED`]: what happens until it ends belongs to it all the same.
    id: u32,
    recorder: &'static Recorder,
    finished: bool,
}

impl Run {
    /// `None` inside another run: then the call belongs to that.
    pub(crate) fn begin(this: &ThisThread, scheduler: Pointer) -> Option<Run> {
        let recorder = lifecycle::recording()?;
        if this.run.get() != NONE {
            return None;
        }
        let ticks = clock::ticks();
        this.scheduler.set(scheduler as usize);
        this.run.set(UNRECORDED);
        let mut run = Run { id: UNRECORDED, recorder, finished: false };
        if recorder.admits_run() {
            run.id = recorder.next_run();
            this.run.set(run.id);
            this.splits_in_run.set(0);
            if let Some(lane) = recorder.lane(this.preferred_lane.get()) {
                this.preferred_lane.set(lane.number);
                run.write_begin(this, &lane, scheduler, ticks);
            }
        }
        Some(run)
    }

    fn write_begin(&self, this: &ThisThread, lane: &HeldLane<'_>, scheduler: Pointer, ticks: u64) {
        let scheduler =
            if scheduler.is_null() { NONE } else { schedulers::number(scheduler, lane) };
        let (run, os_thread) = (self.id, this.os_thread());
        let begin = GraphRunBegin { run, scheduler, os_thread, ticks, ..Default::default() };
        lane.put(&begin.encode());
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.id != UNRECORDED
    }

    /// Inside a guard, with a lane already held.
    pub(crate) fn finish_in(mut self, this: &ThisThread, lane: &HeldLane<'_>, status: i32) {
        self.write_end(this, lane, status, clock::ticks());
        self.leave(this);
    }

    /// After the real function, outside any guard.
    pub(crate) fn finish(mut self, status: i32) {
        self.end(status);
    }

    fn end(&mut self, status: i32) {
        let ticks = clock::ticks();
        fail_open::guard((), |this| {
            let recorder = lifecycle::recording().filter(|_| self.is_recorded());
            let lane = recorder.and_then(|recorder| recorder.lane(this.preferred_lane.get()));
            if let Some(lane) = lane {
                self.write_end(this, &lane, status, ticks);
            }
            self.leave(this);
        });
    }

    fn write_end(&mut self, this: &ThisThread, lane: &HeldLane<'_>, status: i32, ticks: u64) {
        lane.recorder.sample_clock_if_due(lane);
        let splits = this.splits_in_run.get();
        let end = GraphRunEnd { run: self.id, status, splits, ticks, ..Default::default() };
        lane.put(&end.encode());
    }

    /// What follows on this thread belongs to the run no more.
    fn leave(&mut self, this: &ThisThread) {
        this.run.set(NONE);
        self.finished = true;
        if self.is_recorded() {
            self.recorder.leave();
        } else {
            self.recorder.end_unrecorded();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.finished {
            self.end(UNWOUND);
        }
    }
}
