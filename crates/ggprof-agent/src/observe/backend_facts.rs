//! The facts about a backend, collected before it is adopted: this calls the loader and ggml, and
//! hooks the backend's library. No lock is held meanwhile, because the loader may be waiting for
//! us.

use ggprof_spool::layout::{self, Covered, CoveredHow, CoveredWhy, Why};

use super::backend_hooks::{BackendHooks, HookedOps};
use super::coverage::{self, Subject};
use super::instance::{Instance, file_name, file_path};
use super::ticking::{self, Setter};
use super::{device_api, devices};
use crate::fault::fault_point;
use crate::ffi::api::{Pointer, text};
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

#[derive(Debug)]
pub(super) struct BackendFacts {
    pub(super) device: Pointer,
    pub(super) device_type: u8,
    /// Every node is seen as it is computed.
    pub(super) ops_seen: bool,
    /// Some waits of threads for each other are seen.
    pub(super) waits_seen: bool,
    /// The way to set its abort callback, where ops are seen by ticks only.
    pub(super) tick_setter: Option<Setter>,
    /// It computes in the host's memory, and has finished when it returns.
    pub(super) is_host_accelerator: bool,
    /// A device's: its library tells which node it works on.
    pub(super) asks_about_nodes: bool,
    /// The API that its library hands work to, by its place in the list of all.
    pub(super) device_api: Option<usize>,
    copies: bool,
    hooked: HookedOps,
    /// Why the kernels of a device cannot be seen, if they cannot.
    why_no_kernels: Option<CoveredWhy>,
    blas: String,
    name: Vec<u8>,
    device_name: Vec<u8>,
    description: Vec<u8>,
    library: Vec<u8>,
    path: Vec<u8>,
}

/// Functions of a backend's table, as its library set them; 0 for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnFunctions {
    pub(super) graph_compute: usize,
    pub(super) cpy_tensor_async: usize,
    pub(super) free: usize,
    pub(super) synchronize: usize,
}

impl BackendFacts {
    /// Finds out about a live backend of the instance.
    pub(super) fn of(
        instance: &Instance,
        backend: Pointer,
        own: OwnFunctions,
        hooks: &BackendHooks,
    ) -> BackendFacts {
        let object = LoadedObject::containing(own.graph_compute);
        let device = devices::device_of(instance, backend);
        let device_type = devices::device_type(instance, backend, device);
        // Several backends may be in one library, or in the program: what is done to
        // see the processor's ops tells nothing of the others'.
        let on_processor = matches!(device_type, devices::CPU | devices::UNKNOWN);
        let hooked = match &object {
            // Without the layout of nodes, nothing can be recorded about an op.
            Some(object) if on_processor && instance.layouts.is_some() => (hooks.ops)(object),
            _ => HookedOps::not(Why::plain(CoveredWhy::NotAnnounced)),
        };
        fault_point!();
        // ggml ends the program if the backend belongs to another library.
        let may_tick = device_type == devices::CPU && !hooked.ops && instance.layouts.is_some();
        let on_device = object.as_ref().filter(|_| device_type != devices::CPU);
        if let Some(library) = on_device {
            device_api::all().iter().for_each(|api| api.look_in(library));
        }
        let is_host_accelerator = device_type == devices::ACCELERATOR
            && own.synchronize == 0
            && devices::uses_host(instance, device);
        let blas = object.as_ref().filter(|_| is_host_accelerator).and_then(devices::blas_behind);
        let api = &instance.api;
        let ask = |function: Option<unsafe extern "C-unwind" fn(Pointer) -> *const _>,
                   of: Pointer| {
            let function = function.filter(|_| !of.is_null());
            // SAFETY: a live object of this instance, and its own function.
            function.map_or(&b""[..], |name| text(unsafe { name(of) })).to_vec()
        };
        BackendFacts {
            device,
            device_type,
            ops_seen: hooked.ops,
            waits_seen: hooked.barrier,
            tick_setter: object.as_ref().filter(|_| may_tick).and_then(ticking::setter_in),
            is_host_accelerator,
            asks_about_nodes: on_device.is_some_and(hooks.nodes),
            device_api: on_device.and_then(device_api::hooked_in),
            copies: own.cpy_tensor_async != 0,
            hooked,
            why_no_kernels: on_device.filter(|_| !is_host_accelerator).and_then(why_unseen),
            blas: blas.unwrap_or_default(),
            name: ask(api.ggml_backend_name, backend),
            device_name: ask(api.ggml_backend_dev_name, device),
            description: ask(api.ggml_backend_dev_description, device),
            library: object.as_ref().map(file_name).unwrap_or_default(),
            path: object.as_ref().map(file_path).unwrap_or_default(),
        }
    }

    /// Describes the backend in the recording, and what is seen of its work.
    pub(super) fn write(&self, id: u32, instance: &Instance, lane: &HeldLane<'_>) {
        let mut interner = lane.recorder.interner();
        let library = interner.lasting_text(lane, &self.library);
        let record = layout::Backend {
            device_type: self.device_type,
            backend: id,
            instance: instance.id,
            name: interner.lasting_text(lane, &self.name),
            device: interner.lasting_text(lane, &self.device_name),
            description: interner.lasting_text(lane, &self.description),
            library,
            path: interner.lasting_text(lane, &self.path),
            ..Default::default()
        };
        lane.define_lasting(Owner::Backend(id), &record.encode());
        fault_point!();
        drop(interner);
        self.cover(instance, lane, |what, how, why| {
            coverage::say(lane, Subject::Backend(id), what, (how, why));
        });
    }

    fn is_covered_by_api(&self) -> bool {
        let api = self.device_api.and_then(|place| device_api::all().get(place));
        api.is_some_and(|api| api.covers_itself())
    }

    /// It is to get one node at a time (`serialize`).
    fn is_computed_by_node(&self, lane: &HeldLane<'_>) -> bool {
        self.is_host_accelerator || lane.recorder.serialize
    }

    /// Records what is seen, how, or why it is not seen.
    fn cover(
        &self,
        instance: &Instance,
        lane: &HeldLane<'_>,
        cover: impl Fn(Covered, CoveredHow, Why<'_>),
    ) {
        let hooked = &self.hooked;
        let untold_if = |seen, why| Why::plain(if seen { CoveredWhy::Untold } else { why });
        cover(Covered::Splits, CoveredHow::FunctionTable, Why::UNTOLD);
        if self.copies {
            cover(Covered::AsyncCopies, CoveredHow::FunctionTable, Why::UNTOLD);
        }
        if let Some(why) = self.why_no_kernels {
            cover(Covered::Kernels, CoveredHow::Not, Why::plain(why));
        }
        if instance.layouts.is_none() {
            let why = Why::plain(CoveredWhy::FieldsUnknown);
            cover(Covered::Ops, CoveredHow::Not, why);
            return;
        }
        let seen = |seen: bool| if seen { hooked.how } else { CoveredHow::Not };
        if self.ops_seen {
            cover(Covered::Ops, hooked.how, Why::UNTOLD);
            let why = untold_if(hooked.barrier, CoveredWhy::NoBarrierCalls);
            cover(Covered::BarrierWaits, seen(hooked.barrier), why);
            let why = untold_if(hooked.forward > 0, CoveredWhy::NoOpFunctions);
            cover(Covered::Fusions, seen(hooked.forward > 0), why);
        } else if self.tick_setter.is_some() {
            cover(Covered::Ops, CoveredHow::AbortCallback, hooked.reason);
            let why = Why::plain(CoveredWhy::FirstThreadOnly);
            cover(Covered::BarrierWaits, CoveredHow::Not, why);
        } else if self.is_computed_by_node(lane) && !instance.makes_graphs_of_one_node() {
            cover(Covered::Ops, CoveredHow::Not, Why::plain(CoveredWhy::NoGraphOfOneNode));
        } else if self.is_host_accelerator {
            let code = match &*self.blas {
                "" => CoveredWhy::Untold,
                _ => CoveredWhy::LeftToLibrary,
            };
            cover(Covered::Ops, CoveredHow::NodeByNode, Why { code, detail: &self.blas });
        } else if lane.recorder.serialize {
            cover(Covered::Ops, CoveredHow::Serialized, Why::UNTOLD);
        } else if !self.is_covered_by_api() {
            cover(Covered::Ops, CoveredHow::Not, hooked.reason);
        }
    }
}

fn why_unseen(library: &LoadedObject) -> Option<CoveredWhy> {
    device_api::all().iter().find_map(|api| api.why_unseen(library))
}
