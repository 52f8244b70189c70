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
use crate::patch::got;
use crate::patch::loaded_object::{LoadedObject, Place, is_gone};

/// Slots over all CUDA libraries of the process: one has up to six.
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
/// Whom each slot serves.
static HOOKED_LIBRARIES: Ranked<{ ranks::CUDA_LIBRARIES }, [Option<Place>; SLOTS]> =
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
        if WORK_STAND_INS.iter().any(|stand_in| *stand_in as *const () as usize == value) {
            return;
        }
        let free = hooked.iter().position(|owner| owner.as_ref().is_none_or(is_gone));
        let Some(number) = free else { return };
        CALL[number].store(*call as usize, Ordering::Release);
        let stand_in = WORK_STAND_INS[number] as *const () as usize;
        // Taken before it is used: no other library may get a number that a slot leads to.
        hooked[number] = key.clone();
        fault_point!();
        if !library::replace(object, slot, stand_in, &REAL[number]) {
            hooked[number] = None;
        }
        fault_point!();
    });
    found
}
