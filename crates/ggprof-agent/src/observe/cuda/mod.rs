//! CUDA devices: every kernel with its node while CUPTI is attached, the time of
//! the whole split while it is not.
//!
//! * `state`, `windows`: CUPTI attached and detached, and when;
//! * `listening`: what CUPTI tells while it is attached;
//! * `launches`: what the program was doing when it handed work to a device;
//! * `capture`: the order in which a CUDA graph's nodes were captured;
//! * `graph_nodes`: which node each node of a CUDA graph computes;
//! * `graph_length`: shorter CUDA graphs where every kernel is traced;
//! * `clock_bound`: how far their times can be off;
//! * `work`: CUPTI's records into the recording;
//! * `split_timer`: whole splits, by events.

mod capture;
mod clock_bound;
pub(crate) mod graph_length;
mod graph_nodes;
mod launches;
mod listening;
mod split_timer;
mod state;
mod windows;
mod work;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::backends::Adopted;
use crate::config::CudaLevel;
use crate::ffi::cuda_driver::CaptureDriver;
use crate::ffi::cupti::Cupti;
use crate::recorder::Recorder;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, fail_open, lifecycle};
pub(crate) use capture::CapturedGraph;
pub(crate) use listening::{note_event, note_waited, take_records};
use split_timer::SplitTimer;
use state::State;
use windows::Step;
use work::Work;

/// CUDA in this process.
#[derive(Debug)]
struct Cuda {
    level: CudaLevel,
    cupti: OnceLock<Option<Cupti>>,
    /// Looks into graphs that are being captured, where kernels are recorded.
    captures: Option<CaptureDriver>,
    state: Mutex<State>,
}

/// CUPTI is in the process.
static ATTACHED: AtomicBool = AtomicBool::new(false);
static CUDA: OnceLock<Cuda> = OnceLock::new();
/// Behind a lock of its own: CUPTI delivers records while `state` is held.
static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// The tracing library, once it was loaded.
pub(crate) fn cupti() -> Option<&'static Cupti> {
    CUDA.get()?.cupti.get()?.as_ref()
}

fn work() -> MutexGuard<'static, Option<Work>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cuda(lane: &HeldLane<'_>) -> &'static Cuda {
    CUDA.get_or_init(|| {
        let config = &lane.recorder.cuda;
        // SAFETY: registers a function that lives as long as the agent, to be
        // called before CUDA's own handlers: those were registered earlier.
        unsafe { __cxa_atexit(at_exit, std::ptr::null_mut(), std::ptr::null_mut()) };
        Cuda {
            level: config.level,
            cupti: OnceLock::new(),
            captures: CaptureDriver::loaded().filter(|_| config.level != CudaLevel::Graph),
            state: Mutex::new(State::new(config.level)),
        }
    })
}

unsafe extern "C" {
    fn __cxa_atexit(
        function: extern "C" fn(*mut libc::c_void),
        argument: *mut libc::c_void,
        library: *mut libc::c_void,
    ) -> libc::c_int;
}

fn now_ns() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Whether the user wants to know of CUDA devices.
pub(crate) fn is_wanted(lane: &HeldLane<'_>) -> bool {
    lane.recorder.cuda.level != CudaLevel::Off
}

/// A split of a CUDA device; ends when it is dropped or told to.
#[derive(Debug)]
pub(crate) struct CudaSplit {
    cuda: &'static Cuda,
    backend: u32,
    split: u32,
    ended: bool,
}

/// Before a split of a CUDA device is computed, outside its time.
pub(crate) fn begin_split(
    this: &ThisThread,
    lane: &HeldLane<'_>,
    adopted: &Adopted,
    split: u32,
) -> Option<CudaSplit> {
    if !adopted.is_cuda() || !is_wanted(lane) {
        return None;
    }
    let cuda = cuda(lane);
    let mut state = cuda.state();
    let now_ns = now_ns();
    match state.windows.before_split(this.run.get(), now_ns) {
        Step::Attach => state.attach(cuda, lane),
        Step::Detach if state.active > 0 => state.windows.stay_open(),
        Step::Detach => state.detach(lane),
        Step::Stay => {}
    }
    state.cover(lane, adopted, cuda.level);
    state.active += 1;
    let backend = adopted.id();
    if state.windows.is_open() {
        lane.recorder.owe();
    } else if let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend)
        && timer.begin(lane, split).is_some()
    {
        state.windows.timed_by_events(now_ns);
    }
    Some(CudaSplit { cuda, backend, split, ended: false })
}

impl CudaSplit {
    /// `stream` is the one the split's work went to, 0 where not seen.
    pub(crate) fn end(mut self, lane: &HeldLane<'_>, stream: usize) {
        self.ended = true;
        let mut state = self.cuda.state();
        state.active -= 1;
        let backend = self.backend;
        if let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend) {
            timer.end(lane, self.split, stream);
        } else if stream != 0
            && let Some(driver) = state.driver
        {
            let timer = SplitTimer::new(backend, driver, stream);
            // Without events now, there will be none later.
            state.driver = timer.as_ref().map(|_| driver);
            state.timers.extend(timer);
        }
    }
}

impl Drop for CudaSplit {
    /// An exception passed through: the split is not timed.
    fn drop(&mut self) {
        if !self.ended {
            self.cuda.state().active -= 1;
        }
    }
}

impl Cuda {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A split that is not recorded: CUPTI need not be there for it, once it has delivered what
/// belongs to those before.
pub(crate) fn rest() {
    if !ATTACHED.load(Ordering::Acquire) {
        return;
    }
    let Some(cuda) = CUDA.get() else { return };
    let mut state = cuda.state();
    let recorder = lifecycle::recording().filter(|_| state.active == 0);
    if let Some(lane) = recorder.and_then(Recorder::lane_for_owed) {
        state.detach(&lane);
    }
}

/// The program frees a CUDA backend: its streams are still there.
pub(crate) fn before_backend_free(lane: &HeldLane<'_>, backend: u32) {
    let Some(cuda) = CUDA.get() else { return };
    let mut state = cuda.state();
    if let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend) {
        timer.drain(lane);
    }
    state.timers.retain(|timer| timer.backend != backend);
    if state.session.is_some() {
        super::backends::synchronize_cuda();
        note_waited();
        state.deliver(lane);
    }
}

/// The program ends, and CUDA is still there.
extern "C" fn at_exit(_: *mut libc::c_void) {
    fail_open::contained((), deliver_records);
}

/// Brings all there is into the file, without waiting for anybody.
pub(crate) fn deliver_records() {
    let Some(lane) = lifecycle::recording().and_then(Recorder::lane_for_owed) else { return };
    let Some(Ok(mut state)) = CUDA.get().map(|cuda| cuda.state.try_lock()) else { return };
    state.timers.iter_mut().for_each(|timer| timer.collect(&lane));
    state.deliver(&lane);
}
