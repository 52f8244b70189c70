//! A copy of ggml in this process: its functions and its layouts, found once. A process can hold
//! several copies with different layouts (two Python wheels, for example), so nothing about ggml is
//! global.

use std::cell::Cell;
use std::ffi::CStr;

use ggprof_spool::layout::{self, Covered, CoveredHow, CoveredWhy, Why};

use super::this_thread::ThisThread;
use crate::fault::fault_point;
use crate::ffi::api::{Api, Symbols, optional_text};
use crate::ffi::graph::GraphLayout;
use crate::ffi::probe::{self, BackendLayout, Probed};
use crate::ffi::tensor::TensorLayout;
use crate::ffi::which_ggml;
use crate::lock::{HeldAtFork, Locked, Ranked, rank};
use crate::patch::loaded_object::{self, LoadedObject, Place};
use crate::patch::{got, inline, linked_in};
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// One copy of ggml's base library.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) id: u32,
    pub(crate) api: Api,
    /// `None` when a slot could not be confirmed: then no backend is touched.
    pub(crate) backend: Option<BackendLayout>,
    /// `None` when a field could not be confirmed: then no node is read.
    pub(crate) layouts: Option<(TensorLayout, GraphLayout)>,
    place: Place,
}

/// All copies, and the functions for which their copy was asked: every copy of a tensor
/// asks again, and walking through everything loaded takes microseconds.
#[derive(Debug)]
struct KnownInstances {
    instances: Vec<&'static Instance>,
    asked: Vec<(usize, &'static Instance)>,
    /// The loader's count of unloads when they were asked for.
    unloads: u64,
}

static INSTANCES: Ranked<{ rank::INSTANCES }, KnownInstances> =
    Ranked::new(KnownInstances { instances: Vec::new(), asked: Vec::new(), unloads: 0 });

/// For holding it during a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &INSTANCES
}

impl Instance {
    /// The copy that holds one of ggml's base functions, probed at first sight.
    pub(crate) fn holding(function: usize, lane: &HeldLane<'_>) -> Option<&'static Instance> {
        ThisThread::with(|this| this.instance.holding(function, lane))
    }

    #[cold]
    fn find(function: usize, lane: &HeldLane<'_>) -> Option<&'static Instance> {
        let function = inline::function_behind(function);
        let recalled = known().recall(function);
        recalled.or_else(|| Instance::find_or_probe(function, lane))
    }

    #[cold]
    fn find_or_probe(function: usize, lane: &HeldLane<'_>) -> Option<&'static Instance> {
        let object = LoadedObject::containing(function)?;
        if let Some(instance) = known().find(&object, function) {
            return Some(instance);
        }
        // If another profiler is in between, the function is the profiler's.
        let object = LoadedObject::containing(which_ggml::of_ggml(function))?;
        if let Some(instance) = known().find(&object, function) {
            return Some(instance);
        }
        let symbols = Symbols::of(&object)?;
        let (api, probed) = (Api::of(&symbols), probe::probe(&symbols));
        // Asks the loader, and so before any lock is held.
        let llama = llama_file().unwrap_or_default();
        fault_point!();
        let mut known = known();
        // Another thread may have done the same meanwhile.
        if let Some(instance) = known.find(&object, function) {
            return Some(instance);
        }
        let instance: &'static Instance = Box::leak(Box::new(Instance {
            id: known.instances.len() as u32 + 1,
            api,
            backend: probed.backend.ok(),
            layouts: probed.layouts.ok(),
            place: object.place(),
        }));
        // Described before it can be found: what computes later refers to it.
        instance.write(lane, &object, &probed, &llama);
        fault_point!();
        known.instances.push(instance);
        known.find(&object, function)
    }

    fn write(&self, lane: &HeldLane<'_>, object: &LoadedObject, probed: &Probed, llama: &[u8]) {
        let mut interner = lane.recorder.interner();
        let library = interner.lasting_text(lane, &file_name(object));
        let path = interner.lasting_text(lane, &file_path(object));
        let version = interner.lasting_text(lane, optional_text(self.api.ggml_version));
        let commit = interner.lasting_text(lane, optional_text(self.api.ggml_commit));
        let llama = interner.lasting_text(lane, llama);
        let tensor_bytes = self.layouts.map_or(0, |(tensor, _)| tensor.bytes as u32);
        let instance = self.id;
        let record = layout::Instance {
            instance,
            library,
            version,
            commit,
            tensor_bytes,
            llama,
            path,
            ..Default::default()
        };
        lane.define_lasting(Owner::Instance(instance), &record.encode());
        let mut cover = |what: Covered, (how, why): (CoveredHow, Why<'_>)| {
            let coverage = layout::Coverage {
                how: how as u8,
                what: what as u16,
                library,
                why: why.code as u32,
                detail: interner.lasting_text(lane, why.detail.as_bytes()),
                instance,
                ..Default::default()
            };
            lane.define_lasting(Owner::Instance(instance), &coverage.encode());
        };
        let not = |detail| (CoveredHow::Not, Why { code: CoveredWhy::LayoutNotFound, detail });
        let probed_well = (CoveredHow::Probed, Why::UNTOLD);
        cover(
            Covered::Layout,
            probed.layouts.as_ref().map_or_else(|why| not(why), |_| probed_well),
        );
        if let Err(problem) = probed.backend {
            cover(Covered::Splits, not(problem));
        }
        let by_direct_calls = |why| (CoveredHow::Not, Why::plain(why));
        let untold = |how| (how, Why::UNTOLD);
        let copies = seen_by(object, COPY);
        cover(
            Covered::Copies,
            copies.map_or(by_direct_calls(CoveredWhy::CopiesCalledDirectly), untold),
        );
        let memory = match (seen_by(object, MAKE), seen_by(object, FREE)) {
            (None, _) => by_direct_calls(CoveredWhy::BuffersMadeDirectly),
            (Some(how), None) => (how, Why::plain(CoveredWhy::FreesNotSeen)),
            (Some(how), Some(_)) => untold(how),
        };
        cover(Covered::Memory, memory);
    }
}

/// The copy that a thread asked for last: most threads use one, and ask at every copy of a
/// tensor.
#[derive(Debug)]
pub(crate) struct LastInstance {
    function: Cell<usize>,
    instance: Cell<Option<&'static Instance>>,
    /// The loader's count of unloads when it was asked for.
    unloads: Cell<u64>,
}

impl LastInstance {
    #[inline(always)]
    fn holding(&self, function: usize, lane: &HeldLane<'_>) -> Option<&'static Instance> {
        let unloads = loaded_object::unloads();
        let known = self.function.get() == function && self.unloads.get() == unloads;
        if let Some(instance) = self.instance.get().filter(|_| known) {
            return Some(instance);
        }
        self.instance.set(Instance::find(function, lane));
        self.function.set(function);
        self.unloads.set(unloads);
        self.instance.get()
    }
}

impl KnownInstances {
    fn recall(&mut self, function: usize) -> Option<&'static Instance> {
        let unloads = loaded_object::unloads();
        if self.unloads != unloads {
            self.unloads = unloads;
            self.asked.clear();
        }
        self.asked.iter().find(|(asked, _)| *asked == function).map(|(_, instance)| *instance)
    }

    /// The copy in an object, which the function leads to; remembered.
    fn find(&mut self, object: &LoadedObject, function: usize) -> Option<&'static Instance> {
        let place = object.place();
        let same = |seen: &&&Instance| seen.place == place;
        let instance = *self.instances.iter().find(same)?;
        self.asked.push((function, instance));
        Some(instance)
    }
}

fn known() -> Locked<'static, { rank::INSTANCES }, KnownInstances> {
    INSTANCES.lock()
}

const COPY: &CStr = c"ggml_backend_tensor_copy";
const MAKE: &CStr = c"ggml_backend_buft_alloc_buffer";
const FREE: &CStr = c"ggml_backend_buffer_free";

/// How an object's own calls of a function come to us, if they do.
fn seen_by(object: &LoadedObject, function: &CStr) -> Option<CoveredHow> {
    if linked_in::is_hooked(object, function) {
        return Some(CoveredHow::InlineHook);
    }
    calls_by_name(object, function).then_some(CoveredHow::SymbolName)
}

/// Whether the library's own calls of a function go through a slot, and so to us.
fn calls_by_name(object: &LoadedObject, function: &CStr) -> bool {
    let mut found = false;
    got::for_each(object, |slot| found |= slot.name == function);
    found
}

/// The file of libllama, where it is a library of its own. Builds tell their number in its name, at the
/// end of the links that lead to it.
fn llama_file() -> Option<Vec<u8>> {
    let libllama = loaded_object::all().into_iter().find(|object| {
        let name = file_name(object);
        name.starts_with(b"libllama.") && name.windows(3).any(|part| part == b".so")
    })?;
    let file = libllama.file().and_then(|path| path.canonicalize().ok());
    let name = file.as_deref().and_then(|path| path.file_name());
    Some(name.map_or_else(|| file_name(&libllama), |name| name.as_encoded_bytes().to_vec()))
}

/// Paths may hold a user's name; the report needs the file's only. The loader has no
/// name for the program itself.
pub(crate) fn file_name(object: &LoadedObject) -> Vec<u8> {
    let name = object.name.to_bytes();
    let path = if name.is_empty() { &file_path(object)[..] } else { name };
    path.rsplit(|&b| b == b'/').next().unwrap_or_default().to_vec()
}

/// Where the file is that an object was loaded from; empty where nobody tells.
pub(super) fn file_path(object: &LoadedObject) -> Vec<u8> {
    let Some(file) = object.file() else { return Vec::new() };
    // The kernel's link to the program leads to its name.
    let file = if file.starts_with("/proc") { file.read_link().unwrap_or(file) } else { file };
    file.into_os_string().into_encoded_bytes()
}
