//! A thread's share of a node, from the moment ggml announces it.
//!
//! # Hot path: no allocation, no locks, no panics

use ggprof_spool::layout::LossCounter;

use super::fail_open;
use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::recorder::thread_log::ThreadLog;
use crate::recorder::{Recorder, current};

/// The first fields of ggml's `ggml_compute_params`: a thread's number and how many there are;
/// before mid-2024 a stage of the work came before them.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ComputeParams {
    fields: [i32; 3],
}

/// ggml's own limit of threads per graph.
const MOST_THREADS: i32 = 512;

impl ComputeParams {
    /// Number and count of the thread, as well as they can be guessed: a number is less than the
    /// count. If a stage comes first, numbers above the stage's are taken for counts. They only
    /// label threads.
    fn thread(&self) -> (u32, u32) {
        let [first, second, third] = self.fields;
        let is_pair = |index: i32, count: i32| index >= 0 && index < count && count <= MOST_THREADS;
        if is_pair(first, second) {
            (first as u32, second as u32)
        } else if is_pair(second, third) {
            (second as u32, third as u32)
        } else {
            // Unknown: its waits are timed, because there may be other threads.
            (0, 2)
        }
    }
}

/// This thread begins its share of the node. Rare cases are tail calls, so this function needs no
/// stack frame.
#[inline(always)]
pub(crate) fn begin(this: &ThisThread, params: *const ComputeParams, tensor: usize) {
    match clock::quick_ticks() {
        Some(now) => begin_now(this, params, tensor, now),
        None => begin_by_slow_clock(this, params, tensor),
    }
}

#[cold]
#[inline(never)]
fn begin_by_slow_clock(this: &ThisThread, params: *const ComputeParams, tensor: usize) {
    begin_now(this, params, tensor, clock::slow_ticks());
}

#[inline(always)]
fn begin_now(this: &ThisThread, params: *const ComputeParams, tensor: usize, now: u64) {
    if let Some(log) = this.log.get()
        && let Some(position) = log.position_of(tensor)
    {
        begin_at(this, log, tensor, position, now);
        return;
    }
    begin_elsewhere(this, params, tensor, now);
}

/// Begins a node whose function is called without an announcement, as fused ones are. Functions of
/// announced nodes arrive here as well and change nothing. `others` are arguments that may be
/// further nodes of a fusion. Returns whether the call showed something new; `None` where no
/// recorded run has the node.
pub(crate) fn begin_unannounced(
    this: &ThisThread,
    params: *const ComputeParams,
    tensor: usize,
    others: [usize; 3],
) -> Option<bool> {
    if this.log.get().is_some_and(|log| log.is_current(tensor)) {
        return Some(false);
    }
    let now = clock::ticks();
    let known = this.log.get().and_then(|log| Some((log, log.position_of(tensor)?)));
    let joined = known.or_else(|| {
        if is_at_rest() {
            return None;
        }
        let log = fail_open::guard(None, |_| join_run_of(this, params, tensor).ok())?;
        Some((log, log.position_of(tensor)?))
    });
    let (log, position) = joined?;
    log.note_reach(position, others);
    begin_at(this, log, tensor, position, now);
    log.set_fused(log.fused_behind(position, others));
    Some(true)
}

#[inline(always)]
fn begin_at(this: &ThisThread, log: &ThreadLog, tensor: usize, position: u32, now: u64) {
    // SAFETY: this thread's own, which live until its split has ended and are then removed.
    if let Some(choices) = unsafe { this.choices.get().as_ref() } {
        choices.meet(position);
    }
    if !log.begin(tensor, position, now) {
        lose(LossCounter::LogFull);
    }
}

/// The first op of a run on this thread, or one far from the last.
#[cold]
fn begin_elsewhere(this: &ThisThread, params: *const ComputeParams, tensor: usize, now: u64) {
    if is_at_rest() {
        return;
    }
    fail_open::guard((), |_| join_and_begin(this, params, tensor, now));
}

/// While nothing is recorded, hooks stay: then this is all that they do for an op.
fn is_at_rest() -> bool {
    current::recording().is_none_or(Recorder::is_at_rest)
}

fn join_and_begin(this: &ThisThread, params: *const ComputeParams, tensor: usize, now: u64) {
    match join_run_of(this, params, tensor) {
        Err(LossCounter::OpOutsideRun) if is_of_earlier_graph(this) => {}
        Err(why) => lose(why),
        Ok(log) => {
            if let Some(position) = log.position_of(tensor) {
                begin_at(this, log, tensor, position, now);
            }
        }
    }
}

/// The thread has taken part in no graph that was begun since the agent came: it may be in the middle
/// of one that was begun before, which is not recorded.
fn is_of_earlier_graph(this: &ThisThread) -> bool {
    this.log.get().is_none() && current::may_be_in_earlier_graph()
}

/// Finds the running graph that holds the tensor and takes part in it, or says what is lost.
#[cold]
fn join_run_of(
    this: &ThisThread,
    params: *const ComputeParams,
    tensor: usize,
) -> Result<&'static ThreadLog, LossCounter> {
    let recorder = current::recording().ok_or(LossCounter::OpOutsideRun)?;
    let running = recorder.lanes().running_slots().find_map(|slot| {
        let generation = slot.running_generation()?;
        let position = slot.find(tensor)?;
        Some((slot, generation, position))
    });
    let (slot, generation, position) = running.ok_or(LossCounter::OpOutsideRun)?;
    fault_point!();
    let log = this.log_or_take().ok_or(LossCounter::NoLog)?;
    fault_point!();
    if !log.takes_part_in(slot, generation) {
        // SAFETY: ggml passes its parameters by a pointer that is valid for the call, as the
        // tensor beside it, which is known, shows; they are longer in all versions.
        let (thread_index, n_threads) = unsafe { (*params).thread() };
        log.join(slot, generation, thread_index, n_threads);
        if !slot.register(log) {
            return Err(LossCounter::NoLog);
        }
    }
    fault_point!();
    log.go_to(position);
    Ok(log)
}

/// This thread reached a barrier inside or after its share.
#[inline(always)]
pub(crate) fn reach_barrier(this: &ThisThread) -> bool {
    let log = this.log.get().filter(|log| log.has_company());
    log.is_some_and(|log| log.reach_barrier(clock::ticks()))
}

#[inline(always)]
pub(crate) fn leave_barrier(this: &ThisThread) {
    if let Some(log) = this.log.get() {
        log.leave_barrier(clock::ticks());
    }
}

#[cold]
fn lose(kind: LossCounter) {
    if let Some(recorder) = current::recording() {
        recorder.lose(kind, 1);
    }
}
