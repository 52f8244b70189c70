//! A graph run: one call of the program to compute a graph, from the outermost
//! entry point to its return. A graph computed without a scheduler is a run of
//! its own.

use ggprof_spool::layout::{GraphRunBegin, GraphRunEnd, NONE};

use super::schedulers;
use crate::ffi::api::Pointer;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, fail_open, lifecycle};

/// Status of a run that a C++ exception ended; ggml's own are small.
pub(crate) const UNWOUND: i32 = i32::MIN;

/// The run this thread is in. Dropped by a passing exception it still ends.
#[derive(Debug)]
pub(crate) struct Run {
    id: u32,
    finished: bool,
}

impl Run {
    /// `None` inside another run: then the call belongs to that.
    pub(crate) fn begin(this: &ThisThread, scheduler: Pointer) -> Option<Run> {
        let recorder = lifecycle::recording()?;
        let lane = recorder.lane(this.preferred_lane.get())?;
        this.preferred_lane.set(lane.number);
        Run::begin_in(this, &lane, scheduler)
    }

    /// As `begin`, with a lane already held.
    pub(crate) fn begin_in(
        this: &ThisThread,
        lane: &HeldLane<'_>,
        scheduler: Pointer,
    ) -> Option<Run> {
        if this.run.get() != NONE {
            return None;
        }
        let ticks = clock::ticks();
        this.scheduler.set(scheduler as usize);
        let scheduler =
            if scheduler.is_null() { NONE } else { schedulers::number(scheduler, lane) };
        let id = lane.recorder.next_run();
        let os_thread = this.os_thread();
        let begin = GraphRunBegin { run: id, scheduler, os_thread, ticks, ..Default::default() };
        lane.put(&begin.encode());
        this.run.set(id);
        this.splits_in_run.set(0);
        Some(Run { id, finished: false })
    }

    /// Inside a guard, with a lane already held.
    pub(crate) fn finish_in(mut self, this: &ThisThread, lane: &HeldLane<'_>, status: i32) {
        self.write_end(this, lane, status, clock::ticks());
    }

    /// After the real function, outside any guard.
    pub(crate) fn finish(mut self, status: i32) {
        self.end(status);
    }

    fn end(&mut self, status: i32) {
        let ticks = clock::ticks();
        fail_open::guard((), |this| {
            let lane = lifecycle::recording()
                .and_then(|recorder| recorder.lane(this.preferred_lane.get()));
            match lane {
                Some(lane) => self.write_end(this, &lane, status, ticks),
                None => this.run.set(NONE),
            }
        });
        self.finished = true;
    }

    fn write_end(&mut self, this: &ThisThread, lane: &HeldLane<'_>, status: i32, ticks: u64) {
        this.run.set(NONE);
        self.finished = true;
        lane.recorder.sample_clock_if_due(lane);
        let splits = this.splits_in_run.get();
        let end = GraphRunEnd { run: self.id, status, splits, ticks, ..Default::default() };
        lane.put(&end.encode());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.finished {
            self.end(UNWOUND);
        }
    }
}
