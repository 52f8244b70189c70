//! Schedulers, told apart by number: the same address may be another scheduler
//! later.

use std::sync::{Mutex, PoisonError};

use ggprof_spool::layout;

use super::backends;
use crate::ffi::api::Pointer;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, lifecycle};

struct Known {
    live: Vec<Live>,
    count: u32,
}

/// A scheduler that was not freed yet.
struct Live {
    at: usize,
    id: u32,
    members: Vec<u32>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { live: Vec::new(), count: 0 });

/// The program made a scheduler over these backends.
pub(crate) fn note_new(this: &ThisThread, scheduler: Pointer, members: &[Pointer], real: usize) {
    let ids: Vec<u32> =
        members.iter().map(|&backend| backends::adopt(this, backend, real)).collect();
    with_lane(this, |lane| {
        let scheduler = number_new(scheduler, ids.clone());
        let head = layout::SchedulerNew {
            backends: ids.len() as u16,
            scheduler,
            ticks: clock::ticks(),
            ..Default::default()
        };
        let owner = Owner::Scheduler(scheduler);
        lane.define_lasting(owner, &head.encode());
        for (index, backend) in (0..).zip(ids) {
            let member =
                layout::SchedulerBackend { index, scheduler, backend, ..Default::default() };
            lane.define_lasting(owner, &member.encode());
        }
    });
}

/// The number of a scheduler; one that was made out of our sight gets one now.
pub(crate) fn number(scheduler: Pointer, lane: &HeldLane<'_>) -> u32 {
    if let Some(id) = known_number(scheduler) {
        return id;
    }
    let id = number_new(scheduler, Vec::new());
    let head = layout::SchedulerNew { scheduler: id, ticks: clock::ticks(), ..Default::default() };
    lane.define_lasting(Owner::Scheduler(id), &head.encode());
    id
}

fn known_number(scheduler: Pointer) -> Option<u32> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.live.iter().find(|live| live.at == scheduler as usize).map(|live| live.id)
}

/// Whether a backend belongs to the scheduler; yes where its members are unknown.
pub(crate) fn may_hold(scheduler: usize, backend: u32) -> bool {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let members = known.live.iter().find(|live| live.at == scheduler).map(|live| &live.members);
    members.is_none_or(|members| members.is_empty() || members.contains(&backend))
}

/// ggml resets a scheduler while it makes it: one we do not know yet is left out.
pub(crate) fn note_reset(this: &ThisThread, scheduler: Pointer) {
    let Some(scheduler) = known_number(scheduler) else { return };
    with_lane(this, |lane| {
        let record =
            layout::SchedulerReset { scheduler, ticks: clock::ticks(), ..Default::default() };
        lane.put(&record.encode());
    });
}

pub(crate) fn note_free(this: &ThisThread, scheduler: Pointer) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = known.live.iter().position(|live| live.at == scheduler as usize);
    let Some(place) = place else { return };
    let id = known.live.swap_remove(place).id;
    drop(known);
    with_lane(this, |lane| {
        let record =
            layout::SchedulerFree { scheduler: id, ticks: clock::ticks(), ..Default::default() };
        lane.put(&record.encode());
        lane.forget(Owner::Scheduler(id));
    });
}

/// How long the program waited for a scheduler's backends to finish.
pub(crate) fn note_synchronize(this: &ThisThread, scheduler: Pointer, start: u64) {
    with_lane(this, |lane| {
        let record = layout::Synchronize {
            scheduler: number(scheduler, lane),
            os_thread: this.os_thread(),
            start,
            end: clock::ticks(),
            ..Default::default()
        };
        lane.put(&record.encode());
    });
}

fn number_new(scheduler: Pointer, members: Vec<u32>) -> u32 {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.count += 1;
    let id = known.count;
    known.live.retain(|live| live.at != scheduler as usize);
    known.live.push(Live { at: scheduler as usize, id, members });
    id
}

fn with_lane(this: &ThisThread, work: impl FnOnce(&HeldLane<'_>)) {
    let Some(recorder) = lifecycle::recording() else { return };
    if let Some(lane) = recorder.lane(this.preferred_lane.get()) {
        work(&lane);
    }
}
