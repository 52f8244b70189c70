//! A copy of ggml in this process: its functions and its layouts, found once. A process can hold
//! several copies with different layouts (two Python wheels, for example), so nothing about ggml is
//! global.

use std::cell::Cell;
use std::ffi::CStr;

use ggprof_spool::layout::{self, Covered, CoveredHow, CoveredWhy, Why};

use super::coverage::{self, Subject};
use super::this_thread::ThisThread;
use crate::fault::fault_point;
use crate::ffi::api::{Api, OneNodeFunctions, Symbols};
use crate::ffi::graph::GraphLayout;
use crate::ffi::llama;
use crate::ffi::one_node::{OneNodeGraphs, Way};
use crate::ffi::probe::{self, BackendLayout, Probed};
use crate::ffi::tensor::TensorLayout;
use crate::ffi::versions::{self, Says};
use crate::ffi::which_ggml;
use crate::lock::{HeldAtFork, Locked, Ranked, rank};
use crate::patch::loaded_object::{self, LoadedObject, Place};
use crate::patch::scope::Scope;
use crate::patch::{got, inline, linked_in};
use crate::recorder::current;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// One copy of ggml's base library.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) id: u32,
    pub(crate) api: Api,
    one_node: OneNodeFunctions,
    /// `None` when a slot could not be confirmed: then no backend is touched.
    pub(crate) backend: Option<BackendLayout>,
    /// `None` when a field could not be confirmed: then no node is read.
    pub(crate) layouts: Option<(TensorLayout, GraphLayout)>,
    place: Place,
}

/// All copies of ggml, and a cache from functions to their copy: each transfer of a tensor asks
/// again, and walking through everything that is loaded takes microseconds.
#[derive(Debug)]
struct KnownInstances {
    instances: Vec<&'static Instance>,
    /// What probing told of copies before anything is recorded.
    foreseen: Vec<(Place, Findings)>,
    asked: Vec<(usize, &'static Instance)>,
    /// The loader's count of unloads when they were asked for.
    unloads: u64,
}

static INSTANCES: Ranked<{ rank::INSTANCES }, KnownInstances> = Ranked::new(KnownInstances {
    instances: Vec::new(),
    foreseen: Vec::new(),
    asked: Vec::new(),
    unloads: 0,
});

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
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
        let object = object_of(function)?;
        if let Some(instance) = known().find(&object, function) {
            return Some(instance);
        }
        let foreseen = known().take_foreseen(&object);
        // Asks the loader and children, and so before any lock is held.
        let Findings { api, one_node, probed, names } =
            foreseen.or_else(|| Findings::of(&object))?;
        fault_point!();
        let mut known = known();
        // Another thread may have done the same meanwhile.
        if let Some(instance) = known.find(&object, function) {
            return Some(instance);
        }
        let instance: &'static Instance = Box::leak(Box::new(Instance {
            id: known.instances.len() as u32 + 1,
            api,
            one_node,
            backend: probed.backend.ok(),
            layouts: probed.layouts.ok(),
            place: object.place(),
        }));
        // Described before it can be found: later records refer to the description.
        instance.write(lane, &object, &probed, &names);
        fault_point!();
        known.instances.push(instance);
        known.find(&object, function)
    }

    /// What makes graphs of one node with this ggml, if a way was found.
    pub(super) fn one_node_graphs(&self) -> Option<OneNodeGraphs> {
        let (_, layout) = self.layouts.as_ref()?;
        // SAFETY: this ggml's functions, and the way that was tried out with them.
        unsafe { OneNodeGraphs::new(&self.one_node, layout.one_node) }
    }

    pub(super) fn makes_graphs_of_one_node(&self) -> bool {
        self.layouts.as_ref().is_some_and(|(_, layout)| layout.one_node != Way::Unknown)
    }

    fn write(&self, lane: &HeldLane<'_>, object: &LoadedObject, probed: &Probed, names: &Names) {
        let mut interner = lane.recorder.interner();
        let library = interner.lasting_text(lane, &file_name(object));
        let path = interner.lasting_text(lane, &file_path(object));
        let version = interner.lasting_text(lane, names.version);
        let commit = interner.lasting_text(lane, names.commit);
        let llama = interner.lasting_text(lane, &names.llama);
        let instance = self.id;
        let record = layout::Instance {
            instance,
            library,
            version,
            commit,
            llama,
            path,
            ..Default::default()
        };
        lane.define_lasting(Owner::Instance(instance), &record.encode());
        drop(interner);
        let subject = Subject::Instance { id: instance, library };
        let cover = |what, told| coverage::say(lane, subject, what, told);
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

/// Probes a copy of ggml as soon as the program makes memory with it. A child process costs the program
/// for each page that it has by then: its entry is copied, and the next write to it faults. Before the
/// first recording that is little; when the first graph is computed, the model is loaded.
pub(crate) fn foresee(function: usize) {
    if !current::is_on() || current::recorder().is_some() {
        return;
    }
    let Some(object) = object_of(inline::function_behind(function)) else { return };
    if known().is_foreseen(&object) {
        return;
    }
    fault_point!();
    let Some(findings) = Findings::of(&object) else { return };
    llama::prove_batches(&libllama().unwrap_or_else(|| object.clone()));
    fault_point!();
    known().foreseen.push((object.place(), findings));
}

/// The object with the ggml that a function is of. If another profiler is in between, the function is
/// the profiler's.
fn object_of(function: usize) -> Option<LoadedObject> {
    LoadedObject::containing(which_ggml::of_ggml(function))
}

/// What probing tells of a copy.
#[derive(Debug)]
struct Findings {
    api: Api,
    one_node: OneNodeFunctions,
    probed: Probed,
    names: Names,
}

impl Findings {
    fn of(object: &LoadedObject) -> Option<Findings> {
        let symbols = Symbols::of(object)?;
        let (api, probed) = (Api::of(&symbols), probe::probe(&symbols));
        let one_node = OneNodeFunctions::of(&symbols);
        Some(Findings { api, one_node, probed, names: Names::of(&api) })
    }

    fn are_whole(&self) -> bool {
        self.probed.layouts.is_ok() && self.probed.backend.is_ok()
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

    fn is_foreseen(&self, object: &LoadedObject) -> bool {
        let place = object.place();
        self.foreseen.iter().any(|(foreseen, _)| *foreseen == place)
    }

    /// What was found earlier. What was missing then is looked for again.
    fn take_foreseen(&mut self, object: &LoadedObject) -> Option<Findings> {
        let place = object.place();
        let at = self.foreseen.iter().position(|(foreseen, _)| *foreseen == place)?;
        Some(self.foreseen.swap_remove(at).1).filter(Findings::are_whole)
    }

    /// The copy in an object that the function leads to. Remembers that for the function.
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

/// How an object's own calls of a function reach the agent, if they do.
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

/// What the libraries call themselves.
#[derive(Debug)]
struct Names {
    version: &'static [u8],
    commit: &'static [u8],
    /// The file of libllama, where it is a library of its own, and its version behind that, if it says
    /// one. Other builds tell their number in the file's name, at the end of the links that lead to it.
    llama: Vec<u8>,
}

impl Names {
    fn of(api: &Api) -> Names {
        let libllama = libllama();
        let llama_version = libllama.as_ref().and_then(llama_version);
        let said = versions::said_by([api.ggml_version, api.ggml_commit, llama_version]);
        let [version, commit, llama_version] = said;
        let mut llama = libllama.as_ref().map(name_of_links_end).unwrap_or_default();
        if !llama_version.is_empty() {
            llama.push(b' ');
            llama.extend_from_slice(llama_version);
        }
        Names { version, commit, llama }
    }
}

fn libllama() -> Option<LoadedObject> {
    loaded_object::all().into_iter().find(|object| {
        let name = file_name(object);
        name.starts_with(b"libllama.") && name.windows(3).any(|part| part == b".so")
    })
}

fn name_of_links_end(library: &LoadedObject) -> Vec<u8> {
    let file = library.file().and_then(|path| path.canonicalize().ok());
    let name = file.as_deref().and_then(|path| path.file_name());
    name.map_or_else(|| file_name(library), |name| name.as_encoded_bytes().to_vec())
}

/// The function that tells its version. Newer ones have it (2026).
fn llama_version(libllama: &LoadedObject) -> Says {
    let scope = Scope::of(&libllama.name)?;
    let [version, decode] = [c"llama_version", c"llama_decode"].map(|name| scope.find(name));
    // Another library may have a function of this name, with another meaning.
    let is_its_own = libllama.holds_code(version) && libllama.holds_code(decode);
    // SAFETY: an address of code; whether the function is of this type is tried out (`versions`).
    is_its_own.then(|| unsafe { std::mem::transmute::<usize, Says>(version) })?
}

/// Paths may hold a user's name; the report needs the file's only. The loader has no
/// name for the program itself.
pub(crate) fn file_name(object: &LoadedObject) -> Vec<u8> {
    let name = object.name.to_bytes();
    let path = if name.is_empty() { &file_path(object)[..] } else { name };
    path.rsplit(|&b| b == b'/').next().unwrap_or_default().to_vec()
}

/// Where the file is that an object was loaded from; empty if that is not known.
pub(super) fn file_path(object: &LoadedObject) -> Vec<u8> {
    let Some(file) = object.file() else { return Vec::new() };
    // The kernel's link to the program leads to its name.
    let file = if file.starts_with("/proc") { file.read_link().unwrap_or(file) } else { file };
    file.into_os_string().into_encoded_bytes()
}
