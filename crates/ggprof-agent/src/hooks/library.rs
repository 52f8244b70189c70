//! Which slots of a backend's library are replaced, and by what. Decided by
//! symbol names alone: no library name, no version.

use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::cpu_ops::{self, FORWARDS, LIBRARIES};
use crate::patch::got::{self, Slot};
use crate::patch::loaded_object::LoadedObject;

const EXTRA: &CStr = c"ggml_cpu_extra_compute_forward";
const BARRIER: &CStr = c"ggml_barrier";
const FORWARD_PREFIX: &[u8] = b"ggml_compute_forward_";

/// What could be hooked in a library.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooked {
    pub(crate) ops: bool,
    pub(crate) barrier: bool,
    pub(crate) forward: u32,
    /// Why ops are not seen, when they are not.
    pub(crate) reason: &'static str,
}

struct Library {
    base: usize,
    name: CString,
    hooked: Hooked,
}

struct Hooks {
    libraries: [Option<Library>; LIBRARIES],
    /// Which library's number each forward hook serves.
    forwards: [Option<u8>; FORWARDS],
}

static HOOKS: Mutex<Hooks> =
    Mutex::new(Hooks { libraries: [const { None }; LIBRARIES], forwards: [None; FORWARDS] });

/// Hooks the library that holds a backend, once.
pub(crate) fn hook_ops(object: &LoadedObject) -> Hooked {
    let mut hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    if !announces_ops(object) {
        let reason = "the library does not announce its ops by a call that can be seen";
        return Hooked { reason, ..Hooked::default() };
    }
    let Some(number) = hooks.number_for(object) else {
        return Hooked { reason: "too many CPU libraries at once", ..Hooked::default() };
    };
    if let Some(known) = &hooks.libraries[number]
        && still_hooked(object, number)
    {
        return known.hooked.clone();
    }
    let hooked = hooks.replace_slots(object, number);
    let name = object.name.clone();
    hooks.libraries[number] = Some(Library { base: object.base, name, hooked: hooked.clone() });
    hooked
}

/// Whether the library calls, by a slot, the function that comes first in every op.
pub(crate) fn announces_ops(object: &LoadedObject) -> bool {
    let mut announces = false;
    got::for_each(object, |slot| announces |= slot.name == EXTRA);
    announces
}

/// The hook at this place has nothing to tell: the library gets its own function
/// back. Most functions are only called for a node that was announced just
/// before; the hooks that stay are those of fusions.
pub(crate) fn unhook_forward(place: usize) {
    let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    for library in hooks.libraries.iter().flatten() {
        let object = LoadedObject::containing(library.base);
        let Some(object) = object.filter(|object| object.name == library.name) else { continue };
        got::for_each(&object, |slot| {
            if slot.value() == cpu_ops::forward_hook(place) {
                slot.replace(&object, cpu_ops::FORWARD[place].load(Ordering::Acquire));
            }
        });
    }
}

/// A library closed and opened again at the same place has fresh slots.
fn still_hooked(object: &LoadedObject, number: usize) -> bool {
    let mut hooked = false;
    got::for_each(object, |slot| {
        hooked |= slot.name == EXTRA && slot.value() == cpu_ops::extra_hook(number);
    });
    hooked
}

impl Hooks {
    /// The library's number: its own, a free one, or that of one that is gone.
    fn number_for(&self, object: &LoadedObject) -> Option<usize> {
        let is_this =
            |library: &Library| library.base == object.base && library.name == object.name;
        let own = self.libraries.iter().position(|library| library.as_ref().is_some_and(is_this));
        let free = || self.libraries.iter().position(Option::is_none);
        let gone = || {
            self.libraries.iter().position(|library| {
                library.as_ref().is_some_and(|library| {
                    let now = LoadedObject::containing(library.base);
                    now.is_none_or(|now| now.name != library.name)
                })
            })
        };
        own.or_else(free).or_else(gone)
    }

    fn replace_slots(&mut self, object: &LoadedObject, number: usize) -> Hooked {
        let mut hooked = Hooked::default();
        // Hooks of a library that had this number before serve nobody now.
        let mine = Some(number as u8);
        self.forwards.iter_mut().filter(|owner| **owner == mine).for_each(|owner| *owner = None);
        got::for_each(object, |slot| {
            if slot.name == EXTRA {
                let hook = cpu_ops::extra_hook(number);
                hooked.ops |= replace(object, slot, hook, &cpu_ops::EXTRA[number]);
            } else if slot.name == BARRIER {
                let hook = cpu_ops::barrier_hook(number);
                hooked.barrier |= replace(object, slot, hook, &cpu_ops::BARRIER[number]);
            } else if slot.name.to_bytes().starts_with(FORWARD_PREFIX)
                && let Some(place) = self.forwards.iter().position(Option::is_none)
            {
                cpu_ops::forget_use(place);
                let hook = cpu_ops::forward_hook(place);
                if replace(object, slot, hook, &cpu_ops::FORWARD[place]) {
                    self.forwards[place] = mine;
                    hooked.forward += 1;
                }
            }
        });
        if !hooked.ops {
            hooked.reason = "the library's call slots could not be written";
        }
        hooked
    }
}

/// Keeps the real function, then puts the hook in its place.
pub(super) fn replace(
    object: &LoadedObject,
    slot: &Slot<'_>,
    hook: usize,
    kept: &std::sync::atomic::AtomicUsize,
) -> bool {
    let real = slot.leads_to(object);
    if real == 0 {
        return false;
    }
    kept.store(real, Ordering::Release);
    slot.replace(object, hook)
}
