//! A backend that the agent knows: what was found out about it, and the functions of its table, which are
//! kept until the process ends, because a hook must always find them.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use super::backend_facts::{BackendFacts, OwnFunctions};
use super::backend_hooks::BackendHooks;
use super::device_api::DeviceApi;
use super::instance::Instance;
use super::this_thread::ThisThread;
use super::ticking::{self, Setter};
use super::{backends, device_api, devices};
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::backend_table::{BackendSlot, Synchronize, original};
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::current;
use crate::recorder::definitions::Owner;

/// Stands for the address in an entry that is being given to another backend.
const NOBODY: usize = 1;

/// A backend whose table we changed, and what was in it.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub(super) backend: AtomicUsize,
    /// Its `get_name` function. Copies of its struct have the same one, so it tells the kind of backend.
    pub(super) get_name: AtomicUsize,
    id: AtomicU32,
    instance: AtomicPtr<Instance>,
    pub(super) device: AtomicUsize,
    pub(super) is_cpu: AtomicBool,
    /// It computes elsewhere than the processor.
    pub(super) is_device: AtomicBool,
    /// Whether it can be asked about nodes (`observe::placement`).
    asking: AtomicU8,
    /// Whether its experts are seen was recorded (`observe::experts`).
    experts_covered: AtomicBool,
    /// Its threads wait for each other where it cannot be seen (`observe::unseen_waits`).
    waits_unseen: AtomicBool,
    /// The API that its library uses, as its place in the list of all APIs, counted from 1; 0 for none.
    device_api: AtomicUsize,
    is_host_accelerator: AtomicBool,
    /// Every node is seen as it is computed.
    pub(crate) ops_seen: AtomicBool,
    /// The way to set its abort callback, where ops are seen by ticks only.
    pub(super) tick_setter: AtomicUsize,
    /// A device's: its library tells which node it works on.
    asks_about_nodes: AtomicBool,
    pub(crate) graph_compute: AtomicUsize,
    pub(crate) cpy_tensor_async: AtomicUsize,
    pub(crate) synchronize: AtomicUsize,
    pub(crate) free: AtomicUsize,
    /// The program has freed it.
    is_freed: AtomicBool,
}

impl Adopted {
    pub(super) const fn none() -> Self {
        Adopted {
            backend: AtomicUsize::new(0),
            get_name: AtomicUsize::new(0),
            id: AtomicU32::new(0),
            instance: AtomicPtr::new(std::ptr::null_mut()),
            device: AtomicUsize::new(0),
            is_cpu: AtomicBool::new(false),
            is_device: AtomicBool::new(false),
            asking: AtomicU8::new(0),
            experts_covered: AtomicBool::new(false),
            waits_unseen: AtomicBool::new(false),
            device_api: AtomicUsize::new(0),
            is_host_accelerator: AtomicBool::new(false),
            ops_seen: AtomicBool::new(false),
            tick_setter: AtomicUsize::new(0),
            asks_about_nodes: AtomicBool::new(false),
            graph_compute: AtomicUsize::new(0),
            cpy_tensor_async: AtomicUsize::new(0),
            synchronize: AtomicUsize::new(0),
            free: AtomicUsize::new(0),
            is_freed: AtomicBool::new(false),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_device_api(place: usize, id: u32) -> Adopted {
        let (device_api, id) = (AtomicUsize::new(place + 1), AtomicU32::new(id));
        Adopted { device_api, id, ..Adopted::none() }
    }

    /// Whether the entry can be reused for another backend: its own was freed, and the new one has the
    /// same functions, which copies of the old one's struct may still need.
    pub(super) fn can_serve(&self, backend: Pointer, own: OwnFunctions) -> bool {
        let is = |kept: &AtomicUsize, function| kept.load(Ordering::Acquire) == function;
        self.is_freed.load(Ordering::Acquire)
            && is(&self.get_name, get_name_of(backend))
            && is(&self.graph_compute, own.graph_compute)
            && is(&self.cpy_tensor_async, own.cpy_tensor_async)
            && is(&self.synchronize, own.synchronize)
            && is(&self.free, own.free)
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// The library that computes its graphs. Asks the loader.
    pub(crate) fn library(&self) -> Option<LoadedObject> {
        LoadedObject::containing(self.graph_compute.load(Ordering::Acquire))
    }

    pub(crate) fn instance(&self) -> Option<&'static Instance> {
        // SAFETY: only leaked instances are stored.
        unsafe { self.instance.load(Ordering::Acquire).as_ref() }
    }

    /// A freed backend's memory may hold a new one, with a fresh table.
    pub(super) fn is_hooked(&self, backend: Pointer, hooks: &BackendHooks) -> bool {
        let Some(layout) = self.instance().and_then(|instance| instance.backend) else {
            return false;
        };
        // SAFETY: the caller holds the backend, which is of this instance or, if
        // its memory was reused, at least as large as one of this instance.
        let slot = unsafe { BackendSlot::at(backend, layout.graph_compute) };
        slot.is_some_and(|slot| slot.get() == hooks.graph_compute as usize)
    }

    pub(super) fn take_in(
        &self,
        (backend, id): (Pointer, u32),
        instance: &'static Instance,
        own: OwnFunctions,
        facts: &BackendFacts,
        hooks: &BackendHooks,
    ) {
        if self.backend.load(Ordering::Acquire) != 0 {
            self.backend.store(NOBODY, Ordering::Release);
        }
        self.is_freed.store(false, Ordering::Release);
        self.id.store(id, Ordering::Relaxed);
        self.instance.store(std::ptr::from_ref(instance).cast_mut(), Ordering::Release);
        self.get_name.store(get_name_of(backend), Ordering::Relaxed);
        self.take_facts(facts);
        // All originals are kept before the entry can be found, and the entry
        // can be found before the first hook can be called.
        self.graph_compute.store(own.graph_compute, Ordering::Release);
        self.cpy_tensor_async.store(own.cpy_tensor_async, Ordering::Release);
        self.synchronize.store(own.synchronize, Ordering::Release);
        self.free.store(own.free, Ordering::Release);
        self.backend.store(backend as usize, Ordering::Release);
        // Stored last: a thread that sees it may wait for the backend, and must find the new one.
        self.device_api.store(facts.device_api.map_or(0, |place| place + 1), Ordering::Release);
        fault_point!();
        let at = instance.backend.unwrap_or_default();
        for (own, offset, hook) in [
            (own.free, at.free, hooks.free as usize),
            (own.cpy_tensor_async, at.cpy_tensor_async, hooks.cpy_tensor_async as usize),
            (own.graph_compute, at.graph_compute, hooks.graph_compute as usize),
        ] {
            // SAFETY: the caller of `adopt` holds a live backend of `instance`.
            let slot = unsafe { BackendSlot::at(backend, offset) };
            slot.filter(|_| own != 0).inspect(|slot| slot.set(hook));
            fault_point!();
        }
    }

    fn take_facts(&self, facts: &BackendFacts) {
        self.device.store(facts.device as usize, Ordering::Relaxed);
        self.is_cpu.store(facts.device_type == devices::CPU, Ordering::Relaxed);
        let is_device = !matches!(facts.device_type, devices::CPU | devices::UNKNOWN)
            && !facts.is_host_accelerator;
        self.is_device.store(is_device, Ordering::Relaxed);
        self.asking.store(0, Ordering::Relaxed);
        self.experts_covered.store(false, Ordering::Relaxed);
        let waits_unseen = facts.ops_seen && !facts.waits_seen;
        self.waits_unseen.store(waits_unseen, Ordering::Relaxed);
        self.is_host_accelerator.store(facts.is_host_accelerator, Ordering::Relaxed);
        self.ops_seen.store(facts.ops_seen, Ordering::Relaxed);
        let setter = facts.tick_setter.map_or(0, |setter| setter as usize);
        self.tick_setter.store(setter, Ordering::Relaxed);
        self.asks_about_nodes.store(facts.asks_about_nodes, Ordering::Relaxed);
    }

    pub(crate) fn is_cpu(&self) -> bool {
        self.is_cpu.load(Ordering::Relaxed)
    }

    /// Whether every node is seen as it is computed.
    pub(super) fn sees_ops(&self) -> bool {
        self.ops_seen.load(Ordering::Relaxed)
    }

    /// True at the first call for this backend only.
    pub(super) fn is_new_to_experts(&self) -> bool {
        !self.experts_covered.swap(true, Ordering::Relaxed)
    }

    pub(super) fn waits_unseen(&self) -> &AtomicBool {
        &self.waits_unseen
    }

    pub(super) fn pointer(&self) -> Pointer {
        self.backend.load(Ordering::Acquire) as Pointer
    }

    /// What is known of asking it about nodes: 0 at first.
    pub(super) fn asking(&self) -> &AtomicU8 {
        &self.asking
    }

    /// It computes a graph in the host's memory, and has finished when it returns: ggml's
    /// public function to wait does nothing if the table has none.
    pub(crate) fn is_host_accelerator(&self) -> bool {
        self.is_host_accelerator.load(Ordering::Relaxed)
    }

    /// The library of the backend's device tells which node it works on.
    pub(crate) fn asks_about_nodes(&self) -> bool {
        self.asks_about_nodes.load(Ordering::Relaxed)
    }

    /// The API that its library hands work to, by calls that are seen.
    pub(crate) fn device_api(&self) -> Option<&'static dyn DeviceApi> {
        let place = self.device_api.load(Ordering::Acquire).checked_sub(1)?;
        device_api::all().get(place).copied()
    }

    /// Waits until the backend has nothing left to do.
    ///
    /// # Safety
    /// The backend is not freed meanwhile.
    pub(crate) unsafe fn wait_until_idle(&self) {
        let backend = self.backend.load(Ordering::Acquire) as Pointer;
        // SAFETY: taken from this slot of the backend's table.
        let real = unsafe { original::<Synchronize>(&self.synchronize) };
        if let Some(synchronize) = real {
            // SAFETY: the backend's own function; it lives, by the caller's contract.
            unsafe { synchronize(backend) };
        }
    }

    /// The setter through which this backend's nodes can be made to tick.
    pub(crate) fn tick_setter(&self) -> Option<Setter> {
        let setter = self.tick_setter.load(Ordering::Relaxed);
        // SAFETY: 0, or what ggml gave as its function of this name.
        unsafe { std::mem::transmute::<usize, Option<Setter>>(setter) }
    }

    /// Whether the entry is this backend's own.
    pub(crate) fn is_of(&self, backend: Pointer) -> bool {
        self.backend.load(Ordering::Acquire) == backend as usize
    }

    /// The program frees the backend: its number ends here.
    pub(crate) fn note_free(&self, this: &ThisThread) {
        self.is_cpu.store(false, Ordering::Relaxed);
        self.is_device.store(false, Ordering::Relaxed);
        self.device.store(0, Ordering::Relaxed);
        ticking::forget(self.backend.load(Ordering::Acquire) as Pointer);
        backends::note_change();
        // First, so that no thread waits for this backend any more, whatever happens below.
        let api = self.device_api();
        if let Some(api) = api {
            api.while_nobody_waits(&mut || self.device_api.store(0, Ordering::Release));
        }
        fault_point!();
        self.write_free(this, api);
        fault_point!();
        // From here on another backend may get the entry; the caller has the function that frees
        // this one.
        self.is_freed.store(true, Ordering::Release);
    }

    fn write_free(&self, this: &ThisThread, api: Option<&dyn DeviceApi>) {
        let Some(recorder) = current::recording() else { return };
        let Some(lane) = this.lane(recorder) else { return };
        if let Some(api) = api {
            api.before_backend_free(&lane, self);
        }
        fault_point!();
        lane.forget(Owner::Backend(self.id()));
    }
}

/// The second word of every backend, in all versions, is the function that names it.
pub(crate) fn get_name_of(backend: Pointer) -> usize {
    // SAFETY: the program holds the backend; its first words are there in all versions.
    unsafe { *backend.cast::<usize>().add(1) }
}
