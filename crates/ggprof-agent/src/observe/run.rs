//! A graph run: one call of the program to compute a graph, from the outermost
//! entry point to its return. A graph computed without a scheduler is a run of
//! its own.

use ggprof_spool::layout::{GraphRunBegin, GraphRunEnd, NONE};

use super::batches;
use super::begun::{Begun, CanBeLeft, Frame};
use super::fail_open;
use super::positions;
use super::schedulers;
use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::recorder::admission::Admission;
use crate::recorder::children;
use crate::recorder::current;
use crate::recorder::gate::UNRECORDED;
use crate::recorder::lane::HeldLane;

/// Status of a run that a C++ exception ended; ggml's own are small.
pub(crate) const UNWOUND: i32 = i32::MIN;

/// The run this thread is in. If an exception drops it, its end is still written; if it is
/// dropped because of a fault of the agent, the thread leaves it as well.
#[derive(Debug)]
pub(crate) struct Run(Begun<InRun>);

#[derive(Debug)]
struct InRun {
    thread: ThreadInRun,
    /// Which of the program's it is, those that are not recorded included.
    number: u64,
}

/// What happens on this thread belongs to the run, until this is dropped.
#[derive(Debug)]
struct ThreadInRun {
    /// [`UNRECORDED`] for a run that is not recorded: what happens until it ends still belongs to
    /// it.
    id: u32,
    _admission: Admission<'static>,
}

impl ThreadInRun {
    fn enter(this: &ThisThread, id: u32, admission: Admission<'static>) -> ThreadInRun {
        this.run.set(id);
        this.splits_in_run.set(0);
        this.positions_call.set(0);
        this.forget_copies();
        ThreadInRun { id, _admission: admission }
    }
}

impl Drop for ThreadInRun {
    fn drop(&mut self) {
        ThisThread::with(|this| this.run.set(NONE));
    }
}

impl Run {
    /// `None` inside another run: then the call belongs to that run. The same inside an op of a run, which
    /// may be another thread's if this is a worker.
    pub(crate) fn begin(this: &ThisThread, frame: Frame, scheduler: Pointer) -> Option<Run> {
        let recorder = current::recording_or_forked()?;
        if this.is_in_run() || this.is_in_op() {
            return None;
        }
        let ticks = clock::ticks();
        let Some((admission, number)) = recorder.admit_run() else {
            // A child for which no fork handler ran.
            return children::in_child().and(None);
        };
        fault_point!();
        this.scheduler.set(scheduler as usize);
        let id = if admission.writes() { recorder.next_run() } else { UNRECORDED };
        let thread = ThreadInRun::enter(this, id, admission);
        this.run_start.set(ticks);
        this.last_seen.set(ticks);
        let run = InRun { thread, number };
        fault_point!();
        if run.is_recorded()
            && let Some(lane) = this.lane(recorder)
        {
            this.preferred_lane.set(lane.number);
            batches::note_run(this, &lane);
            run.write_begin(this, &lane, scheduler, ticks);
            fault_point!();
        }
        Some(Run(Begun::new(this, frame, run)))
    }

    /// Inside a guard, with a lane already held.
    pub(crate) fn finish_in(mut self, this: &ThisThread, lane: &HeldLane<'_>, status: i32) {
        if let Some(run) = self.0.take() {
            run.write_end(this, lane, status, clock::ticks());
        }
    }

    /// After the real function, outside any guard.
    pub(crate) fn finish(mut self, status: i32) {
        self.end(status);
    }

    fn end(&mut self, status: i32) {
        if let Some(run) = self.0.take() {
            run.end(status, clock::ticks());
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end(UNWOUND);
    }
}

impl CanBeLeft for InRun {
    /// When the program left it is not known. It counts as under way until it was last seen.
    fn left(self) {
        let ticks = ThisThread::with(|this| this.last_seen.get());
        self.end(UNWOUND, ticks);
    }
}

impl InRun {
    fn write_begin(&self, this: &ThisThread, lane: &HeldLane<'_>, scheduler: Pointer, ticks: u64) {
        let scheduler = if scheduler.is_null() { NONE } else { schedulers::number(scheduler) };
        fault_point!();
        let (run, os_thread) = (self.thread.id, this.os_thread());
        let number = self.number;
        let begin =
            GraphRunBegin { run, scheduler, os_thread, ticks, number, ..Default::default() };
        lane.put(&begin.encode());
    }

    fn is_recorded(&self) -> bool {
        self.thread.id != UNRECORDED
    }

    fn end(self, status: i32, ticks: u64) {
        fail_open::guard((), |this| {
            fault_point!();
            let recorder = current::recording().filter(|_| self.is_recorded());
            let lane = recorder.and_then(|recorder| this.lane(recorder));
            if let Some(lane) = lane {
                self.write_end(this, &lane, status, ticks);
            }
        });
    }

    fn write_end(&self, this: &ThisThread, lane: &HeldLane<'_>, status: i32, ticks: u64) {
        lane.recorder.sample_clock_if_due(lane);
        fault_point!();
        let (run, splits) = (self.thread.id, this.splits_in_run.get());
        let end = GraphRunEnd { run, status, splits, ticks, ..Default::default() };
        lane.put(&end.encode());
        fault_point!();
        positions::note_end(this, lane, status, ticks);
        fault_point!();
    }
}
