//! When the agent may do what.
//!
//! ```text
//!      GGPROF_SPOOL, GGML_PROFILE, C API     first use of ggml
//!   (loaded) ───────────────────▶ Armed ──────────────────────▶ Recording
//!      │                            │                               │
//!      │ not set, opened later      │ file cannot be made           │ disk full, file gone,
//!      ▼                            ▼                               ▼ faults, forked child
//!    Inert, Late                   Off ◀────────────────────────── Off
//! ```
//!
//! * **fork**: a child of an armed parent stays armed and makes its own file
//!   when it uses ggml; a child of a recording parent is off, as its mapping
//!   is the parent's file and ggml's threads did not come with it.
//! * **exec**: the new program inherits `LD_PRELOAD` and starts at the left.
//! * **exit**: the end is stamped into the header. Hooks that run later still
//!   record: the mapping stays. `GGML_PROFILE` is served (`delivery`), and so it
//!   is at `_exit`.
//! * **abort, kill**: nothing runs, nothing is needed; what was committed is in
//!   the file's pages.
//! * **opened later**, as a mere Vulkan layer or by a program that wants the C API: late, and
//!   inert until the program asks (`patch::load_order`). It is never closed, whoever opened it.
//! * **a second agent** in the process, from another installation: the first in
//!   the order of symbols records, the other passes every call on.
//! * **dlclose** of ggml: `hooks::library` and `hooks::real_function` notice, as every
//!   `dlclose` comes by `hooks::unloading`.
//!
//! Within `Recording`, `recorder::gate` says whether anything is written just now.
//!
//! No state is ever left to the left again, so a relaxed load suffices.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use ggprof_spool::layout::{Control, LossKind, StopReason};

use crate::config::{Config, CudaLevel, Purpose, Vulkan};
use crate::fault::fault_point;
use crate::hooks::opened;
use crate::lock::{self, Once, rank};
use crate::observe::cuda::{self, graph_length};
use crate::observe::vulkan::registration;
use crate::patch::{load_order, loaded_object};
use crate::recorder::Recorder;
use crate::{clock, fail_open, quiet_log, toggle_signal};

const INERT: u8 = 0;
const ARMED: u8 = 1;
const RECORDING: u8 = 2;
const OFF: u8 = 3;
const LATE: u8 = 4;

static STATE: AtomicU8 = AtomicU8::new(INERT);
static CONFIG: OnceLock<Config> = OnceLock::new();
static RECORDER: Once<{ rank::RECORDER }, Option<Recorder>> = Once::new();

const NOTHING: &[u8] =
    b"nothing is recorded, because of an internal fault; the program itself is not affected";

/// Runs when the agent is loaded: before `main`, or at any time where it is opened.
pub(crate) extern "C" fn on_load() {
    // A panic must not print: the guard reports it in our own words. This is
    // our copy of the standard library, not the program's.
    std::panic::set_hook(Box::new(|_| {}));
    let looked_around = fail_open::contained(false, || {
        look_around();
        true
    });
    if !looked_around && !is_on() {
        quiet_log::say(&[NOTHING]);
    }
}

fn look_around() {
    fault_point!();
    loaded_object::learn_who_closes();
    if another_agent_comes_first() || runs_with_more_rights() {
        return;
    }
    if !load_order::came_with_program() {
        return STATE.store(LATE, Ordering::Relaxed);
    }
    if let Some(config) = Config::from_environment() {
        fail_open::contained((), || prepare_environment(&config));
        arm(config);
        fault_point!();
        fail_open::guard((), |_| opened::look());
    }
}

/// What ggml's libraries are to find in the environment. Before `main` only: later the
/// program's threads may read it.
fn prepare_environment(config: &Config) {
    fault_point!();
    if let Some(directory) = config.directory().filter(|_| config.vulkan != Vulkan::Off) {
        registration::announce(directory);
    }
    if config.cuda.level == CudaLevel::Full {
        graph_length::shorten();
    }
}

fn arm(config: Config) {
    fault_point!();
    if CONFIG.set(config).is_ok() {
        STATE.store(ARMED, Ordering::Relaxed);
        // SAFETY: registers a handler that only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    }
}

/// Runs at a normal exit. What goes wrong in one of the steps keeps none of the others from being
/// taken.
pub(crate) extern "C" fn on_exit() {
    fail_open::contained((), || {
        fault_point!();
        if let Some(recorder) = recording() {
            recorder.stamp_end();
        }
    });
    fail_open::contained((), registration::withdraw);
    fail_open::contained((), || {
        fault_point!();
        if let Some((purpose, recorder)) = purpose() {
            finish(purpose, recorder);
        }
    });
    say_if_all_is_missing();
}

/// Runs when the program ends without exit handlers, perhaps in a signal handler or in
/// a child that borrows its parent's memory.
pub(crate) fn before_immediate_exit() {
    fail_open::contained((), registration::withdraw);
    fail_open::contained((), || {
        fault_point!();
        let Some((purpose, recorder)) = purpose() else { return };
        if matches!(purpose, Purpose::Profile(_)) {
            recorder.spool.header.set_end(clock::ticks());
        }
        finish(purpose, recorder);
    });
    say_if_all_is_missing();
}

/// Where there is a recording, that says it.
fn say_if_all_is_missing() {
    if is_on() && RECORDER.get().is_none() && fail_open::faults() > 0 {
        quiet_log::say(&[NOTHING]);
    }
}

fn finish(purpose: &Purpose, recorder: &Recorder) {
    match purpose {
        Purpose::Launcher => {}
        Purpose::Profile(delivery) => delivery.at_end(recorder),
        Purpose::Library => recorder.spool.remove(),
    }
}

/// The last scheduler was freed.
pub(crate) fn between_schedulers() {
    if let Some((Purpose::Profile(delivery), recorder)) = purpose() {
        cuda::deliver_records();
        delivery.between_schedulers(recorder);
    }
}

/// What the recording is for, and the recording; also one that had to stop early, but
/// never a parent's.
fn purpose() -> Option<(&'static Purpose, &'static Recorder)> {
    let purpose = &CONFIG.get()?.purpose;
    let recorder = RECORDER.get()?.as_ref()?;
    recorder.is_own_process().then_some((purpose, recorder))
}

/// The program itself asks to be recorded: from inert to armed. Where it opened the agent,
/// what the environment wants was not looked at yet.
pub(crate) fn arm_for_library() {
    let config = match STATE.load(Ordering::Relaxed) {
        INERT => Config::for_library(),
        LATE => Config::from_environment().or_else(Config::for_library),
        _ => None,
    };
    if let Some(config) = config {
        arm(config);
    }
}

/// Whether the agent was opened in a program that was started without it, and has not asked.
pub(crate) fn is_late() -> bool {
    STATE.load(Ordering::Relaxed) == LATE
}

/// Starts or stops a recording that belongs to the program itself.
pub(crate) fn record_for_library(on: bool) {
    if let Some((Purpose::Library, recorder)) = purpose() {
        recorder.spool.header.set_control(if on { Control::Record } else { Control::Stop });
    }
}

fn another_agent_comes_first() -> bool {
    lock::before_asking_the_loader();
    // SAFETY: a look-up by a C string.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ggprof_agent_control".as_ptr()) };
    !first.is_null() && !loaded_object::is_ours(first as usize)
}

/// Whether the program has rights that its user has not: then the environment, which
/// is the user's, must not tell us where to write.
fn runs_with_more_rights() -> bool {
    // SAFETY: a question to the system.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// # May run inside a fork child
extern "C" fn after_fork_in_child() {
    if STATE.load(Ordering::Relaxed) == RECORDING || RECORDER.get().is_some() {
        STATE.store(OFF, Ordering::Relaxed);
    }
}

/// How Vulkan devices are to be timed; not at all where nothing can be recorded.
pub(crate) fn vulkan() -> Vulkan {
    CONFIG.get().filter(|_| is_on()).map_or(Vulkan::Off, |config| config.vulkan)
}

/// Whether anything can be recorded, now or later.
pub(crate) fn is_on() -> bool {
    matches!(STATE.load(Ordering::Relaxed), ARMED | RECORDING)
}

/// Thousandths of the time that sampling a device may take.
pub(crate) fn budget_permille() -> u32 {
    CONFIG.get().map_or(0, |config| config.budget_permille)
}

/// The recorder, where recording is going on.
#[inline(always)]
pub(crate) fn recording() -> Option<&'static Recorder> {
    if STATE.load(Ordering::Relaxed) != RECORDING {
        return None;
    }
    RECORDER.get()?.as_ref()
}

/// The recorder, started now if the agent is armed: the program uses ggml.
pub(crate) fn start_recording() -> Option<&'static Recorder> {
    if STATE.load(Ordering::Relaxed) == ARMED {
        RECORDER.get_or_init(create_recorder);
    }
    recording()
}

fn create_recorder() -> Option<Recorder> {
    clock::choose();
    let recorder = Recorder::create(CONFIG.get()?);
    let next = match &recorder {
        Ok(recorder) => {
            recorder.spool.header.count_loss(LossKind::Fault, fail_open::faults());
            toggle_signal::arm();
            RECORDING
        }
        Err(problem) => {
            quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]);
            OFF
        }
    };
    STATE.store(next, Ordering::Relaxed);
    recorder.ok()
}

/// Ends recording for good; the program goes on.
#[cold]
pub(crate) fn stop(recorder: &Recorder, reason: StopReason) {
    if STATE.swap(OFF, Ordering::Relaxed) == RECORDING {
        recorder.spool.header.set_stop_reason(reason);
        let why: &[u8] = match reason {
            StopReason::NoSpace => b"no space left for the recording",
            StopReason::FileGone => b"the recording's file cannot be reached any more",
            StopReason::Faults | StopReason::None => b"internal fault",
        };
        quiet_log::say(&[b"recording stopped: ", why, b"; what was recorded until now is kept"]);
    }
}

/// Ends recording without touching the file: it belongs to the parent.
#[cold]
pub(crate) fn stop_in_child() {
    STATE.store(OFF, Ordering::Relaxed);
}

/// Something of ours went wrong. Descriptions may be missing that are thought to be written: all
/// is described anew.
pub(crate) fn note_fault() {
    if let Some(recorder) = recording().filter(|recorder| recorder.is_own_process()) {
        recorder.spool.header.count_loss(LossKind::Fault, 1);
        recorder.set_epoch_due();
    }
}

pub(crate) fn disarm_after_faults() {
    if let Some(recorder) = recording().filter(|recorder| recorder.is_own_process()) {
        recorder.spool.header.set_stop_reason(StopReason::Faults);
    }
    STATE.store(OFF, Ordering::Relaxed);
}
