//! CUDA devices: every kernel with its node while CUPTI is attached, the time of
//! the whole split while it is not.
//!
//! * `windows`: when CUPTI is attached;
//! * `launches`: what the program was doing when it handed work to a device;
//! * `capture`: the order in which a CUDA graph's nodes were captured;
//! * `graph_nodes`: which node each node of a CUDA graph computes;
//! * `clock_bound`: how far their times can be off;
//! * `work`: CUPTI's records into the recording;
//! * `split_timer`: whole splits, by events.

mod capture;
mod clock_bound;
mod graph_nodes;
mod launches;
mod split_timer;
mod windows;
mod work;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ggprof_spool::layout::{self, Covered, CoveredHow, NO_NODE, NONE};

use super::backends::Adopted;
use crate::config::CudaLevel;
use crate::ffi::cuda_driver::{CaptureDriver, Driver};
use crate::ffi::cupti::session::{Event, Session};
use crate::ffi::cupti::{Cupti, library, records};
use crate::hooks::cupti::CALLBACKS;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, fail_open, lifecycle};
use capture::{Capture, Order};
use launches::Launch;
use split_timer::SplitTimer;
use windows::{Step, Windows};
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

#[derive(Debug)]
struct State {
    windows: Windows,
    session: Option<Session>,
    /// Splits of CUDA devices being computed now, on all threads.
    active: u32,
    timers: Vec<SplitTimer>,
    driver: Option<Driver>,
    /// Backends whose coverage is written.
    covered: Vec<u32>,
    /// Why there are no kernels, once that is known.
    problem: Option<String>,
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
            state: Mutex::new(State {
                windows: Windows::new(config.level, config.budget_permille),
                session: None,
                active: 0,
                timers: Vec::new(),
                driver: Driver::loaded(),
                covered: Vec::new(),
                problem: None,
            }),
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
    match state.windows.before_split(this.run.get(), now_ns()) {
        Step::Attach => state.attach(cuda, lane),
        Step::Detach if state.active > 0 => state.windows.stay_open(),
        Step::Detach => state.detach(Some(lane)),
        Step::Stay => {}
    }
    state.cover(lane, adopted, cuda.level);
    state.active += 1;
    let backend = adopted.id();
    if !state.windows.is_open()
        && let Some(timer) = state.timers.iter_mut().find(|timer| timer.backend == backend)
    {
        let _ = timer.begin(lane, split);
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

    /// Loads CUPTI at the first question.
    fn load(&'static self, lane: &HeldLane<'_>) -> Result<&'static Cupti, String> {
        let mut problem = None;
        let loaded = self.cupti.get_or_init(|| {
            library::open(&lane.recorder.cuda)
                .and_then(Cupti::from_library)
                .inspect_err(|sentence| problem = Some(sentence.clone()))
                .ok()
        });
        loaded.as_ref().ok_or_else(|| problem.unwrap_or_default())
    }
}

impl State {
    fn attach(&mut self, cuda: &'static Cuda, lane: &HeldLane<'_>) {
        let began = now_ns();
        for timer in &mut self.timers {
            timer.drain(lane);
        }
        work().get_or_insert_default().records = 0;
        let attached = cuda.load(lane).and_then(|cupti| {
            Session::attach(cupti, CALLBACKS).map_err(|failure| failure.sentence())
        });
        match attached {
            Ok(session) => {
                self.session = Some(session);
                ATTACHED.store(true, Ordering::Release);
                self.windows.attached(now_ns() - began);
            }
            Err(sentence) => {
                self.problem = Some(sentence);
                self.windows.give_up();
            }
        }
    }

    /// No split is being computed, and the state's lock keeps others from starting.
    fn detach(&mut self, lane: Option<&HeldLane<'_>>) {
        let began = now_ns();
        super::backends::synchronize_cuda();
        note_waited();
        let Some(session) = self.session.take() else { return };
        ATTACHED.store(false, Ordering::Release);
        session.detach();
        let records = work().as_mut().map_or(0, |work| {
            if let Some(lane) = lane {
                work.give_up_waiting(lane);
                work.write_clock(lane);
            }
            work.records
        });
        launches::forget();
        self.windows.detached(now_ns() - began, records);
    }

    /// All records there are, before CUDA or a backend goes.
    fn deliver(&mut self, lane: &HeldLane<'_>) {
        if let Some(session) = &self.session
            && session.deliver().is_ok()
            && let Some(work) = work().as_mut()
        {
            work.give_up_waiting(lane);
            work.write_clock(lane);
        }
    }

    fn cover(&mut self, lane: &HeldLane<'_>, adopted: &Adopted, level: CudaLevel) {
        let backend = adopted.id();
        if self.covered.contains(&backend) {
            return;
        }
        self.covered.push(backend);
        let (how, reason) = match (&self.problem, level) {
            (Some(problem), _) => (CoveredHow::Not, problem.as_str()),
            (None, CudaLevel::Full) => (CoveredHow::ActivityRecords, ""),
            (None, CudaLevel::Sample) => (CoveredHow::ActivityRecords, "sample"),
            (None, _) => (CoveredHow::Not, "only the time of whole splits was asked for"),
        };
        let reason = lane.recorder.interner().lasting_text(lane, reason.as_bytes());
        let told: &[Covered] = match how {
            CoveredHow::Not => &[Covered::Kernels],
            _ => &[Covered::Ops, Covered::Kernels],
        };
        for &what in told {
            let record = layout::Coverage {
                how: how as u8,
                what: what as u16,
                backend,
                instance: adopted.instance().map_or(NONE, |instance| instance.id),
                reason,
                count: 1,
                ..Default::default()
            };
            lane.define_lasting(Owner::Backend(backend), &record.encode());
        }
    }
}

/// A split that is not recorded: CUPTI need not be there for it. What it has not
/// delivered yet is not written any more.
pub(crate) fn rest() {
    if !ATTACHED.load(Ordering::Acquire) {
        return;
    }
    let Some(cuda) = CUDA.get() else { return };
    let mut state = cuda.state();
    if state.active == 0 {
        state.detach(None);
    }
}

/// CUPTI tells of a call or a graph's node on this thread.
pub(crate) fn note_event(this: &ThisThread, event: Event) {
    // SAFETY: set for the length of the graph by the split that owns it, on this
    // thread only.
    let visits = unsafe { this.visits.get().as_mut() };
    match event {
        Event::Work { correlation, whole_graph } => {
            let mut launch =
                Launch { cause: this.copy_start.get(), called_ns: now_ns(), ..Launch::UNKNOWN };
            if let Some(visits) = visits {
                (launch.split, launch.backend) = (visits.split, visits.backend);
                if whole_graph {
                    launch.executable = visits.cuda_graph.executable as u64;
                } else {
                    visits.note_work();
                    launch.position = visits.position().unwrap_or(NO_NODE);
                }
            }
            launches::keep(correlation, launch);
        }
        Event::NodeMade { node } => {
            let position = visits.and_then(|visits| {
                visits.note_work();
                visits.position()
            });
            if let Some(work) = work().as_mut() {
                match position {
                    Some(position) => work.nodes.learn(node, position),
                    None => work.nodes.forget(node),
                }
            }
        }
        Event::NodeCopied { node, original } => {
            if let Some(visits) = visits {
                visits.cuda_graph.copied = true;
            }
            if let Some(work) = work().as_mut() {
                work.nodes.copy(node, original);
            }
        }
    }
}

/// The CUDA graph that the split of a thread is captured into or launched from.
#[derive(Debug, Default)]
pub(crate) struct CapturedGraph {
    capture: Option<Capture>,
    /// Of the graph captured last, until it is launched.
    order: Option<Option<Order>>,
    /// CUPTI has seen its nodes copied into an executable graph.
    copied: bool,
    /// The one launched last.
    executable: usize,
}

impl CapturedGraph {
    /// The program begins to capture, on this stream.
    #[cold]
    pub(crate) fn begin(&mut self, stream: usize) {
        let driver = CUDA.get().and_then(|cuda| cuda.captures);
        self.capture = driver.map(|driver| Capture::begin(driver, stream));
        self.copied = false;
    }

    /// Its loop comes to the node at this position.
    #[inline(always)]
    pub(crate) fn visit(&mut self, position: u32) {
        if let Some(capture) = &mut self.capture {
            capture.visit(position);
        }
    }

    #[cold]
    pub(crate) fn end(&mut self) {
        self.order = self.capture.take().map(Capture::finish);
    }

    /// The graph is launched, for the first time if it was just captured.
    pub(crate) fn launch(&mut self, executable: usize) {
        self.executable = executable;
        if let Some(order) = self.order.take()
            && let Some(work) = work().as_mut()
        {
            let attached = ATTACHED.load(Ordering::Acquire);
            work.orders.learn(executable as u64, order, self.copied, attached);
        }
    }
}

/// The host has waited for all work of the devices.
pub(crate) fn note_waited() {
    if let Some(work) = work().as_mut() {
        work.bound.waited(now_ns());
    }
}

/// CUPTI hands records over.
///
/// # Safety
/// The buffer holds `valid` bytes of records of this CUPTI.
pub(crate) unsafe fn take_records(cupti: &Cupti, buffer: *mut u8, valid: usize, dropped: u64) {
    let Some(lane) = lifecycle::recording().and_then(|recorder| recorder.lane(0)) else { return };
    Work::note_dropped(&lane, dropped);
    if let Some(work) = work().as_mut() {
        // SAFETY: the caller's contract.
        unsafe { records::for_each(cupti, buffer, valid, |activity| work.take(&lane, &activity)) };
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
    super::backends::synchronize_cuda();
    note_waited();
    state.deliver(lane);
}

/// The program ends, and CUDA is still there.
extern "C" fn at_exit(_: *mut libc::c_void) {
    fail_open::callback(|| {
        let Some(lane) = lifecycle::recording().and_then(|recorder| recorder.lane(0)) else {
            return;
        };
        let Some(Ok(mut state)) = CUDA.get().map(|cuda| cuda.state.try_lock()) else { return };
        state.timers.iter_mut().for_each(|timer| timer.collect(&lane));
        state.deliver(&lane);
    });
}
