//! When the agent may do what.
//!
//! ```text
//!      GGPROF_SPOOL, GGML_PROFILE, C API     first use of ggml
//!   (loaded) ───────────────────▶ Armed ──────────────────────▶ Recording
//!      │                            │                               │
//!      │ not set, opened later      │ file cannot be made           │ disk full, file gone,
//!      ▼                            ▼                               ▼ faults
//!    Inert, Late                   Off ◀────────────────────────── Off
//!                                   ▲  cannot be followed           │ forked child
//!                                 Lost ◀─────────── Forked ◀────────┘
//!                                                     └──▶ Child ──▶ Recording, for itself
//! ```
//!
//! * **fork**: a child of an armed parent stays armed and makes its own file
//!   when it uses ggml; so does a child of a recording parent, with all that is
//!   known of ggml in both, unless it is lost (`forking`): then it counts
//!   itself in the parent's file.
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
//! No state is ever left to the left again in one process, so a relaxed load suffices.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use ggprof_spool::layout::{Control, LossKind, StopReason};

use crate::config::{Config, CudaLevel, Environment, Purpose, Vulkan};
use crate::fault::fault_point;
use crate::ffi::loader;
use crate::hooks::opened;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::observe::cuda::{self, graph_length};
use crate::observe::vulkan::device::DEVICES;
use crate::observe::vulkan::registration;
use crate::patch::{exports, load_order, loaded_object};
use crate::recorder::Recorder;
use crate::recorder::thread_log::ThreadLog;
use crate::{clock, control, fail_open, forking, quiet_log, toggle_signal, unwinder};

const INERT: u8 = 0;
const ARMED: u8 = 1;
const RECORDING: u8 = 2;
const OFF: u8 = 3;
const LATE: u8 = 4;
const FORKED: u8 = 5;
const CHILD: u8 = 6;
const LOST: u8 = 7;

static STATE: AtomicU8 = AtomicU8::new(INERT);
/// What the process was started with, where that asks for a recording.
static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
/// What it means; `None` where that could not be understood.
static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
/// That of this process, or of the parent that forked it; never freed.
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(ptr::null_mut());
/// Held while one is made.
static MAKING: Ranked<{ rank::RECORDER }, ()> = Ranked::new(());

const NOTHING: &[u8] =
    b"nothing is recorded, because of an internal fault; the program itself is not affected";

/// Runs when the agent is loaded: before `main`, or at any time where it is opened. In nearly all
/// processes this is all of ours that ever runs.
pub(crate) extern "C" fn on_load() {
    if runs_with_more_rights() || exports::first(control::SYMBOL).is_some_and(is_anothers) {
        return;
    }
    if !fail_open::contained(false, load_order::came_with_program) {
        return STATE.store(LATE, Ordering::Relaxed);
    }
    if let Some(environment) = Environment::that_asks() {
        // A panic must not print: the guard reports it in our own words. This is
        // our copy of the standard library, not the program's.
        std::panic::set_hook(Box::new(|_| {}));
        let looked_around = fail_open::contained(false, || {
            look_around(environment);
            true
        });
        if !looked_around && !is_on() {
            quiet_log::say(&[NOTHING]);
        }
    }
}

/// Whether another agent is in the process, and comes first.
fn is_anothers(control: usize) -> bool {
    !loaded_object::is_ours(control)
}

fn look_around(environment: Environment) {
    fault_point!();
    fail_open::contained((), || prepare_environment(&environment));
    if ENVIRONMENT.set(environment).is_ok() {
        STATE.store(ARMED, Ordering::Relaxed);
    }
    fault_point!();
    fail_open::guard((), |_| opened::look());
}

/// What ggml's libraries are to find in the environment. Before `main` only: later the
/// program's threads may read it.
fn prepare_environment(environment: &Environment) {
    fault_point!();
    if Vulkan::from(environment) != Ok(Vulkan::Off) {
        registration::announce(environment);
    }
    if CudaLevel::from(environment) == Ok(CudaLevel::Full) {
        graph_length::shorten();
    }
}

/// What was asked for; found out when the program uses ggml.
fn config() -> Option<&'static Config> {
    let understand = |environment: &Environment| match Config::understand(environment) {
        Ok(config) => Some(config),
        Err(problem) => {
            quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]);
            STATE.store(OFF, Ordering::Relaxed);
            None
        }
    };
    CONFIG.get_or_init(|| ENVIRONMENT.get().and_then(understand)).as_ref()
}

/// Runs at a normal exit. What goes wrong in one of the steps keeps none of the others from being
/// taken.
pub(crate) extern "C" fn on_exit() {
    if recorder().is_none() && fail_open::faults() == 0 && !registration::has_made_something() {
        return;
    }
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
    if is_on() && recorder().is_none() && fail_open::faults() > 0 {
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
    let recorder = recorder()?;
    recorder.is_own_process().then_some((&config()?.purpose, recorder))
}

/// The program itself asks to be recorded: from inert to armed. Where it opened the agent,
/// what the environment wants was not looked at yet.
pub(crate) fn arm_for_library() {
    let config = match STATE.load(Ordering::Relaxed) {
        INERT => Config::for_library(&Environment::copy()),
        LATE => match Environment::that_asks() {
            Some(environment) => Config::understand(&environment),
            None => Config::for_library(&Environment::copy()),
        },
        _ => return,
    };
    match config {
        Ok(config) => {
            if CONFIG.set(Some(config)).is_ok() {
                STATE.store(ARMED, Ordering::Relaxed);
            }
        }
        Err(problem) => quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]),
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

/// Whether the program has rights that its user has not: then the environment, which
/// is the user's, must not tell us where to write.
fn runs_with_more_rights() -> bool {
    // SAFETY: a question to the system.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// In a forked child: whether it may record for itself. What devices did is out of reach in a
/// child, and what a program records by itself it reads by itself.
pub(crate) fn become_child(can_go_on: bool) {
    let state = STATE.load(Ordering::Relaxed);
    if matches!(state, RECORDING | FORKED | CHILD | LOST) {
        let alone = !cuda::is_in_use() && DEVICES.is_empty();
        let for_itself = config().is_some_and(|it| matches!(it.purpose, Purpose::Library));
        let next = if can_go_on && alone && !for_itself { FORKED } else { LOST };
        STATE.store(next, Ordering::Relaxed);
    }
}

pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &MAKING
}

pub(crate) fn locks_of_recorder() -> [Option<&'static dyn HeldAtFork>; 2] {
    match recorder() {
        Some(recorder) => recorder.locks().map(Some),
        None => [None, None],
    }
}

/// How Vulkan devices are to be timed; not at all where nothing can be recorded.
pub(crate) fn vulkan() -> Vulkan {
    config().filter(|_| is_on()).map_or(Vulkan::Off, |config| config.vulkan)
}

/// Whether anything can be recorded, now or later.
pub(crate) fn is_on() -> bool {
    settle_in_child();
    matches!(STATE.load(Ordering::Relaxed), ARMED | RECORDING | CHILD)
}

/// Whether a forked child can be recorded is found out when it first matters: most never use ggml.
fn settle_in_child() {
    if STATE.load(Ordering::Relaxed) == FORKED {
        let next = if loader::can_be_asked() { CHILD } else { LOST };
        STATE.store(next, Ordering::Relaxed);
    }
}

/// Thousandths of the time that sampling a device may take.
pub(crate) fn budget_permille() -> u32 {
    config().map_or(0, |config| config.budget_permille)
}

/// The recorder, where recording is going on.
#[inline(always)]
pub(crate) fn recording() -> Option<&'static Recorder> {
    if STATE.load(Ordering::Relaxed) != RECORDING {
        return None;
    }
    recorder()
}

/// The newest there is, also if it had to stop, or is a parent's.
#[inline(always)]
fn recorder() -> Option<&'static Recorder> {
    // SAFETY: only leaked recorders are stored.
    unsafe { RECORDER.load(Ordering::Acquire).as_ref() }
}

/// The recorder, started now if the agent is armed: the program uses ggml.
pub(crate) fn start_recording() -> Option<&'static Recorder> {
    if matches!(STATE.load(Ordering::Relaxed), ARMED | FORKED | CHILD | LOST) {
        begin();
    }
    recording()
}

/// The same where only a forked child has something to start: the program computes.
pub(crate) fn recording_or_forked() -> Option<&'static Recorder> {
    recording().or_else(in_child)
}

#[cold]
pub(crate) fn in_child() -> Option<&'static Recorder> {
    if matches!(STATE.load(Ordering::Relaxed), FORKED | CHILD | LOST) {
        begin();
    }
    recording()
}

#[cold]
fn begin() {
    settle_in_child();
    // Now, because a fault may come while a lock is held.
    if !unwinder::load() {
        quiet_log::say(&[
            b"nothing is recorded: libgcc_s.so.1 cannot be loaded, without which a fault of ggprof's \
              own would end the program",
        ]);
        STATE.store(OFF, Ordering::Relaxed);
        return;
    }
    forking::prepare();
    let _alone = MAKING.lock();
    let parent = recorder();
    match STATE.load(Ordering::Relaxed) {
        ARMED => {
            clock::choose();
            make_recorder(None);
        }
        CHILD => {
            ThreadLog::forget_all();
            if !make_recorder(parent) {
                parent.into_iter().for_each(Recorder::count_child);
            }
        }
        LOST => {
            STATE.store(OFF, Ordering::Relaxed);
            parent.into_iter().for_each(Recorder::count_child);
        }
        _ => {}
    }
}

fn make_recorder(parent: Option<&Recorder>) -> bool {
    let Some(config) = config() else { return false };
    let made = Recorder::create(config, parent);
    match made {
        Ok(recorder) => {
            recorder.spool.header.count_loss(LossKind::Fault, fail_open::faults());
            RECORDER.store(Box::leak(Box::new(recorder)), Ordering::Release);
            toggle_signal::arm();
            STATE.store(RECORDING, Ordering::Relaxed);
            true
        }
        Err(problem) => {
            quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]);
            STATE.store(OFF, Ordering::Relaxed);
            false
        }
    }
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

/// This is a child that no handler was told of. Its parent's other threads may have held any
/// lock: it leaves the recording alone.
#[cold]
pub(crate) fn stop_in_child() {
    STATE.store(LOST, Ordering::Relaxed);
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
