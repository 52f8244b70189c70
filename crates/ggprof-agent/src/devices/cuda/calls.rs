//! Stand-ins for the calls with which a CUDA library gives work to its device: they note that work
//! has begun for the current node, and on which stream. Only some arguments of the real functions
//! are known, so each stand-in jumps to the real function with all registers unchanged.
//!
//! # Hot path: no allocation, no locks, no panics, except when CUDA graphs are captured or launched

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::capture::CapturedGraph;
use super::ranks;
use crate::arch;
use crate::fault::fault_point;
use crate::hooks::library;
use crate::lock::{HeldAtFork, Ranked};
use crate::observe::fail_open::{self, contained};
use crate::observe::this_thread::ThisThread;
use crate::patch::got::{self, Slot};
use crate::patch::loaded_object::{LoadedObject, Place, is_gone};

/// Slots over all CUDA libraries of the process: one has up to seven.
const SLOTS: usize = 16;

/// Where the stream of a call is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum CudaCall {
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

const CALLS: [(&CStr, CudaCall); 7] = [
    (c"cudaLaunchKernel", CudaCall::Kernel),
    (c"__cudaLaunchKernel", CudaCall::Kernel),
    (c"cudaLaunchCooperativeKernel", CudaCall::Kernel),
    (c"cudaLaunchKernelExC", CudaCall::ConfiguredKernel),
    (c"cudaGraphLaunch", CudaCall::Graph),
    (c"cudaStreamBeginCapture", CudaCall::BeginCapture),
    (c"cudaStreamEndCapture", CudaCall::EndCapture),
];
/// Offset of the stream in CUDA's launch configuration, behind two sizes of three
/// numbers each and the bytes of shared memory.
const STREAM_IN_CONFIGURATION: usize = 32;

static REAL: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];
static CALL: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];
/// The library that each slot serves, and the name of the call.
static HOOKED_LIBRARIES: Ranked<{ ranks::CUDA_LIBRARIES }, [Option<(Place, &CStr)>; SLOTS]> =
    Ranked::new([const { None }; SLOTS]);

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &HOOKED_LIBRARIES
}

arch::stand_in!(fn work<SLOT>, asks called(first, second, stack, SLOT));

/// Returns the real function for the stand-in to jump to.
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
    if call == CudaCall::BeginCapture as usize {
        contained((), || {
            visits
                .follower_or_new()
                .into_iter()
                .for_each(|graph: &mut CapturedGraph| graph.begin(first));
        });
    } else if call == CudaCall::EndCapture as usize {
        contained((), || visits.follower().into_iter().for_each(CapturedGraph::end));
    } else if call == CudaCall::Graph as usize {
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
    if call == CudaCall::Kernel as usize {
        // SAFETY: CUDA's functions of these names have these arguments, and the call goes on.
        unsafe { arch::sixth_behind_two_sizes(stack) }
    } else {
        // SAFETY: the first argument is a configuration that the caller filled.
        unsafe { *((first + STREAM_IN_CONFIGURATION) as *const usize) }
    }
}

/// A stand-in for each slot.
static WORK_STAND_INS: [unsafe extern "C-unwind" fn(); SLOTS] = [
    work::<0>, work::<1>, work::<2>, work::<3>, work::<4>, work::<5>, work::<6>, work::<7>,
    work::<8>, work::<9>, work::<10>, work::<11>, work::<12>, work::<13>, work::<14>, work::<15>,
];

/// Hooks the library's calls; false where it makes none by a slot, or where there are no numbers left for
/// them: what is seen of some calls would be taken for all.
pub(crate) fn hook(object: &LoadedObject) -> bool {
    got::bind(object, |name| call_of(name).is_some());
    fault_point!();
    let mut hooked = HOOKED_LIBRARIES.lock();
    let place = object.place();
    let (mut found, mut all) = (false, true);
    got::for_each(object, |slot| {
        let Some((name, call)) = call_of(slot.name) else { return };
        found = true;
        if leads_to_us(slot) {
            return;
        }
        // A library that was closed and opened again at the same place has its numbers from before.
        let is_its = |it: &(Place, &CStr)| it.0 == place && it.1 == name;
        let own = hooked.iter().position(|owner| owner.as_ref().is_some_and(is_its));
        let Some(number) = own.or_else(|| hooked.iter().position(is_free)) else {
            all = false;
            return;
        };
        CALL[number].store(call as usize, Ordering::Release);
        let stand_in = WORK_STAND_INS[number] as *const () as usize;
        // Taken before it is used: no other library may get a number that a slot leads to.
        hooked[number] = Some((place.clone(), name));
        fault_point!();
        let is_placed = library::replace(object, slot, stand_in, &REAL[number]);
        // Another slot for the same call may lead to it already.
        if !is_placed && own.is_none() {
            hooked[number] = None;
        }
        fault_point!();
    });
    found && all
}

/// Whether the library makes calls for which there are no numbers left.
pub(crate) fn is_one_too_many(object: &LoadedObject) -> bool {
    let mut is_unseen = false;
    got::for_each(object, |slot| is_unseen |= call_of(slot.name).is_some() && !leads_to_us(slot));
    is_unseen && !HOOKED_LIBRARIES.lock().iter().any(is_free)
}

fn is_free(number: &Option<(Place, &CStr)>) -> bool {
    number.as_ref().is_none_or(|(place, _)| is_gone(place))
}

fn call_of(name: &CStr) -> Option<(&'static CStr, CudaCall)> {
    CALLS.into_iter().find(|(known, _)| *known == name)
}

fn leads_to_us(slot: &Slot<'_>) -> bool {
    let value = slot.value();
    WORK_STAND_INS.iter().any(|stand_in| *stand_in as *const () as usize == value)
}
