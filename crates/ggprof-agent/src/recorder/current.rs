//! Whether this process is recorded, and the recorder that does it.
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
//! `lifecycle` says which events lead from one state to the next, and `children` what a forked child does.
//! Within `Recording`, `gate` says whether anything is written just now.
//!
//! A process never returns to an earlier state, so a relaxed load suffices.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use ggprof_spool::layout::{Control, LossCounter, StopReason};

use super::thread_log::ThreadLog;
use super::{Recorder, children, toggle_signal};
use crate::config::{Config, Environment, Purpose};
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::set_once::SetOnce;
use crate::{clock, memory, quiet_log, unwinder};

const INERT: u8 = 0;
pub(super) const ARMED: u8 = 1;
pub(super) const RECORDING: u8 = 2;
pub(super) const OFF: u8 = 3;
const LATE: u8 = 4;
pub(super) const FORKED: u8 = 5;
pub(super) const CHILD: u8 = 6;
pub(super) const LOST: u8 = 7;

/// A single fault may be due to one unusual graph; several mean that the agent itself is wrong.
const MOST_FAULTS: u32 = 3;

#[unsafe(link_section = ".data.asleep")]
pub(super) static STATE: AtomicU8 = AtomicU8::new(INERT);
/// The variables that the process was started with, if they ask for a recording.
#[unsafe(link_section = ".data.asleep")]
static ENVIRONMENT: SetOnce<Environment> = SetOnce::new();
/// The parsed settings; `None` if they are invalid.
pub(super) static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
#[unsafe(link_section = ".data.asleep")]
static DUTIES: SetOnce<Duties> = SetOnce::new();
/// The recorder of this process, or of the parent that forked it; never freed.
#[unsafe(link_section = ".data.asleep")]
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(ptr::null_mut());
/// Held while a recorder is made.
static MAKING: Ranked<{ rank::RECORDER }, ()> = Ranked::new(());
#[unsafe(link_section = ".data.asleep")]
static FAULTS: AtomicU32 = AtomicU32::new(0);
/// The process for which a recording was asked; its forked children have another number.
#[unsafe(link_section = ".data.asleep")]
static ASKED_PROCESS: AtomicU32 = AtomicU32::new(0);
/// When a recording of a program that was already running was asked for, by `CLOCK_MONOTONIC`; 0 in a
/// program that was started with the agent.
static UNDER_WAY_NS: AtomicU64 = AtomicU64::new(0);
/// Whether the first recording waits until code is changed (`Recorder::hold`).
static IS_HELD: AtomicBool = AtomicBool::new(false);
/// A graph that was begun before the recording is over after this time. Ops that belong to no known
/// graph later than that are counted as a loss.
const LONGEST_GRAPH_NS: u64 = 30_000_000_000;

const NO_MEMORY: &str = "the program has no memory left";

/// Functions that upper modules register. This module and the hooks call them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duties {
    /// Parses the settings of device APIs; the error is a sentence.
    pub(crate) understand: fn(&Environment) -> Result<(), String>,
    pub(crate) after_last_scheduler: fn(),
}

/// The environment asks for a recording: one is made when the program uses ggml.
pub(crate) fn arm(environment: Environment, duties: Duties) {
    DUTIES.set(duties);
    if ENVIRONMENT.set(environment) {
        be_armed();
    }
}

/// The program itself asks for this.
pub(crate) fn arm_with(config: Config, duties: Duties) {
    DUTIES.set(duties);
    if is_late() || is_inert() {
        UNDER_WAY_NS.store(clock::nanoseconds(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
    }
    if CONFIG.set(Some(config)).is_ok() {
        be_armed();
    }
}

/// The same for `ggprof attach`. Whichever thread makes the recording, nothing is recorded until
/// `ggprof attach` opens the gate or the recording is released.
pub(crate) fn arm_held(config: Config, duties: Duties) {
    IS_HELD.store(true, Ordering::Relaxed);
    arm_with(config, duties);
}

/// Whether the program ran already when `ggprof attach` loaded the agent.
pub(crate) fn is_attached() -> bool {
    IS_HELD.load(Ordering::Relaxed)
}

fn be_armed() {
    ASKED_PROCESS.store(std::process::id(), Ordering::Relaxed);
    memory::when_used_up(stop_without_memory);
    STATE.store(ARMED, Ordering::Relaxed);
}

/// Whether this process was asked to be recorded, and not only the one that forked it.
pub(crate) fn is_asked_itself() -> bool {
    ASKED_PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// The agent was opened in a program that was started without it.
pub(crate) fn come_late() {
    STATE.store(LATE, Ordering::Relaxed);
}

/// Whether the agent was opened late, and the program has not asked for a recording.
pub(crate) fn is_late() -> bool {
    STATE.load(Ordering::Relaxed) == LATE
}

/// Disarms the agent, unless there is a recording already.
pub(crate) fn give_up() {
    let _alone = MAKING.lock();
    if STATE.load(Ordering::Relaxed) == ARMED {
        STATE.store(OFF, Ordering::Relaxed);
    }
}

/// Whether recording failed, or nothing could be recorded.
pub(crate) fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Whether a graph that began before the recording was requested may still be running.
pub(crate) fn may_be_in_earlier_graph() -> bool {
    let since = UNDER_WAY_NS.load(Ordering::Relaxed);
    since > 0 && clock::nanoseconds(libc::CLOCK_MONOTONIC) - since < LONGEST_GRAPH_NS
}

/// Whether no recording was requested.
pub(crate) fn is_inert() -> bool {
    STATE.load(Ordering::Relaxed) == INERT
}

/// The settings; parsed when the program uses ggml.
fn config() -> Option<&'static Config> {
    let all_of_it = |environment: &Environment| -> Result<Config, String> {
        let config = Config::understand(environment)?;
        DUTIES.get().map_or(Ok(()), |duties| (duties.understand)(environment))?;
        Ok(config)
    };
    let understand = |environment: &Environment| match all_of_it(environment) {
        Ok(config) => Some(config),
        Err(problem) => {
            quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]);
            STATE.store(OFF, Ordering::Relaxed);
            None
        }
    };
    CONFIG.get_or_init(|| ENVIRONMENT.get().and_then(understand)).as_ref()
}

/// The purpose of this process's recording, and the recording itself; also of one that had to stop early.
/// `None` in a forked child that has only its parent's.
pub(crate) fn purpose() -> Option<(&'static Purpose, &'static Recorder)> {
    let recorder = recorder()?;
    recorder.is_own_process().then_some((&config()?.purpose, recorder))
}

/// Whether anything can be recorded, now or later, and what was asked for is known.
pub(crate) fn is_understood_and_on() -> bool {
    let is_understood = || match CONFIG.get() {
        Some(known) => known.is_some(),
        None => {
            // Nobody forks while this is found out: a child would wait for it for ever.
            let _alone = MAKING.lock();
            config().is_some()
        }
    };
    is_on() && is_understood() && is_on()
}

/// Whether anything can be recorded, now or later.
pub(crate) fn is_on() -> bool {
    children::settle();
    matches!(STATE.load(Ordering::Relaxed), ARMED | RECORDING | CHILD)
}

/// Whether nothing of this process is recorded, as things stand: hooks have nothing to do then.
pub(crate) fn is_out() -> bool {
    matches!(STATE.load(Ordering::Relaxed), INERT | LATE | OFF)
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

/// The newest recorder, even if it had to stop or is a parent's.
#[inline(always)]
pub(crate) fn recorder() -> Option<&'static Recorder> {
    // SAFETY: only leaked recorders are stored.
    unsafe { RECORDER.load(Ordering::Acquire).as_ref() }
}

/// The recorder, started now if the agent is armed: the program uses ggml.
pub(crate) fn start_recording() -> Option<&'static Recorder> {
    match STATE.load(Ordering::Relaxed) {
        ARMED | FORKED | CHILD => begin(),
        LOST => children::count_lost(),
        _ => {}
    }
    recording()
}

/// The recorder, where recording is going on; in a forked child that computes for the first time it is
/// started now.
pub(crate) fn recording_or_forked() -> Option<&'static Recorder> {
    recording().or_else(children::in_child)
}

#[cold]
pub(super) fn begin() {
    children::settle();
    if STATE.load(Ordering::Relaxed) == LOST {
        return children::count_lost();
    }
    if let Err(problem) = can_begin() {
        quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]);
        STATE.store(OFF, Ordering::Relaxed);
        return;
    }
    let _alone = MAKING.lock();
    fault_point!();
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
        _ => {}
    }
}

/// Whether a recording can be made without any harm to the program; the error is a sentence.
fn can_begin() -> Result<(), String> {
    if memory::is_used_up() {
        return Err(NO_MEMORY.into());
    }
    memory::leaves_room()?;
    // Now, because a fault may come while a lock is held.
    match unwinder::load() {
        true => Ok(()),
        false => {
            Err("libgcc_s.so.1 cannot be loaded, without which a fault of ggprof's own would end \
                      the program"
                .into())
        }
    }
}

fn make_recorder(parent: Option<&Recorder>) -> bool {
    let Some(config) = config() else { return false };
    match Recorder::create(config, parent) {
        // That was said already.
        Ok(_) if memory::is_used_up() => false,
        Ok(recorder) => {
            recorder.spool.header.count_loss(LossCounter::Fault, faults());
            if parent.is_none() && is_attached() {
                recorder.hold();
            }
            fault_point!();
            RECORDER.store(Box::leak(Box::new(recorder)), Ordering::Release);
            // At once: whoever finds no recording would make another one.
            STATE.store(RECORDING, Ordering::Relaxed);
            fault_point!();
            toggle_signal::arm();
            true
        }
        Err(problem) => {
            quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]);
            STATE.store(OFF, Ordering::Relaxed);
            false
        }
    }
}

/// A new recording for `ggprof attach` in place of one that was stopped; it is held as well. It takes over
/// all that is known of ggml, as the recording of a forked child does.
pub(crate) fn record_again(config: Config) -> Result<&'static Recorder, String> {
    let _alone = MAKING.lock();
    let before = recorder().filter(|before| before.is_own_process());
    let before = before.filter(|_| STATE.load(Ordering::Relaxed) == RECORDING);
    let before = before.ok_or("an earlier recording of it ended with a fault")?;
    if before.spool.header.control() != Control::Stop {
        return Err("it is being recorded already; `ggprof ctl` and `ggprof top` reach it".into());
    }
    memory::leaves_room()?;
    let mut again = Recorder::create(&config, Some(before))?;
    again.gate.follow(&before.gate);
    again.hold();
    fault_point!();
    let again = Box::leak(Box::new(again));
    RECORDER.store(again, Ordering::Release);
    Ok(again)
}

/// The program has freed the last scheduler that we know of.
pub(crate) fn after_last_scheduler() {
    DUTIES.get().inspect(|duties| (duties.after_last_scheduler)());
}

/// Held during a fork: without it no thread can create a recorder.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &MAKING
}

pub(crate) fn locks_of_recorder() -> [Option<&'static dyn HeldAtFork>; 2] {
    match recorder() {
        Some(recorder) => recorder.locks().map(Some),
        None => [None, None],
    }
}

/// Ends recording for good; the program continues.
#[cold]
pub(super) fn stop(recorder: &Recorder, reason: StopReason) {
    if STATE.swap(OFF, Ordering::Relaxed) == RECORDING {
        recorder.spool.header.set_stop_reason(reason);
        let why: &[u8] = match reason {
            StopReason::NoSpace => b"no space left for the recording",
            StopReason::NoMemory => NO_MEMORY.as_bytes(),
            StopReason::FileGone => b"the file of the recording cannot be opened any more",
            StopReason::Faults | StopReason::None => b"internal fault",
        };
        quiet_log::say(&[b"recording stopped: ", why, b"; what was recorded until now is kept"]);
    }
}

/// The system has no memory for the agent. Called anywhere, so it takes neither memory nor a lock.
#[cold]
fn stop_without_memory() {
    if let Some(recorder) = recording() {
        // A rehearsal's child has the parent's file.
        if recorder.is_own_process() {
            stop(recorder, StopReason::NoMemory);
        }
        return;
    }
    let is_to_record = |state| matches!(state, ARMED | FORKED | CHILD).then_some(OFF);
    if STATE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_to_record).is_ok() {
        quiet_log::say(&[b"nothing is recorded: ", NO_MEMORY.as_bytes()]);
    }
}

/// Faults so far, for a recording that begins only now.
pub(crate) fn faults() -> u64 {
    u64::from(FAULTS.load(Ordering::Relaxed))
}

/// This is a forked child: the faults until now are its parent's, which counts them.
pub(crate) fn forget_faults() {
    FAULTS.store(0, Ordering::Relaxed);
}

/// A fault of the agent. Descriptions that count as written may be missing, so everything is
/// described anew. After a few faults the agent is off.
#[cold]
pub(crate) fn count_fault() {
    let recorder = recording().filter(|recorder| recorder.is_own_process());
    if let Some(recorder) = recorder {
        recorder.spool.header.count_loss(LossCounter::Fault, 1);
        recorder.set_epoch_due();
    }
    if FAULTS.fetch_add(1, Ordering::Relaxed) + 1 == MOST_FAULTS {
        if let Some(recorder) = recorder {
            recorder.spool.header.set_stop_reason(StopReason::Faults);
        }
        STATE.store(OFF, Ordering::Relaxed);
        quiet_log::say(&[
            b"recording stopped after an internal fault; the program goes on without it",
        ]);
    }
}
