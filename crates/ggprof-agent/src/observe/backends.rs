//! The backends of the process. Each one seen gets a number, is described in the
//! recording, and has its function table changed; the functions that were there
//! are kept here, for as long as the process lives: a hook must always find them.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ggprof_spool::layout::{self, Covered, CoveredHow, LossKind};

use super::instance::{Instance, file_name};
use super::vulkan::{label_switch, registration};
use super::{cuda, devices, schedulers};
use crate::ffi::api::{Pointer, text};
use crate::ffi::backend_table::BackendSlot;
use crate::hooks::abort_callback::{self, Setter};
use crate::hooks::backend_table::Synchronize;
use crate::hooks::library::Hooked;
use crate::hooks::{backend_table, cuda_calls, device_nodes, library};
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, lifecycle};

const MOST_BACKENDS: usize = 256;

/// A backend whose table we changed, and what was in it.
#[derive(Debug)]
pub(crate) struct Adopted {
    backend: AtomicUsize,
    /// The function that names it, which a copy of its struct shares.
    get_name: AtomicUsize,
    id: AtomicU32,
    instance: AtomicPtr<Instance>,
    device: AtomicUsize,
    is_cpu: AtomicBool,
    /// Its library hands work to CUDA devices.
    is_cuda: AtomicBool,
    is_host_accelerator: AtomicBool,
    /// Every node is seen as it is computed.
    pub(crate) ops_seen: AtomicBool,
    /// The way to set its abort callback, where ops are seen by ticks only.
    tick_setter: AtomicUsize,
    /// A device's: its library tells which node it works on.
    asks_about_nodes: AtomicBool,
    pub(crate) graph_compute: AtomicUsize,
    pub(crate) cpy_tensor_async: AtomicUsize,
    pub(crate) synchronize: AtomicUsize,
    pub(crate) free: AtomicUsize,
}

static ADOPTED: [Adopted; MOST_BACKENDS] = [const { Adopted::none() }; MOST_BACKENDS];
static ADOPTING: Mutex<u32> = Mutex::new(0);

/// The backend behind a pointer, if we know it. Lock-free: hooks need it.
pub(crate) fn find(backend: Pointer) -> Option<&'static Adopted> {
    let wanted = backend as usize;
    ADOPTED
        .iter()
        .take_while(|entry| entry.backend.load(Ordering::Acquire) != 0)
        .find(|entry| entry.backend.load(Ordering::Acquire) == wanted)
}

/// The entry that keeps what a hooked table held: the backend's own or, for a struct that a
/// program copied together with our hooks, that of another backend of its kind.
pub(crate) fn originals_of(backend: Pointer) -> Option<&'static Adopted> {
    find(backend).or_else(|| alike(get_name_of(backend)))
}

fn alike(get_name: usize) -> Option<&'static Adopted> {
    ADOPTED
        .iter()
        .take_while(|entry| entry.backend.load(Ordering::Acquire) != 0)
        .find(|entry| entry.get_name.load(Ordering::Relaxed) == get_name)
}

/// The second word of every backend, in all versions, is the function that names it.
pub(crate) fn get_name_of(backend: Pointer) -> usize {
    // SAFETY: the program holds the backend; its first words are there in all versions.
    unsafe { *backend.cast::<usize>().add(1) }
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
    let known = || ADOPTED.iter().take_while(|entry| entry.backend.load(Ordering::Acquire) != 0);
    let own = known().filter(fits).find(|entry| schedulers::may_hold(scheduler, entry.id()));
    own.or_else(|| known().find(fits)).map_or(layout::NONE, Adopted::id)
}

/// Waits until every CUDA backend has nothing left to do.
pub(crate) fn synchronize_cuda() {
    for entry in ADOPTED.iter().filter(|entry| entry.is_cuda()) {
        let backend = entry.backend.load(Ordering::Acquire) as Pointer;
        // SAFETY: taken from this slot of the backend's table.
        let real = unsafe { backend_table::original::<Synchronize>(&entry.synchronize) };
        if let Some(synchronize) = real {
            // SAFETY: the backend's own function; the backend is not freed yet, as
            // `note_free` has not been called.
            unsafe { synchronize(backend) };
        }
    }
}

/// How often backends and schedulers have come and gone.
static CHANGES: AtomicU32 = AtomicU32::new(0);

pub(super) fn changes() -> u32 {
    CHANGES.load(Ordering::Acquire)
}

pub(super) fn note_change() {
    CHANGES.fetch_add(1, Ordering::AcqRel);
}

/// Takes a backend in. `base_function` is a function of its ggml's base library.
pub(crate) fn adopt(this: &ThisThread, backend: Pointer, base_function: usize) -> u32 {
    if backend.is_null() {
        return layout::NONE;
    }
    if let Some(entry) = find(backend)
        && entry.is_hooked(backend)
    {
        return entry.id();
    }
    let Some(recorder) = lifecycle::start_recording() else { return layout::NONE };
    let Some(lane) = recorder.lane(this.preferred_lane.get()) else { return layout::NONE };
    let mut count = ADOPTING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(instance) = Instance::holding(base_function, &lane) else { return layout::NONE };
    let free = |entry: &&Adopted| {
        let taken = entry.backend.load(Ordering::Acquire);
        taken == 0 || taken == backend as usize
    };
    let Some(entry) = ADOPTED.iter().find(free) else {
        recorder.lose(LossKind::NoBackendSlot, 1);
        return layout::NONE;
    };
    *count += 1;
    entry.take_in(backend, *count, instance, &lane);
    note_change();
    entry.id()
}

impl Adopted {
    const fn none() -> Self {
        Adopted {
            backend: AtomicUsize::new(0),
            get_name: AtomicUsize::new(0),
            id: AtomicU32::new(0),
            instance: AtomicPtr::new(std::ptr::null_mut()),
            device: AtomicUsize::new(0),
            is_cpu: AtomicBool::new(false),
            is_cuda: AtomicBool::new(false),
            is_host_accelerator: AtomicBool::new(false),
            ops_seen: AtomicBool::new(false),
            tick_setter: AtomicUsize::new(0),
            asks_about_nodes: AtomicBool::new(false),
            graph_compute: AtomicUsize::new(0),
            cpy_tensor_async: AtomicUsize::new(0),
            synchronize: AtomicUsize::new(0),
            free: AtomicUsize::new(0),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    pub(crate) fn instance(&self) -> Option<&'static Instance> {
        // SAFETY: only leaked instances are stored.
        unsafe { self.instance.load(Ordering::Acquire).as_ref() }
    }

    /// A freed backend's memory may hold a new one, with a fresh table.
    fn is_hooked(&self, backend: Pointer) -> bool {
        let Some(instance) = self.instance() else { return false };
        // SAFETY: the caller holds the backend, which is of this instance or, if
        // its memory was reused, at least as large as one of this instance.
        let slot = unsafe { BackendSlot::at(backend, instance.backend.graph_compute) };
        slot.is_some_and(|slot| slot.get() == backend_table::graph_compute as *const () as usize)
    }

    fn take_in(&self, backend: Pointer, id: u32, instance: &'static Instance, lane: &HeldLane<'_>) {
        let offsets = instance.backend;
        self.id.store(id, Ordering::Relaxed);
        self.instance.store(std::ptr::from_ref(instance).cast_mut(), Ordering::Release);
        self.device.store(devices::device_of(instance, backend) as usize, Ordering::Relaxed);
        let hooks: [(&AtomicUsize, usize, usize); 4] = [
            (&self.free, offsets.free, backend_table::free as *const () as usize),
            (&self.synchronize, offsets.synchronize, 0),
            (
                &self.cpy_tensor_async,
                offsets.cpy_tensor_async,
                backend_table::cpy_tensor_async as *const () as usize,
            ),
            (
                &self.graph_compute,
                offsets.graph_compute,
                backend_table::graph_compute as *const () as usize,
            ),
        ];
        // A struct that was copied with our hooks in it has its originals elsewhere.
        let get_name = get_name_of(backend);
        let copied_from = alike(get_name);
        self.get_name.store(get_name, Ordering::Relaxed);
        // All originals are kept before the entry can be found, and the entry
        // can be found before the first hook can be called.
        for (original, offset, hook) in hooks {
            // SAFETY: the caller of `adopt` holds a live backend of `instance`.
            let slot = unsafe { BackendSlot::at(backend, offset) };
            let function = slot.map_or(0, BackendSlot::get);
            if function != hook {
                original.store(function, Ordering::Release);
            }
        }
        if let Some(other) = copied_from {
            self.take_missing_originals(other);
        }
        self.backend.store(backend as usize, Ordering::Release);
        for (original, offset, hook) in hooks {
            // SAFETY: as above.
            let slot = unsafe { BackendSlot::at(backend, offset) };
            if hook != 0 && original.load(Ordering::Relaxed) != 0 {
                slot.inspect(|slot| slot.set(hook));
            }
        }
        self.describe(backend, instance, lane);
    }

    fn take_missing_originals(&self, other: &Adopted) {
        let pairs = [
            (&self.free, &other.free),
            (&self.cpy_tensor_async, &other.cpy_tensor_async),
            (&self.graph_compute, &other.graph_compute),
        ];
        for (own, other) in pairs {
            if own.load(Ordering::Relaxed) == 0 {
                own.store(other.load(Ordering::Acquire), Ordering::Release);
            }
        }
    }

    fn describe(&self, backend: Pointer, instance: &Instance, lane: &HeldLane<'_>) {
        let object = LoadedObject::containing(self.graph_compute.load(Ordering::Relaxed));
        let api = &instance.api;
        let device: Pointer = self.device.load(Ordering::Relaxed) as Pointer;
        let device_type = devices::device_type(instance, backend, device);
        // Several backends may be in one library, or in the program: what is done to
        // see the processor's ops tells nothing of the others'.
        let on_processor = matches!(device_type, devices::CPU | devices::UNKNOWN);
        let hooked = match &object {
            Some(object) if on_processor => library::hook_ops(object),
            _ => Hooked::not(library::UNSEEN),
        };
        self.ops_seen.store(hooked.ops && instance.layouts.is_some(), Ordering::Relaxed);
        let mut interner = lane.recorder.interner();
        let ask = |function: Option<unsafe extern "C-unwind" fn(Pointer) -> *const _>,
                   of: Pointer| {
            let function = function.filter(|_| !of.is_null());
            // SAFETY: a live object of this instance, and its own function.
            function.map_or(&b""[..], |name| text(unsafe { name(of) }))
        };
        let library = object.as_ref().map(file_name).unwrap_or_default();
        let library = interner.lasting_text(lane, &library);
        // ggml ends the program if the backend is another's.
        let may_tick = device_type == devices::CPU && !hooked.ops;
        let setter = object.as_ref().filter(|_| may_tick).and_then(abort_callback::setter_in);
        let setter = setter.map_or(0, |setter| setter as usize);
        self.tick_setter.store(setter, Ordering::Relaxed);
        self.is_cpu.store(device_type == devices::CPU, Ordering::Relaxed);
        let synchronous = self.synchronize.load(Ordering::Relaxed) == 0;
        let on_host = device_type == devices::ACCELERATOR
            && synchronous
            && devices::uses_host(instance, device);
        self.is_host_accelerator.store(on_host, Ordering::Relaxed);
        let asks = device_type != 0 && object.as_ref().is_some_and(device_nodes::hook);
        self.asks_about_nodes.store(asks, Ordering::Relaxed);
        object.iter().filter(|_| device_type != 0).for_each(label_switch::look_in);
        let is_cuda = device_type != 0 && object.as_ref().is_some_and(cuda_calls::hook);
        self.is_cuda.store(is_cuda, Ordering::Relaxed);
        let record = layout::Backend {
            device_type,
            backend: self.id(),
            instance: instance.id,
            name: interner.lasting_text(lane, ask(api.ggml_backend_name, backend)),
            device: interner.lasting_text(lane, ask(api.ggml_backend_dev_name, device)),
            description: interner.lasting_text(lane, ask(api.ggml_backend_dev_description, device)),
            library,
            ..Default::default()
        };
        lane.define_lasting(Owner::Backend(self.id()), &record.encode());
        let mut cover = |what: Covered, how: CoveredHow, count: u32, reason: &str| {
            let record = layout::Coverage {
                how: how as u8,
                what: what as u16,
                backend: self.id(),
                instance: instance.id,
                library,
                reason: interner.lasting_text(lane, reason.as_bytes()),
                count,
                ..Default::default()
            };
            lane.define_lasting(Owner::Backend(self.id()), &record.encode());
        };
        cover(Covered::Splits, CoveredHow::FunctionTable, 1, "");
        let copies = self.cpy_tensor_async.load(Ordering::Relaxed) != 0;
        if copies {
            cover(Covered::AsyncCopies, CoveredHow::FunctionTable, 1, "");
        }
        if let Some(why) = object.as_ref().and_then(registration::why_unseen) {
            cover(Covered::Kernels, CoveredHow::Not, 0, why);
        }
        let seen = |seen: bool| if seen { hooked.how } else { CoveredHow::Not };
        if self.ops_seen.load(Ordering::Relaxed) {
            cover(Covered::Ops, hooked.how, 1, "");
            let why = if hooked.barrier { "" } else { "the library has no call of ggml_barrier" };
            cover(Covered::BarrierWaits, seen(hooked.barrier), 1, why);
            let why = if hooked.forward > 0 { "" } else { "the library shows no op functions" };
            cover(Covered::Fusions, seen(hooked.forward > 0), hooked.forward, why);
        } else if setter != 0 && instance.layouts.is_some() {
            cover(Covered::Ops, CoveredHow::AbortCallback, 1, "");
            let why = "only the first thread's progress is seen; waits are part of the ops";
            cover(Covered::BarrierWaits, CoveredHow::Not, 0, why);
        } else if on_host && instance.layouts.is_some() {
            let by = object.as_ref().and_then(devices::blas_behind).unwrap_or_default();
            cover(Covered::Ops, CoveredHow::NodeByNode, 1, &by);
        } else if lane.recorder.serialize {
            cover(Covered::Ops, CoveredHow::Serialized, 1, "");
        } else if !is_cuda || !cuda::is_wanted(lane) {
            cover(Covered::Ops, CoveredHow::Not, 0, hooked.reason);
        }
    }

    /// It computes a graph in the host's memory, and has when it returns: ggml's
    /// public way to wait for it does nothing where there is no such function.
    pub(crate) fn is_host_accelerator(&self) -> bool {
        self.is_host_accelerator.load(Ordering::Relaxed)
    }

    /// The library of the backend's device tells which node it works on.
    pub(crate) fn asks_about_nodes(&self) -> bool {
        self.asks_about_nodes.load(Ordering::Relaxed)
    }

    /// Its work is done by a CUDA device.
    pub(crate) fn is_cuda(&self) -> bool {
        self.is_cuda.load(Ordering::Relaxed)
    }

    /// The setter through which this backend's nodes can be made to tick.
    pub(crate) fn tick_setter(&self) -> Option<Setter> {
        let setter = self.tick_setter.load(Ordering::Relaxed);
        // SAFETY: 0, or what ggml gave as its function of this name.
        unsafe { std::mem::transmute::<usize, Option<Setter>>(setter) }
    }

    /// The program frees the backend: its number ends here.
    pub(crate) fn note_free(&self, this: &ThisThread) {
        self.is_cpu.store(false, Ordering::Relaxed);
        self.device.store(0, Ordering::Relaxed);
        note_change();
        let Some(recorder) = lifecycle::recording() else { return };
        let Some(lane) = recorder.lane(this.preferred_lane.get()) else { return };
        if self.is_cuda() {
            cuda::before_backend_free(&lane, self.id());
            self.is_cuda.store(false, Ordering::Relaxed);
        }
        let record =
            layout::BackendFree { backend: self.id(), ticks: clock::ticks(), ..Default::default() };
        lane.put(&record.encode());
        lane.forget(Owner::Backend(self.id()));
    }
}
