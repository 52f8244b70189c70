//! Sees which node a device's library is about to record or launch: in every version, the library
//! first asks ggml whether the node is empty, through a slot of its own. `observe::visits` tells
//! the calls that count from the others.

use std::ffi::CStr;
use std::mem::offset_of;
use std::sync::atomic::AtomicUsize;

use super::library;
use crate::arch;
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::observe::this_thread::ThisThread;
use crate::observe::visits::{Timed, Visits};
use crate::patch::got;
use crate::patch::loaded_object::{LoadedObject, Place, is_gone};

const IS_EMPTY: &CStr = c"ggml_is_empty";
/// Device libraries at once in one process.
const LIBRARIES: usize = 8;

/// The real function of each library, kept before its hook can be called.
static REAL: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];
/// Name and place of each library, so that one opened again keeps its number.
static DEVICE_LIBRARIES: Ranked<{ rank::DEVICE_LIBRARIES }, [Option<Place>; LIBRARIES]> =
    Ranked::new([const { None }; LIBRARIES]);

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &DEVICE_LIBRARIES
}

arch::node_question! {
    /// The stand-in in the slot. In a split that is timed as a whole it keeps the node by itself, as
    /// [`Visits::visit`] would. It goes on to the real function, which was kept before the stand-in was
    /// put into the slot.
    fn ask; real: REAL, visit: visit;
    in this thread: visits offset_of!(ThisThread, visits);
    in these: timed offset_of!(Visits, timed), as_whole Timed::AsWhole as u8,
        site offset_of!(Visits, site), asked offset_of!(Visits, asked);
}

/// # Safety
/// For the stand-in: the visits of the split that this thread computes.
unsafe extern "C-unwind" fn visit(node: usize, return_address: usize, visits: *mut Visits) {
    // SAFETY: set for the length of the graph by the split that owns it, on this thread only.
    unsafe { (*visits).visit(node, return_address) };
}

static QUESTION_STAND_INS: [unsafe extern "C-unwind" fn(); LIBRARIES] =
    [ask::<0>, ask::<1>, ask::<2>, ask::<3>, ask::<4>, ask::<5>, ask::<6>, ask::<7>];

/// Hooks the library's calls about nodes; false if it makes none that can be seen.
pub(crate) fn hook(object: &LoadedObject) -> bool {
    got::bind(object, |name| name == IS_EMPTY);
    fault_point!();
    let mut hooked = DEVICE_LIBRARIES.lock();
    let key = Some(object.place());
    let own = hooked.iter().position(|library| *library == key);
    let free = || hooked.iter().position(|library| library.as_ref().is_none_or(is_gone));
    let Some(number) = own.or_else(free) else { return false };
    let stand_in = QUESTION_STAND_INS[number] as *const () as usize;
    // Taken before it is used: no other library may get a number that a slot leads to.
    hooked[number] = key;
    fault_point!();
    let mut placed = false;
    got::for_each(object, |slot| {
        if slot.name == IS_EMPTY {
            placed |=
                slot.value() == stand_in || library::replace(object, slot, stand_in, &REAL[number]);
        }
    });
    fault_point!();
    if !placed {
        hooked[number] = None;
    }
    placed
}
