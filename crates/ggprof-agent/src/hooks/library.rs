//! Decides how the ops of a backend's library are seen: through the slots with which it calls its
//! own functions or, if its calls do not use slots, at the functions' entries (`inline_ops`).
//! Symbol names and the calls themselves decide, never the library's name or version.

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use ggprof_spool::layout::{CoveredHow, CoveredWhy, Why};

use super::barrier;
use super::cpu_ops::{self, FORWARDS, LIBRARIES};
use super::inline_ops;
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::observe::backend_hooks::HookedOps;
use crate::patch::got::{self, Slot};
use crate::patch::inline::InlineHooks;
use crate::patch::loaded_object::{LoadedObject, Place, is_gone};
use crate::patch::{exports, scope, symbols};

pub(super) const EXTRA: &CStr = c"ggml_cpu_extra_compute_forward";
pub(super) const BARRIER: &CStr = c"ggml_barrier";
pub(super) const FORWARD_PREFIX: &[u8] = b"ggml_compute_forward_";

struct Library {
    place: Place,
    hooked: HookedOps,
    inline: Option<InlineHooks>,
    /// Being hooked; or hooking failed, and it is not known which hooks are in.
    is_half: bool,
}

pub(super) struct Hooks {
    libraries: [Option<Library>; LIBRARIES],
    /// Which library's number each forward hook serves.
    forwards: [Option<u8>; FORWARDS],
}

static HOOKS: Ranked<{ rank::CPU_LIBRARIES }, Hooks> =
    Ranked::new(Hooks { libraries: [const { None }; LIBRARIES], forwards: [None; FORWARDS] });

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &HOOKS
}

/// Hooks the library that holds a backend of the host's processor, once.
pub(crate) fn hook_ops(object: &LoadedObject) -> HookedOps {
    got::bind(object, |name| name == EXTRA || name == BARRIER || is_forward(name));
    fault_point!();
    let mut hooks = HOOKS.lock();
    let Some(number) = hooks.number_for(object) else {
        return HookedOps::not(Why::plain(CoveredWhy::TooManyLibraries));
    };
    if let Some(known) = &hooks.libraries[number]
        && known.is_still_hooked(object, number)
    {
        return known.hooked.clone();
    }
    // Taken before it is used: no other library may get a number that some of this one's
    // calls lead to. If it fails half-way, it is not tried again.
    hooks.libraries[number] = Some(Library::half_hooked(object));
    fault_point!();
    let (hooked, inline) = if announces_ops(object) {
        (hooks.replace_slots(object, number), None)
    } else {
        match inline_ops::hook(&mut hooks, object, number) {
            Ok((hooked, inline)) => (hooked, Some(inline)),
            Err(reason) => {
                hooks.libraries[number] = None;
                return HookedOps::not(reason);
            }
        }
    };
    fault_point!();
    let place = object.place();
    let library = Library { place, hooked: hooked.clone(), inline, is_half: false };
    hooks.libraries[number] = Some(library);
    hooked
}

/// Hooks libraries whose backends may have computed already, if that takes changes of code: later it would
/// be too late (`standing`). Where slots are enough, a library is hooked with its first graph.
pub(crate) fn hook_running() {
    for (object, _held) in scope::all_held() {
        let has_ops = || {
            symbols::may_hide(&object, &[BARRIER])
                || exports::shows(object.base, object.dynamic, BARRIER)
        };
        if !object.is_of_the_system() && has_ops() && !announces_ops(&object) {
            hook_ops(&object);
        }
    }
}

/// The changes of code that hooks wait for will not be made: their libraries count as not hooked.
pub(crate) fn give_up_waiting() {
    let mut hooks = HOOKS.lock();
    for library in &mut hooks.libraries {
        let waiting = library.as_mut().and_then(|library| library.inline.as_mut());
        if waiting.is_some_and(InlineHooks::give_up_waiting) {
            *library = None;
        }
    }
}

/// Whether the library calls, by a slot, the function that comes first in every op.
pub(crate) fn announces_ops(object: &LoadedObject) -> bool {
    let mut announces = false;
    got::for_each(object, |slot| announces |= slot.name == EXTRA);
    announces
}

/// The hook at this place shows nothing new: the library gets its own function
/// back. Most functions are only called for a node that was announced just
/// before; the hooks that stay are those of fusions.
pub(crate) fn unhook_forward(place: usize) {
    let hooks = HOOKS.lock();
    let number = hooks.forwards.get(place).copied().flatten();
    let library = number.and_then(|number| hooks.libraries[usize::from(number)].as_ref());
    let Some((name, start)) = library.map(|library| &library.place) else { return };
    let object = LoadedObject::containing(*start);
    let Some(object) = object.filter(|object| object.name == *name) else { return };
    // It cannot be closed meanwhile: this thread was called by it and will return there.
    got::for_each(&object, |slot| {
        if slot.value() == cpu_ops::forward_stand_in(place) {
            slot.replace(&object, cpu_ops::FORWARD[place].load(Ordering::Acquire));
        }
    });
}

impl Library {
    fn half_hooked(object: &LoadedObject) -> Library {
        let hooked = HookedOps::not(Why::plain(CoveredWhy::HookedHalfWay));
        Library { place: object.place(), hooked, inline: None, is_half: true }
    }

    /// A library closed and opened again at the same place is as it was at first.
    fn is_still_hooked(&self, object: &LoadedObject, number: usize) -> bool {
        if let Some(inline) = &self.inline {
            return inline.are_in(object);
        }
        let mut hooked = self.is_half;
        got::for_each(object, |slot| {
            hooked |= slot.name == EXTRA && slot.value() == cpu_ops::extra_stand_in(number);
        });
        hooked
    }
}

impl Hooks {
    /// The library's number: its own, a free one, or that of one that is gone.
    fn number_for(&self, object: &LoadedObject) -> Option<usize> {
        let place = object.place();
        let is_this = |library: &Library| library.place == place;
        let own = self.libraries.iter().position(|library| library.as_ref().is_some_and(is_this));
        let free = || self.libraries.iter().position(Option::is_none);
        let is_gone = |library: &Library| is_gone(&library.place);
        let gone =
            || self.libraries.iter().position(|library| library.as_ref().is_some_and(is_gone));
        own.or_else(free).or_else(gone)
    }

    /// The hooks of a library that had this number before are not called any more.
    pub(super) fn free_forwards_of(&mut self, number: usize) {
        let before = Some(number as u8);
        self.forwards.iter_mut().filter(|owner| **owner == before).for_each(|owner| *owner = None);
    }

    /// A forward hook for the library of this number.
    pub(super) fn take_forward(&mut self, number: usize) -> Option<usize> {
        let place = self.forwards.iter().position(Option::is_none)?;
        cpu_ops::forget_use(place);
        self.forwards[place] = Some(number as u8);
        Some(place)
    }

    fn replace_slots(&mut self, object: &LoadedObject, number: usize) -> HookedOps {
        let mut hooked = HookedOps { how: CoveredHow::GotSlot, ..HookedOps::not(Why::UNTOLD) };
        self.free_forwards_of(number);
        got::for_each(object, |slot| {
            if slot.name == EXTRA {
                let stand_in = cpu_ops::extra_stand_in(number);
                hooked.ops |= replace(object, slot, stand_in, &cpu_ops::EXTRA[number]);
            } else if slot.name == BARRIER {
                let stand_in = barrier::stand_in(number);
                hooked.barrier |= replace(object, slot, stand_in, &barrier::BARRIER[number]);
            } else if is_forward(slot.name)
                && let Some(place) = self.take_forward(number)
            {
                let stand_in = cpu_ops::forward_stand_in(place);
                hooked.forward +=
                    u32::from(replace(object, slot, stand_in, &cpu_ops::FORWARD[place]));
            }
        });
        if !hooked.ops {
            hooked.reason = Why::plain(CoveredWhy::SlotsNotWritable);
        }
        hooked
    }
}

fn is_forward(name: &CStr) -> bool {
    name.to_bytes().starts_with(FORWARD_PREFIX)
}

/// Keeps the real function, then puts the stand-in in its place. False if the slot is not bound, or cannot
/// be changed.
pub(crate) fn replace(
    object: &LoadedObject,
    slot: &Slot<'_>,
    stand_in: usize,
    kept: &std::sync::atomic::AtomicUsize,
) -> bool {
    let real = slot.value();
    if real == 0 || !slot.is_bound(object) {
        return false;
    }
    fault_point!();
    kept.store(real, Ordering::Release);
    slot.replace(object, stand_in)
}
