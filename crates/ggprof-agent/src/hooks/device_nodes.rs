//! Which node a device's library is about to record or launch: in every version
//! it first asks ggml whether the node is empty, through a slot of its own.
//! `observe::visits` tells the questions that count from the others.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::library;
use super::shim::observe_then_jump;
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::patch::got;
use crate::patch::loaded_object::{LoadedObject, Place};
use crate::recorder::this_thread::ThisThread;

const IS_EMPTY: &CStr = c"ggml_is_empty";
/// Device libraries at once in one process.
const LIBRARIES: usize = 8;

/// The real function of each library, kept before its hook can be called.
static REAL: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];
/// Name and place of each library, so that one opened again keeps its number.
static HOOKED: Ranked<{ rank::DEVICE_LIBRARIES }, [Option<Place>; LIBRARIES]> =
    Ranked::new([const { None }; LIBRARIES]);

/// For the length of a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &HOOKED
}

/// The shim in the slot passes on where the question came from, which Rust cannot ask.
#[unsafe(naked)]
unsafe extern "C-unwind" fn shim<const N: usize>() {
    observe_then_jump!(asked, N, "mov rsi, [rsp + 0xb8]", "mov edx, {slot}")
}

/// Returns the real function, which was kept before the shim was put into the slot.
extern "C-unwind" fn asked(node: usize, return_address: usize, library: u32) -> usize {
    ThisThread::with(|this| {
        // SAFETY: set for the length of the graph by the split that owns it, on
        // this thread only.
        if let Some(visits) = unsafe { this.visits.get().as_mut() } {
            visits.visit(node, return_address);
        }
    });
    REAL.get(library as usize).map_or(0, |real| real.load(Ordering::Acquire))
}

static SHIMS: [unsafe extern "C-unwind" fn(); LIBRARIES] =
    [shim::<0>, shim::<1>, shim::<2>, shim::<3>, shim::<4>, shim::<5>, shim::<6>, shim::<7>];

/// Hooks the library's questions; false where it asks none that can be seen.
pub(crate) fn hook(object: &LoadedObject) -> bool {
    got::bind(object, |name| name == IS_EMPTY);
    fault_point!();
    let mut hooked = HOOKED.lock();
    let key = Some(object.place());
    let own = hooked.iter().position(|library| *library == key);
    let free = || hooked.iter().position(|library| library.as_ref().is_none_or(library::is_gone));
    let Some(number) = own.or_else(free) else { return false };
    let shim = SHIMS[number] as *const () as usize;
    // Taken before it is used: no other library may get a number that a slot leads to.
    hooked[number] = key;
    fault_point!();
    let mut placed = false;
    got::for_each(object, |slot| {
        if slot.name == IS_EMPTY {
            placed |= slot.value() == shim || library::replace(object, slot, shim, &REAL[number]);
        }
    });
    fault_point!();
    if !placed {
        hooked[number] = None;
    }
    placed
}
