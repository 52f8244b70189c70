//! Stand-ins for the calls with which a CUDA library gives work to its device: they note that work
//! has begun for the current node, and on which stream. Only some arguments of the real functions
//! are known, so each stand-in jumps to the real function with all registers unchanged.
//!
//! # Hot path: no allocation, no locks, no panics, except when CUDA graphs are captured or launched

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::capture::CapturedGraph;
use crate::arch;
use crate::fault::fault_point;
use crate::hooks::library;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::observe::fail_open::{self, contained};
use crate::observe::this_thread::ThisThread;
use crate::patch::got;
use crate::patch::loaded_object::{LoadedObject, Place, is_gone};

/// Slots over all CUDA libraries of the process: one has up to six.
const SLOTS: usize = 16;

/// Where the stream of a call is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Call {
    /// Six arguments, two of them sizes: the stream is the sixth.
    Kernel = 1,
    /// The first argument points to a configuration that holds it.
    ConfiguredKernel = 2,
    /// A whole CUDA graph; the stream is the second argument.
    Graph = 3,
    /// Work that is handed to the stream, the first argument, becomes a graph.
    BeginCapture = 4,
    EndCapture = 5,
}

const CALLS: [(&CStr, Call); 7] = [
    (c"cudaLaunchKernel", Call::Kernel),
    (c"__cudaLaunchKernel", Call::Kernel),
    (c"cudaLaunchCooperativeKernel", Call::Kernel),
    (c"cudaLaunchKernelExC", Call::ConfiguredKernel),
    (c"cudaGraphLaunch", Call::Graph),
    (c"cudaStreamBeginCapture", Call::BeginCapture),
    (c"cudaStreamEndCapture", Call::EndCapture),
];
/// Offset of the stream in CUDA's launch configuration, behind two sizes of three
/// numbers each and the bytes of shared memory.
const STREAM_IN_CONFIGURATION: usize = 32;

static REAL: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];
static CALL: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];
/// Whom each slot serves.
static HOOKED_LIBRARIES: Ranked<{ rank::CUDA_LIBRARIES }, [Option<Place>; SLOTS]> =
    Ranked::new([const { None }; SLOTS]);

/// For holding it during a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &HOOKED_LIBRARIES
}

arch::stand_in!(fn shim<SLOT>, asks called(first, second, stack, SLOT));

/// Returns the real function for the shim to jump to.
extern "C-unwind" fn called(first: usize, second: usize, stack: *const usize, slot: u32) -> usize {
    let slot = slot as usize;
    fail_open::hot((), |this| note(this, slot, first, second, stack));
    REAL.get(slot).map_or(0, |real| real.load(Ordering::Acquire))
}

fn note(this: &ThisThread, slot: usize, first: usize, second: usize, stack: *const usize) {
    // SAFETY: set for the length of the graph by the split that owns it, on this
    // thread only.
    let Some(visits) = (unsafe { this.visits.get().as_mut() }) else { return };
    let call = CALL.get(slot).map_or(0, |call| call.load(Ordering::Relaxed));
    if call == Call::BeginCapture as usize {
        contained((), || {
            visits
                .follower_or_new()
                .into_iter()
                .for_each(|graph: &mut CapturedGraph| graph.begin(first));
        });
    } else if call == Call::EndCapture as usize {
        contained((), || visits.follower().into_iter().for_each(CapturedGraph::end));
    } else if call == Call::Graph as usize {
        visits.note_stream(second);
        contained((), || {
            visits
                .follower_or_new()
                .into_iter()
                .for_each(|graph: &mut CapturedGraph| graph.launch(first));
        });
    } else {
        visits.note_stream(stream_of(call, first, stack));
        visits.note_work();
    }
}

/// The stream that a kernel goes to.
fn stream_of(call: usize, first: usize, stack: *const usize) -> usize {
    if call == Call::Kernel as usize {
        // SAFETY: CUDA's functions of these names have these arguments, and the call goes on.
        unsafe { arch::sixth_behind_two_sizes(stack) }
    } else {
        // SAFETY: the first argument is a configuration that the caller filled.
        unsafe { *((first + STREAM_IN_CONFIGURATION) as *const usize) }
    }
}

/// Sixteen functions.
static SHIMS: [unsafe extern "C-unwind" fn(); SLOTS] = [
    shim::<0>, shim::<1>, shim::<2>, shim::<3>, shim::<4>, shim::<5>, shim::<6>, shim::<7>,
    shim::<8>, shim::<9>, shim::<10>, shim::<11>, shim::<12>, shim::<13>, shim::<14>, shim::<15>,
];

/// Hooks the library's calls; false where it makes none by a slot.
pub(crate) fn hook(object: &LoadedObject) -> bool {
    got::bind(object, |name| CALLS.iter().any(|(call, _)| name == *call));
    fault_point!();
    let mut hooked = HOOKED_LIBRARIES.lock();
    let key = Some(object.place());
    let mut found = false;
    got::for_each(object, |slot| {
        let Some((_, call)) = CALLS.iter().find(|(name, _)| slot.name == *name) else { return };
        found = true;
        let value = slot.value();
        if SHIMS.iter().any(|shim| *shim as *const () as usize == value) {
            return;
        }
        let free = hooked.iter().position(|owner| owner.as_ref().is_none_or(is_gone));
        let Some(number) = free else { return };
        CALL[number].store(*call as usize, Ordering::Release);
        let shim = SHIMS[number] as *const () as usize;
        // Taken before it is used: no other library may get a number that a slot leads to.
        hooked[number] = key.clone();
        fault_point!();
        if !library::replace(object, slot, shim, &REAL[number]) {
            hooked[number] = None;
        }
        fault_point!();
    });
    found
}
