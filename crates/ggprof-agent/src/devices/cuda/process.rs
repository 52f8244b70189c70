//! CUDA in this process: its splits as they are computed, and the state that is kept between them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ggprof_spool::layout::CoveredWhy;

use super::api::NAME;
use super::cupti::Cupti;
use super::driver::{CaptureDriver, Driver};
use super::ranks;
use super::settings::{self, CudaLevel};
use super::split_timer::SplitTimer;
use super::timekeeper::Timekeeper;
use super::windows::Step;
use super::work::WorkWriter;
use super::{graph_length, note_waited};
use crate::clock;
use crate::fault::fault_point;
use crate::lock::{Locked, Once, Ranked, Tried};
use crate::observe::adopted::Adopted;
use crate::observe::backends;
use crate::observe::fail_open;
use crate::observe::this_thread::ThisThread;
use crate::recorder::Recorder;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;

/// CUDA in this process.
#[derive(Debug)]
pub(super) struct CudaProcess {
    pub(super) level: CudaLevel,
    /// Set by the thread that has `loading`.
    pub(super) cupti: OnceLock<LoadedCupti>,
    pub(super) loading: Tried<()>,
    /// Looks into graphs that are being captured, where kernels are recorded.
    pub(super) captures: Option<CaptureDriver>,
    /// What coverage says about the length of its graphs.
    graphs: CoveredWhy,
    /// Splits of CUDA devices being computed now, on all threads. Grows with `timekeeper` held.
    active: AtomicU32,
    timekeeper: Ranked<{ ranks::CUDA_TIMEKEEPER }, Timekeeper>,
}

/// The tracing library, or why it cannot be used, and how long it took to find that out.
#[derive(Debug)]
pub(super) struct LoadedCupti {
    pub(super) library: Result<Cupti, String>,
    pub(super) took_ns: u64,
}

/// CUPTI is in the process.
pub(super) static ATTACHED: AtomicBool = AtomicBool::new(false);
pub(super) static CUDA: Once<{ ranks::CUDA }, CudaProcess> = Once::new();
/// Behind a lock of its own: CUPTI delivers records while `timekeeper` is held.
static WORK: Ranked<{ ranks::CUDA_WORK }, Option<WorkWriter>> = Ranked::new(None);

/// Whether the program has computed on a CUDA device.
pub(super) fn is_in_use() -> bool {
    CUDA.get().is_some()
}

/// The tracing library, once it was loaded.
pub(super) fn cupti() -> Option<&'static Cupti> {
    CUDA.get()?.cupti.get()?.library.as_ref().ok()
}

pub(super) fn work() -> Locked<'static, { ranks::CUDA_WORK }, Option<WorkWriter>> {
    WORK.lock()
}

fn cuda(adopted: &Adopted) -> &'static CudaProcess {
    if let Some(cuda) = CUDA.get() {
        return cuda;
    }
    // The loader is asked here, before other threads can wait for this one.
    let level = settings::level();
    let captures = CaptureDriver::loaded().filter(|_| level != CudaLevel::Graph);
    let driver = Driver::loaded();
    let graphs = match level {
        CudaLevel::Full => graph_length::told(adopted),
        _ => CoveredWhy::Untold,
    };
    fault_point!();
    CUDA.get_or_init(|| {
        // SAFETY: registers a function that lives as long as the agent, to be
        // called before CUDA's own handlers: those were registered earlier.
        unsafe { __cxa_atexit(at_exit, std::ptr::null_mut(), std::ptr::null_mut()) };
        CudaProcess {
            level,
            cupti: OnceLock::new(),
            loading: Tried::new(()),
            captures,
            graphs,
            active: AtomicU32::new(0),
            timekeeper: Ranked::new(Timekeeper::new(level, driver)),
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

pub(super) fn now_ns() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Whether the user wants to know of CUDA devices.
pub(super) fn is_wanted() -> bool {
    settings::level() != CudaLevel::Off
}

/// A split of a CUDA device is being computed, until this is dropped.
struct Active(&'static CudaProcess);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The split has ended, or was given up.
pub(super) fn leave_split() {
    CUDA.get().into_iter().for_each(|cuda| drop(Active(cuda)));
}

/// Before a split of a CUDA device is computed, outside its time. `leave_split` follows where true.
pub(super) fn begin_split(
    this: &ThisThread,
    lane: &HeldLane<'static>,
    adopted: &Adopted,
    split: u32,
) -> bool {
    if !is_wanted() {
        return false;
    }
    let cuda = cuda(adopted);
    let loaded = cuda.loaded_cupti();
    let mut timekeeper = cuda.timekeeper();
    fault_point!();
    let now_ns = now_ns();
    match timekeeper.windows.before_split(this.run.get(), now_ns) {
        // While another thread loads it, this run is recorded without kernels.
        Step::Attach => loaded.into_iter().for_each(|loaded| timekeeper.attach(loaded, lane)),
        Step::Detach if cuda.is_active() => timekeeper.windows.stay_open(),
        Step::Detach => timekeeper.detach(lane),
        Step::Stay => {}
    }
    fault_point!();
    if loaded.is_some() || !cuda.wants_kernels() {
        timekeeper.cover(lane, adopted, (cuda.level, cuda.graphs));
    }
    fault_point!();
    let backend = adopted.id();
    cuda.active.fetch_add(1, Ordering::AcqRel);
    let active = Active(cuda);
    fault_point!();
    if timekeeper.session.is_some() {
        timekeeper.owed.get_or_insert_with(|| lane.recorder.owe());
    } else if let Some(timer) = timekeeper.timers.iter_mut().find(|timer| timer.backend == backend)
        && timer.begin(lane, split).is_some()
    {
        timekeeper.windows.timed_by_events(now_ns);
    }
    fault_point!();
    std::mem::forget(active);
    true
}

/// `stream` is the one the split's work went to, 0 where not seen.
pub(super) fn end_split(lane: &HeldLane<'_>, backend: u32, split: u32, stream: usize) {
    let Some(cuda) = CUDA.get() else { return };
    let mut timekeeper = cuda.timekeeper();
    fault_point!();
    if let Some(timer) = timekeeper.timers.iter_mut().find(|timer| timer.backend == backend) {
        timer.end(lane, split, stream);
    } else if stream != 0
        && let Some(driver) = timekeeper.driver
    {
        let timer = SplitTimer::new(backend, driver, stream);
        fault_point!();
        // If no event can be made now, none can be made later.
        timekeeper.driver = timer.as_ref().map(|_| driver);
        timekeeper.timers.extend(timer);
    }
}

impl CudaProcess {
    fn timekeeper(&self) -> Locked<'_, { ranks::CUDA_TIMEKEEPER }, Timekeeper> {
        self.timekeeper.lock()
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }
}

/// Called for a split that is not recorded, for which CUPTI is not needed. CUPTI first delivers the
/// records of earlier splits.
pub(super) fn detach_unless_active() {
    if !ATTACHED.load(Ordering::Acquire) {
        return;
    }
    let Some(cuda) = CUDA.get() else { return };
    let mut timekeeper = cuda.timekeeper();
    if cuda.is_active() {
        return;
    }
    match current::recording() {
        Some(recorder) => {
            recorder.lane_for_owed().into_iter().for_each(|lane| timekeeper.detach(&lane));
        }
        // Its remaining records will not be read.
        None => timekeeper.let_go(),
    }
}

/// Does something at a moment when no thread of ours waits for a backend.
pub(super) fn while_nobody_waits(work: &mut dyn FnMut()) {
    let _timekeeper = CUDA.get().map(CudaProcess::timekeeper);
    work();
}

/// The program frees a CUDA backend: its streams are still there.
pub(super) fn before_backend_free(lane: &HeldLane<'_>, freed: &Adopted) {
    let Some(cuda) = CUDA.get() else { return };
    let backend = freed.id();
    let mut timekeeper = cuda.timekeeper();
    fault_point!();
    if let Some(timer) = timekeeper.timers.iter_mut().find(|timer| timer.backend == backend) {
        timer.drain(lane);
    }
    timekeeper.timers.retain(|timer| timer.backend != backend);
    if timekeeper.session.is_some() {
        // SAFETY: its table's own function to be freed with was not called yet.
        unsafe { freed.wait_until_idle() };
        backends::wait_for_all_of(NAME);
        note_waited();
        timekeeper.deliver(lane);
    }
}

/// The program ends, and CUDA is still there.
extern "C" fn at_exit(_: *mut libc::c_void) {
    fail_open::contained((), deliver_records);
}

/// Writes everything that is there into the file, without waiting.
pub(super) fn deliver_records() {
    let Some(lane) = current::recording().and_then(Recorder::lane_for_owed) else { return };
    let Some(mut timekeeper) = CUDA.get().and_then(|cuda| cuda.timekeeper.try_lock()) else {
        return;
    };
    fault_point!();
    timekeeper.timers.iter_mut().for_each(|timer| timer.collect(&lane));
    timekeeper.deliver(&lane);
}
