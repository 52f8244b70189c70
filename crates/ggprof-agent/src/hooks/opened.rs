//! Libraries that are loaded, at the start and later: each is looked at once, whether it
//! has a ggml that only it can reach (`linked_in`).
//!
//! Nobody can open a library in the program's place to look at it then: the loader searches
//! by who calls. But what was opened is asked for its functions next. So the slots through
//! which programs call the loader lead here, and from here on to the loader, with the
//! caller still the caller.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::library::is_gone;
use super::linked_in;
use super::shim::observe_then_jump;
use crate::fail_open::guard;
use crate::fault::fault_point;
use crate::ffi::api::Scope;
use crate::lifecycle;
use crate::lock::Tried;
use crate::patch::got;
use crate::patch::loaded_object::{self, LoadedObject, Place};

/// What programs ask the loader.
const QUESTIONS: [(&CStr, unsafe extern "C-unwind" fn()); 3] =
    [(c"dlsym", question::<0>), (c"dlvsym", question::<1>), (c"dlopen", question::<2>)];

#[unsafe(naked)]
unsafe extern "C-unwind" fn question<const NUMBER: usize>() {
    observe_then_jump!(before_answer, NUMBER, "mov edi, {slot}")
}

/// Returns the loader's function, for the question to go on to.
extern "C-unwind" fn before_answer(number: u32) -> usize {
    guard((), |_| look());
    loaders_own(number)
}

fn loaders_own(number: u32) -> usize {
    match number {
        0 => libc::dlsym as *const () as usize,
        1 => libc::dlvsym as *const () as usize,
        _ => libc::dlopen as *const () as usize,
    }
}

/// The loader's counts of what was loaded and unloaded, when it was looked at last.
static LOADED: AtomicU64 = AtomicU64::new(0);
static UNLOADED: AtomicU64 = AtomicU64::new(0);
static SEEN: Tried<Vec<Place>> = Tried::new(Vec::new());

/// Looks at what was loaded since the last time.
pub(crate) fn look() {
    let (loaded, unloaded) = loaded_object::changes();
    let is_same =
        LOADED.load(Ordering::Acquire) == loaded && UNLOADED.load(Ordering::Acquire) == unloaded;
    if is_same || !lifecycle::is_on() {
        return;
    }
    // Another thread that looks may be waiting for the loader, which this thread may hold:
    // inside a library's constructor. The next question comes soon.
    let Some(mut seen) = SEEN.try_lock() else { return };
    fault_point!();
    let closed = linked_in::forget_closed();
    let now = loaded_object::all();
    seen.retain(|place| {
        !closed.contains(place) && now.iter().any(|object| object.place() == *place)
    });
    for object in now {
        if !seen.contains(&object.place()) {
            // Before it is looked at: not again where that goes wrong.
            seen.push(object.place());
            look_at(&object);
        }
    }
    // What came meanwhile is looked at the next time.
    LOADED.store(loaded, Ordering::Release);
    UNLOADED.store(unloaded, Ordering::Release);
}

fn look_at(object: &LoadedObject) {
    // It stays while it is looked at, whoever closes it.
    let held = Scope::of(&object.name);
    if held.is_none() || is_gone(&object.place()) || object.holds(look as *const () as usize) {
        return;
    }
    got::for_each(object, |slot| {
        let question = QUESTIONS.iter().zip(0..).find(|((name, _), _)| slot.name == *name);
        if let Some(((_, hook), number)) = question
            && slot.leads_to(object) == loaders_own(number)
        {
            slot.replace(object, *hook as *const () as usize);
        }
    });
    fault_point!();
    linked_in::hook_object(object);
}
