//! Schedulers, identified by number, because a new scheduler may have the address of an old one.

use ggprof_spool::layout;

use super::backend_hooks::BackendHooks;
use super::this_thread::ThisThread;
use super::{backends, device_api};
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::{Api, Pointer, Symbols};
use crate::ffi::which_ggml;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::current;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

struct KnownSchedulers {
    live: Vec<LiveScheduler>,
    /// Addresses of schedulers that were freed.
    freed: Vec<usize>,
    count: u32,
}

/// A scheduler that was not freed yet.
struct LiveScheduler {
    at: usize,
    id: u32,
    /// Its backends by number; empty where they are not known.
    members: Vec<u32>,
    /// A function of its ggml's base library, 0 if its creation was not seen.
    base_function: usize,
}

/// In place of the number of a scheduler that was freed.
pub(crate) const FREED: u32 = u32::MAX;
/// Allocators reuse addresses, so it is enough to remember a few.
const MOST_FREED: usize = 256;

static SCHEDULERS: Ranked<{ rank::SCHEDULERS }, KnownSchedulers> =
    Ranked::new(KnownSchedulers { live: Vec::new(), freed: Vec::new(), count: 0 });

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &SCHEDULERS
}

/// The program made a scheduler over these backends.
pub(crate) fn note_new(
    this: &ThisThread,
    scheduler: Pointer,
    members: &[Pointer],
    real: usize,
    hooks: &BackendHooks,
) {
    let ids: Vec<u32> =
        members.iter().map(|&backend| backends::adopt(this, backend, real, hooks)).collect();
    let known = if ids.contains(&layout::NONE) { Vec::new() } else { ids.clone() };
    fault_point!();
    let id = number_new(scheduler, known, real);
    fault_point!();
    this.with_lane(|lane| write_new(lane, id, &ids));
}

/// The program computes with a scheduler, by this function. Where its creation was not seen, as in a program that
/// was attached to, its backends need not have been seen either: its ggml may compute without a call that
/// names them, because a compiler put that in line.
pub(crate) fn note_use(this: &ThisThread, scheduler: Pointer, real: usize, hooks: &BackendHooks) {
    if scheduler.is_null() || current::recording().is_none() || known_number(scheduler).is_some() {
        return;
    }
    // SAFETY: it computes with it now, so it is a live one of the ggml that holds the function.
    let members = unsafe { members_of(scheduler, real) };
    fault_point!();
    note_new(this, scheduler, &members, real, hooks);
}

fn write_new(lane: &HeldLane<'_>, scheduler: u32, members: &[u32]) {
    let owner = Owner::Scheduler(scheduler);
    for (index, &backend) in (0..).zip(members) {
        let member = layout::SchedulerBackend { index, scheduler, backend, ..Default::default() };
        lane.define_lasting(owner, &member.encode());
    }
}

/// The number of a scheduler whose backends are all recorded from now on; 0 if nothing can
/// be recorded.
///
/// # Safety
/// The scheduler is one of ggml's, unless it was freed.
pub(crate) unsafe fn follow(this: &ThisThread, scheduler: Pointer, hooks: &BackendHooks) -> u32 {
    let base_function = {
        let known = SCHEDULERS.lock();
        if known.freed.contains(&(scheduler as usize)) {
            return FREED;
        }
        match known.live.iter().find(|live| live.at == scheduler as usize) {
            Some(live) if !live.members.is_empty() => return live.id,
            Some(live) => live.base_function,
            None => 0,
        }
    };
    let base_function = which_ggml::of_ggml(base_function);
    // SAFETY: by this function's contract.
    let members = unsafe { members_of(scheduler, base_function) };
    note_new(this, scheduler, &members, base_function, hooks);
    known_number(scheduler).filter(|_| current::recording().is_some()).unwrap_or(layout::NONE)
}

/// # Safety
/// The scheduler is a live one of the ggml that holds the function.
unsafe fn members_of(scheduler: Pointer, base_function: usize) -> Vec<Pointer> {
    let symbols = LoadedObject::containing(base_function).and_then(|object| Symbols::of(&object));
    let api = symbols.map(|symbols| Api::of(&symbols));
    let count = api.and_then(|api| api.ggml_backend_sched_get_n_backends);
    let get = api.and_then(|api| api.ggml_backend_sched_get_backend);
    let (Some(count), Some(get)) = (count, get) else { return Vec::new() };
    // SAFETY: by this function's contract.
    (0..unsafe { count(scheduler) }).map(|index| unsafe { get(scheduler, index) }).collect()
}

/// The number of a scheduler; one whose creation was not seen gets a number now.
pub(crate) fn number(scheduler: Pointer) -> u32 {
    known_number(scheduler).unwrap_or_else(|| number_new(scheduler, Vec::new(), 0))
}

/// The number of a scheduler that was not freed.
pub(crate) fn known_number(scheduler: Pointer) -> Option<u32> {
    let known = SCHEDULERS.lock();
    known.live.iter().find(|live| live.at == scheduler as usize).map(|live| live.id)
}

/// Whether a backend belongs to the scheduler; yes where its members are unknown.
pub(crate) fn may_hold(scheduler: usize, backend: u32) -> bool {
    let known = SCHEDULERS.lock();
    let members = known.live.iter().find(|live| live.at == scheduler).map(|live| &live.members);
    members.is_none_or(|members| members.is_empty() || members.contains(&backend))
}

/// The numbers of its backends; none where they are not known.
pub(super) fn members(scheduler: usize) -> Vec<u32> {
    let known = SCHEDULERS.lock();
    let live = known.live.iter().find(|live| live.at == scheduler);
    live.map(|live| live.members.clone()).unwrap_or_default()
}

/// The program frees a scheduler; whether it is the last that we know of.
pub(crate) fn note_free(this: &ThisThread, scheduler: Pointer) -> bool {
    let mut known = SCHEDULERS.lock();
    let place = known.live.iter().position(|live| live.at == scheduler as usize);
    let Some(place) = place else { return false };
    let id = known.live.swap_remove(place).id;
    backends::note_change();
    if known.freed.len() >= MOST_FREED {
        known.freed.remove(0);
    }
    known.freed.push(scheduler as usize);
    let is_last = known.live.is_empty();
    drop(known);
    fault_point!();
    this.with_lane(|lane| lane.forget(Owner::Scheduler(id)));
    is_last
}

/// How long the program waited for a scheduler's backends to finish.
pub(crate) fn note_synchronize(this: &ThisThread, scheduler: Pointer, start: u64) {
    device_api::all().iter().for_each(|api| api.note_waited());
    this.with_lane(|lane| {
        let record = layout::Synchronize {
            scheduler: number(scheduler),
            os_thread: this.os_thread(),
            start,
            end: clock::ticks(),
            ..Default::default()
        };
        lane.put(&record.encode());
    });
}

fn number_new(scheduler: Pointer, members: Vec<u32>, base_function: usize) -> u32 {
    let mut known = SCHEDULERS.lock();
    known.count += 1;
    let id = known.count;
    known.live.retain(|live| live.at != scheduler as usize);
    known.freed.retain(|&at| at != scheduler as usize);
    known.live.push(LiveScheduler { at: scheduler as usize, id, members, base_function });
    backends::note_change();
    id
}
