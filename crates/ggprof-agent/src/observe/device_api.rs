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

    /// Learns what was asked for. A word that is not understood is refused with a sentence.
    fn understand(&self, environment: &Environment) -> Result<(), String>;

    /// What ggml's libraries are to find in the environment. Before `main` only: later the
    /// program's threads may read it.
    fn prepare_environment(&self, _environment: &Environment) {}

    /// Something was loaded into the process, perhaps what the API consists of.
    fn note_loaded(&self) {}

    /// Why the kernels of a backend's library are not seen, if it works with this API and they are
    /// not.
    fn why_unseen(&self, _library: &LoadedObject) -> Option<CoveredWhy> {
        None
    }

    /// A library with a device's backend is about to compute.
    fn look_in(&self, _library: &LoadedObject) {}

    /// Hooks the calls by which such a library hands work to this API; false where it makes none
    /// that can be seen. A backend of a library that does is this API's: what follows below until
    /// `before_backend_free` is asked for its backends alone.
    fn hook_calls(&self, _library: &LoadedObject) -> bool {
        false
    }

    /// Whether it tells by itself how ops and kernels are seen.
    fn covers_itself(&self) -> bool {
        false
    }

    /// Before a split is computed, outside its time. False where it is left alone; otherwise
    /// `leave_split` follows, whatever happens.
    fn begin_split(
        &self,
        _this: &ThisThread,
        _lane: &HeldLane<'static>,
        _adopted: &Adopted,
        _split: u32,
    ) -> bool {
        false
    }

    /// The split of a backend was computed. `stream` is the one its work went to, 0 where not seen.
    fn end_split(&self, _lane: &HeldLane<'_>, _backend: u32, _split: u32, _stream: usize) {}

    fn leave_split(&self) {}

    /// Does something at a moment when no thread of ours waits for a backend.
    fn while_nobody_waits(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// The program is about to free a backend, whose streams and the like are still there.
    fn before_backend_free(&self, _lane: &HeldLane<'_>, _freed: &Adopted) {}

    /// A split, of whichever backend, is not recorded: a chance to put away what recording needs.
    fn note_unrecorded_split(&self) {}

    /// The program has waited for all work of a scheduler's devices.
    fn note_waited(&self) {}

    /// Writes everything that is there into the file, without waiting.
    fn deliver(&self) {}

    /// Whether the program has used it: what devices did is out of reach in a forked child.
    fn is_in_use(&self) -> bool;

    /// The locks that a forked child needs, numbered from 0 on; `None` behind the last.
    fn fork_lock(&self, _number: usize) -> Option<&'static dyn HeldAtFork> {
        None
    }

    /// Whether `withdraw` has something to do.
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
