//! The backends of the process. Each backend that is seen gets a number, is described in the
//! recording, and has its function table changed (`adopted`).

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use ggprof_spool::layout::{self, Covered, CoveredHow};

use super::adopted::{Adopted, get_name_of};
use super::backend_facts::{BackendFacts, OwnFunctions};
use super::backend_hooks::BackendHooks;
use super::coverage::{self, Subject};
use super::instance::Instance;
use super::this_thread::ThisThread;
use super::{buffers, device_memory, schedulers, ticking};
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::backend_table::BackendSlot;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::current;

/// Entries that are made at once.
const CHUNK: usize = 64;

/// Entries in the order in which they were taken. The list ends at the first that is not taken.
struct Chunk {
    entries: [Adopted; CHUNK],
    /// A leaked one, or null. (An empty `OnceLock` is not zero, and would put all of this into the file.)
    next: AtomicPtr<Chunk>,
}

static ADOPTED: Chunk = Chunk::new();

impl Chunk {
    const fn new() -> Chunk {
        let next = AtomicPtr::new(std::ptr::null_mut());
        Chunk { entries: [const { Adopted::none() }; CHUNK], next }
    }

    fn next(&self) -> Option<&'static Chunk> {
        // SAFETY: only leaked chunks are stored.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// Called with `ADOPTING` held.
    fn next_or_new(&self) -> &'static Chunk {
        self.next().unwrap_or_else(|| {
            let new = Box::leak(Box::new(Chunk::new()));
            self.next.store(new, Ordering::Release);
            new
        })
    }
}

/// All entries that were taken.
fn adopted() -> impl Iterator<Item = &'static Adopted> {
    let chunks = std::iter::successors(Some(&ADOPTED), |chunk| chunk.next());
    chunks.flat_map(|chunk| &chunk.entries).take_while(|it| it.backend.load(Ordering::Acquire) != 0)
}

/// An entry that is not taken yet.
fn new_entry() -> &'static Adopted {
    let mut chunk = &ADOPTED;
    loop {
        let is_unused = |entry: &&Adopted| entry.backend.load(Ordering::Acquire) == 0;
        match chunk.entries.iter().find(is_unused) {
            Some(entry) => return entry,
            None => chunk = chunk.next_or_new(),
        }
    }
}

/// How many backends were adopted.
static ADOPTING: Ranked<{ rank::ADOPTING }, u32> = Ranked::new(0);

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &ADOPTING
}

/// The backend behind a pointer, if we know it. Lock-free: hooks need it.
pub(crate) fn find(backend: Pointer) -> Option<&'static Adopted> {
    let wanted = backend as usize;
    adopted().find(|entry| entry.backend.load(Ordering::Acquire) == wanted)
}

/// The entry that keeps what a hooked table held: the backend's own or, for a struct that a
/// program copied together with our hooks, that of another backend of its kind.
pub(crate) fn originals_of(backend: Pointer) -> Option<&'static Adopted> {
    find(backend).or_else(|| alike(get_name_of(backend)))
}

fn alike(get_name: usize) -> Option<&'static Adopted> {
    adopted().find(|entry| entry.get_name.load(Ordering::Relaxed) == get_name)
}

/// The number of the backend behind a buffer: of the CPU for the host's memory,
/// else of the buffer's device. The scheduler's own backends come first: several
/// contexts each have one on the same device.
pub(crate) fn behind_buffer(scheduler: usize, on_host: bool, device: Pointer) -> u32 {
    let fits = |entry: &&Adopted| {
        if on_host {
            entry.is_cpu.load(Ordering::Relaxed)
        } else {
            !device.is_null() && entry.device.load(Ordering::Relaxed) == device as usize
        }
    };
    let own = adopted().filter(fits).find(|entry| schedulers::may_hold(scheduler, entry.id()));
    own.or_else(|| adopted().find(fits)).map_or(layout::NONE, Adopted::id)
}

/// The devices of a scheduler whose backends are known.
pub(super) fn devices_in(scheduler: usize) -> Vec<&'static Adopted> {
    let members = schedulers::members(scheduler);
    let is_one =
        |entry: &&Adopted| entry.is_device.load(Ordering::Relaxed) && members.contains(&entry.id());
    adopted().filter(is_one).collect()
}

/// Waits until every backend of the API with this name has nothing left to do. The caller holds the
/// lock that `DeviceApi::while_nobody_waits` takes, so no backend is freed meanwhile (`note_free`).
pub(crate) fn wait_for_all_of(name: &str) {
    let is_of = |entry: &&Adopted| entry.device_api().is_some_and(|api| api.name() == name);
    for entry in adopted().filter(is_of) {
        // SAFETY: a thread that frees it waits for us first.
        unsafe { entry.wait_until_idle() };
    }
}

/// How many backends and schedulers have been made and freed so far.
static BACKEND_CHANGES: AtomicU32 = AtomicU32::new(0);

pub(super) fn changes() -> u32 {
    BACKEND_CHANGES.load(Ordering::Acquire)
}

pub(super) fn note_change() {
    BACKEND_CHANGES.fetch_add(1, Ordering::AcqRel);
}

/// Adopts a backend. `base_function` is a function of its ggml's base library.
pub(crate) fn adopt(
    this: &ThisThread,
    backend: Pointer,
    base_function: usize,
    hooks: &BackendHooks,
) -> u32 {
    if backend.is_null() {
        return layout::NONE;
    }
    if let Some(entry) = find(backend)
        && entry.is_hooked(backend, hooks)
    {
        return entry.id();
    }
    let Some(recorder) = current::start_recording() else { return layout::NONE };
    let Some(lane) = this.lane(recorder) else { return layout::NONE };
    let Some(instance) = Instance::holding(base_function, &lane) else { return layout::NONE };
    let Some(own) = own_functions(backend, instance, hooks) else { return layout::NONE };
    let facts = BackendFacts::of(instance, backend, own, hooks);
    fault_point!();
    let mut count = ADOPTING.lock();
    // Another thread may have done the same meanwhile.
    if let Some(entry) = find(backend)
        && entry.is_hooked(backend, hooks)
    {
        return entry.id();
    }
    let entry = find(backend).or_else(|| adopted().find(|entry| entry.can_serve(backend, own)));
    let entry = entry.unwrap_or_else(new_entry);
    *count += 1;
    // Described before it can be found: later records refer to the description.
    facts.write(*count, instance, &lane);
    fault_point!();
    // The program may have loaded its weights before it made a backend.
    buffers::describe_all(&lane);
    device_memory::describe_all(&lane);
    fault_point!();
    entry.take_in((backend, *count), instance, own, &facts, hooks);
    note_change();
    fault_point!();
    entry.id()
}

/// Hooks of libraries were given up before anything was recorded: finds out how the ops of their
/// backends are seen now. Only the libraries are looked at, because the program may be freeing a backend.
pub(crate) fn look_anew(this: &ThisThread, hooks: &BackendHooks) {
    let Some(recorder) = current::recording() else { return };
    let Some(lane) = this.lane(recorder) else { return };
    for entry in adopted().filter(|entry| entry.sees_ops()) {
        let Some(library) = entry.library() else { continue };
        let hooked = (hooks.ops)(&library);
        if hooked.ops {
            continue;
        }
        let setter = Some(&library).filter(|_| entry.is_cpu()).and_then(ticking::setter_in);
        entry.tick_setter.store(setter.map_or(0, |setter| setter as usize), Ordering::Relaxed);
        entry.ops_seen.store(false, Ordering::Relaxed);
        let how = if setter.is_some() { CoveredHow::AbortCallback } else { CoveredHow::Not };
        let subject = Subject::Backend(entry.id());
        coverage::say(&lane, subject, Covered::Ops, (how, hooked.reason));
        for what in [Covered::BarrierWaits, Covered::Fusions] {
            coverage::say(&lane, subject, what, (CoveredHow::Not, hooked.reason));
        }
    }
}

/// What its library put into a live backend's table. `None` where the table is not known, or
/// what stands in it computes nothing.
fn own_functions(
    backend: Pointer,
    instance: &Instance,
    hooks: &BackendHooks,
) -> Option<OwnFunctions> {
    let at = instance.backend?;
    let there = |offset: usize| {
        // SAFETY: the caller of `adopt` holds a live backend of `instance`.
        unsafe { BackendSlot::at(backend, offset) }.map_or(0, BackendSlot::get)
    };
    let own = |offset: usize, hook: usize, kept: fn(&Adopted) -> &AtomicUsize| {
        let function = there(offset);
        if function != hook {
            return function;
        }
        // A struct that was copied with our hooks in it has its originals elsewhere.
        alike(get_name_of(backend)).map_or(0, |other| kept(other).load(Ordering::Acquire))
    };
    let copy = hooks.cpy_tensor_async as usize;
    let own = OwnFunctions {
        graph_compute: own(at.graph_compute, hooks.graph_compute as usize, |it| &it.graph_compute),
        cpy_tensor_async: own(at.cpy_tensor_async, copy, |it| &it.cpy_tensor_async),
        free: own(at.free, hooks.free as usize, |it| &it.free),
        synchronize: there(at.synchronize),
    };
    let is_code = |function| {
        LoadedObject::containing(function).is_some_and(|object| object.holds_code(function))
    };
    is_code(own.graph_compute).then_some(own)
}
