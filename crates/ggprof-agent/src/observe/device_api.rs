//! The interface to a device API, with which ggml's libraries give work to devices; `devices` has
//! the APIs that are known. The rest of the agent calls it wherever something may concern a device.
//! Most functions concern few APIs, so nearly all have a default.

use std::fmt::Debug;

use ggprof_spool::layout::CoveredWhy;

use super::adopted::Adopted;
use super::this_thread::ThisThread;
use crate::config::Environment;
use crate::lock::HeldAtFork;
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::lane::HeldLane;
use crate::set_once::SetOnce;

pub(crate) trait DeviceApi: Debug + Sync {
    /// The name that tells this API from the others.
    fn name(&self) -> &'static str;

    /// Variables that it looks at, besides those that are ours alone.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads this API's settings. A value that is not known is refused with a sentence.
    fn understand(&self, environment: &Environment) -> Result<(), String>;

    /// Sets the variables that ggml's libraries should find. Called only before `main`: later, other
    /// threads of the program may read the environment.
    fn prepare_environment(&self, _environment: &Environment) {}

    /// A library was loaded, perhaps one of this API's.
    fn note_loaded(&self) {}

    /// If a backend's library uses this API but its kernels cannot be observed: why.
    fn why_unseen(&self, _library: &LoadedObject) -> Option<CoveredWhy> {
        None
    }

    /// A library with a device's backend is about to compute.
    fn look_in(&self, _library: &LoadedObject) {}

    /// Hooks this API's calls in such a library; false if it makes none that can be hooked. If true, the
    /// library's backends belong to this API, and the functions below, down to `before_backend_free`,
    /// are called for those backends only.
    fn hook_calls(&self, _library: &LoadedObject) -> bool {
        false
    }

    /// Whether it records by itself, as coverage, how ops and kernels are observed.
    fn covers_itself(&self) -> bool {
        false
    }

    /// Called before a split is computed; its own time is not counted as the split's. If true,
    /// `leave_split` follows in any case, also when the split fails.
    fn begin_split(
        &self,
        _this: &ThisThread,
        _lane: &HeldLane<'static>,
        _adopted: &Adopted,
        _split: u32,
    ) -> bool {
        false
    }

    /// A backend has computed a split. `stream` is where its work went, 0 if that was not seen.
    fn end_split(&self, _lane: &HeldLane<'_>, _backend: u32, _split: u32, _stream: usize) {}

    fn leave_split(&self) {}

    /// Runs `work` while no thread of the agent waits for a backend.
    fn while_nobody_waits(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// The program is about to free a backend; its streams still exist.
    fn before_backend_free(&self, _lane: &HeldLane<'_>, _freed: &Adopted) {}

    /// A split of any backend is not recorded: what only recording needs may be put away.
    fn note_unrecorded_split(&self) {}

    /// The program has waited for all work of a scheduler's devices.
    fn note_waited(&self) {}

    /// Writes what has arrived into the file, without waiting for more.
    fn deliver(&self) {}

    /// Whether the program has used this API. A forked child cannot reach its devices.
    fn is_in_use(&self) -> bool;

    /// The locks that a forked child needs, numbered from 0; `None` after the last one.
    fn fork_lock(&self, _number: usize) -> Option<&'static dyn HeldAtFork> {
        None
    }

    /// Whether there is anything for `withdraw` to undo.
    fn has_left_something(&self) -> bool {
        false
    }

    /// The process ends. May run in a signal handler, and in a child that borrows its parent's
    /// memory: system calls only.
    fn withdraw(&self) {}
}

#[unsafe(link_section = ".data.asleep")]
static REGISTERED: SetOnce<&'static [&'static dyn DeviceApi]> = SetOnce::new();

/// Called before anything can be recorded.
pub(crate) fn register(known: &'static [&'static dyn DeviceApi]) {
    REGISTERED.set(known);
}

/// Locks of one API that are held while the process forks. An iterator and not a list, because nothing may
/// be allocated there.
pub(crate) fn fork_locks(
    api: &'static dyn DeviceApi,
) -> impl Iterator<Item = &'static dyn HeldAtFork> {
    (0..).map_while(|number| api.fork_lock(number))
}

pub(crate) fn all() -> &'static [&'static dyn DeviceApi] {
    REGISTERED.get().copied().unwrap_or_default()
}

/// The place in that list of the API whose calls the library makes; they are hooked.
pub(super) fn hooked_in(library: &LoadedObject) -> Option<usize> {
    all().iter().position(|api| api.hook_calls(library))
}

/// A split of a device is being computed, until this is dropped. Without an end it is not timed.
#[derive(Debug)]
pub(crate) struct DeviceSplit {
    api: &'static dyn DeviceApi,
    backend: u32,
    split: u32,
}

impl DeviceSplit {
    pub(crate) fn begin(
        this: &ThisThread,
        lane: &HeldLane<'static>,
        adopted: &Adopted,
        split: u32,
    ) -> Option<DeviceSplit> {
        let api = adopted.device_api()?;
        let begun = api.begin_split(this, lane, adopted, split);
        begun.then(|| DeviceSplit { api, backend: adopted.id(), split })
    }

    pub(crate) fn end(self, lane: &HeldLane<'_>, stream: usize) {
        self.api.end_split(lane, self.backend, self.split, stream);
    }
}

impl Drop for DeviceSplit {
    fn drop(&mut self) {
        self.api.leave_split();
    }
}
