//! The programs and libraries with ggml linked in whose functions are hooked at their addresses.
//! `hooks::linked_in` decides which functions these are.

use std::ffi::CStr;

use super::inline::InlineHooks;
use super::loaded_object::{LoadedObject, Place, is_gone};
use super::scope::Scope;
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};

/// A program or library with hooks at its own ggml's entry points.
#[derive(Debug)]
pub(crate) struct HookedObject {
    pub(crate) object: LoadedObject,
    pub(crate) functions: Vec<&'static CStr>,
    pub(crate) hooks: InlineHooks,
}

static WITH_GGML_LINKED_IN: Ranked<{ rank::LINKED_IN }, Vec<HookedObject>> =
    Ranked::new(Vec::new());

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &WITH_GGML_LINKED_IN
}

impl HookedObject {
    /// The hooks are in, and stay until the library is gone.
    pub(crate) fn remember(self) {
        fault_point!();
        WITH_GGML_LINKED_IN.lock().push(self);
        fault_point!();
    }
}

/// Forgets the hooks of libraries that were closed, even if they were opened again at
/// the same place, and gives their places.
pub(crate) fn forget_closed() -> Vec<Place> {
    let all = || WITH_GGML_LINKED_IN.lock();
    let known: Vec<Place> = all().iter().map(|hooked| hooked.object.place()).collect();
    // What is still loaded stays loaded while its code is compared.
    let there: Vec<(Place, Scope)> = known
        .into_iter()
        .filter_map(|place| Scope::of(&place.0).map(|held| (place, held)))
        .filter(|(place, _)| !is_gone(place))
        .collect();
    fault_point!();
    let mut closed = Vec::new();
    all().retain(|hooked| {
        let place = hooked.object.place();
        let stays =
            there.iter().any(|(there, _)| *there == place) && hooked.hooks.are_in(&hooked.object);
        if !stays {
            closed.push(place);
        }
        stays
    });
    closed
}

/// Forgets hooks that wait for changes of code: these will not be made.
pub(crate) fn give_up_waiting() {
    WITH_GGML_LINKED_IN.lock().retain_mut(|hooked| !hooked.hooks.give_up_waiting());
}

fn search<R>(wanted: impl FnMut(&HookedObject) -> Option<R>) -> Option<R> {
    WITH_GGML_LINKED_IN.lock_unless_abandoned()?.iter().find_map(wanted)
}

/// Whether a function is of a ggml that is hooked where it is linked in.
pub(crate) fn holds(function: usize) -> bool {
    search(|hooked| hooked.object.holds(function).then_some(())).is_some()
}

/// Whether calls of a function inside the object arrive at us.
pub(crate) fn is_hooked(object: &LoadedObject, symbol: &CStr) -> bool {
    let is_in = |hooked: &HookedObject| {
        let is_this = hooked.object.place() == object.place();
        (is_this && hooked.functions.contains(&symbol)).then_some(())
    };
    search(is_in).is_some()
}
