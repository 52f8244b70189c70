//! CUDA devices: every kernel with its node while CUPTI is attached, the time of
//! the whole split while it is not.
//!
//! * `state`, `windows`: CUPTI attached and detached, and when;
//! * `callbacks`: the functions that CUPTI calls;
//! * `listening`: what CUPTI tells while it is attached;
//! * `launches`: what the program was doing when it handed work to a device;
//! * `capture`: the order in which a CUDA graph's nodes were captured;
//! * `graph_nodes`: which node each node of a CUDA graph computes;
//! * `graph_length`: shorter CUDA graphs where every kernel is traced;
//! * `clock_bound`: how far their times can be off;
//! * `work`: CUPTI's records into the recording;
//! * `split_timer`: whole splits, by events.

mod callbacks;
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

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::backends::Adopted;
use crate::clock;
use crate::config::CudaLevel;
use crate::fault::fault_point;
use crate::ffi::cuda_driver::{CaptureDriver, Driver};
use crate::ffi::cupti::Cupti;
use crate::lock::{Locked, Once, Ranked, Tried, rank};
use crate::observe::fail_open;
use crate::observe::this_thread::ThisThread;
use crate::recorder::Recorder;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;
pub(crate) use capture::CapturedGraph;
pub(crate) use listening::note_waited;
use listening::{note_event, take_records};
use split_timer::SplitTimer;
use state::State;
use windows::Step;
use work::Work;

/// CUDA in this process.
#[derive(Debug)]
struct Cuda {
    level: CudaLevel,
    /// Set by whoever has `loading`.
    cupti: OnceLock<LoadedCupti>,
    loading: Tried<()>,
    /// Looks into graphs that are being captured, where kernels are recorded.
    captures: Option<CaptureDriver>,
    /// What is told of the length of its graphs.
    graphs: &'static str,
    /// Splits of CUDA devices being computed now, on all threads. Grows with `state` held.
    active: AtomicU32,
    state: Ranked<{ rank::CUDA_STATE }, State>,
}

/// The tracing library, or why it cannot be used, and how long it took to find that out.
#[derive(Debug)]
struct LoadedCupti {
    library: Result<Cupti, String>,
    took_ns: u64,
}

/// CUPTI is in the process.
static ATTACHED: AtomicBool = AtomicBool::new(false);
static CUDA: Once<{ rank::CUDA }, Cuda> = Once::new();
/// Behind a lock of its own: CUPTI delivers records while `state` is held.
static WORK: Ranked<{ rank::CUDA_WORK }, Option<Work>> = Ranked::new(None);

/// Whether the program has computed on a CUDA device.
pub(crate) fn is_in_use() -> bool {
    CUDA.get().is_some()
}

/// The tracing library, once it was loaded.
fn cupti() -> Option<&'static Cupti> {
    CUDA.get()?.cupti.get()?.library.as_ref().ok()
}

fn work() -> Locked<'static, { rank::CUDA_WORK }, Option<Work>> {
    WORK.lock()
}

fn cuda(lane: &HeldLane<'_>, adopted: &Adopted) -> &'static Cuda {
    if let Some(cuda) = CUDA.get() {
        return cuda;
    }
    // The loader is asked before others may wait for us.
    let level = lane.recorder.cuda.level;
    let captures = CaptureDriver::loaded().filter(|_| level != CudaLevel::Graph);
    let driver = Driver::loaded();
    let graphs = if level == CudaLevel::Full { graph_length::told(adopted) } else { "" };
    fault_point!();
    CUDA.get_or_init(|| {
        // SAFETY: registers a function that lives as long as the agent, to be
        // called before CUDA's own handlers: those were registered earlier.
        unsafe { __cxa_atexit(at_exit, std::ptr::null_mut(), std::ptr::null_mut()) };
        Cuda {
            level,
            cupti: OnceLock::new(),
            loading: Tried::new(()),
            captures,
            graphs,
            active: AtomicU32::new(0),
            state: Ranked::new(State::new(level, driver)),
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

/// A split of a CUDA device is being computed, until this is dropped. Without an end it is
/// not timed.
#[derive(Debug)]
pub(crate) struct CudaSplit {
    cuda: &'static Cuda,
    backend: u32,
    split: u32,
}

impl Drop for CudaSplit {
    fn drop(&mut self) {
        self.cuda.active.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Before a split of a CUDA device is computed, outside its time.
pub(crate) fn begin_split(
    this: &ThisThread,
    lane: &HeldLane<'static>,
    adopted: &Adopted,
    split: u32,
) -> Option<CudaSplit> {
    if !adopted.is_cuda() || !is_wanted(lane) {
        return None;
    }
    let cuda = cuda(lane, adopted);
    let loaded = cuda.loaded_cupti(lane);
    let mut state = cuda.state();
    fault_point!();
    let now_ns = now_ns();
    match state.windows.before_split(this.run.get(), now_ns) {
        // While another thread loads it, this run goes without.
        Step::Attach => loaded.into_iter().for_each(|loaded| state.attach(loaded, lane)),
        Step::Detach if cuda.is_active() => state.windows.stay_open(),
        Step::Detach => state.detach(lane),
        Step::Stay => {}
    }
    fault_point!();
    if loaded.is_some() || !cuda.wants_kernels() {
        state.cover(lane, adopted, (cuda.level, cuda.graphs));
    }
    fault_point!();
    let backend = adopted.id();
    cuda.active.fetch_add(1, Ordering::AcqRel);
    let active = CudaSplit { cuda, backend, split };
    fault_point!();
    if state.session.is_some() {
        state.owed.get_or_insert_with(|| lane.recorder.owe());
    } else if let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend)
        && timer.begin(lane, split).is_some()
    {
        state.windows.timed_by_events(now_ns);
    }
    fault_point!();
    Some(active)
}

impl CudaSplit {
    /// `stream` is the one the split's work went to, 0 where not seen.
    pub(crate) fn end(self, lane: &HeldLane<'_>, stream: usize) {
        let mut state = self.cuda.state();
        fault_point!();
        let backend = self.backend;
        if let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend) {
            timer.end(lane, self.split, stream);
        } else if stream != 0
            && let Some(driver) = state.driver
        {
            let timer = SplitTimer::new(backend, driver, stream);
            fault_point!();
            // Without events now, there will be none later.
            state.driver = timer.as_ref().map(|_| driver);
            state.timers.extend(timer);
        }
    }
}

impl Cuda {
    fn state(&self) -> Locked<'_, { rank::CUDA_STATE }, State> {
        self.state.lock()
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
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
    if cuda.is_active() {
        return;
    }
    match current::recording() {
        Some(recorder) => {
            recorder.lane_for_owed().into_iter().for_each(|lane| state.detach(&lane));
        }
        // Nobody will read what it has to tell.
        None => state.let_go(),
    }
}

/// Does something at a moment when no thread of ours waits for a backend.
pub(super) fn while_nobody_waits(work: impl FnOnce()) {
    let _state = CUDA.get().map(Cuda::state);
    work();
}

/// The program frees a CUDA backend: its streams are still there.
pub(crate) fn before_backend_free(lane: &HeldLane<'_>, freed: &Adopted) {
    let Some(cuda) = CUDA.get() else { return };
    let backend = freed.id();
    let mut state = cuda.state();
    fault_point!();
    if let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend) {
        timer.drain(lane);
    }
    state.timers.retain(|timer| timer.backend != backend);
    if state.session.is_some() {
        // SAFETY: its table's own function to be freed with was not called yet.
        unsafe { freed.wait_until_idle() };
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
    let Some(lane) = current::recording().and_then(Recorder::lane_for_owed) else { return };
    let Some(mut state) = CUDA.get().and_then(|cuda| cuda.state.try_lock()) else { return };
    fault_point!();
    state.timers.iter_mut().for_each(|timer| timer.collect(&lane));
    state.deliver(&lane);
}
