//! When the agent may do what.
//!
//! ```text
//!              GGPROF_SPOOL set              first use of ggml
//!   (loaded) ───────────────────▶ Armed ──────────────────────▶ Recording
//!      │                            │                               │
//!      │ not set                    │ file cannot be made           │ disk full, file gone,
//!      ▼                            ▼                               ▼ faults, forked child
//!    Inert                         Off ◀────────────────────────── Off
//! ```
//!
//! * **fork**: a child of an armed parent stays armed and makes its own file
//!   when it uses ggml; a child of a recording parent is off, as its mapping
//!   is the parent's file and ggml's threads did not come with it.
//! * **exec**: the new program inherits `LD_PRELOAD` and starts at the left.
//! * **exit**: the end is stamped into the header. Hooks that run later still
//!   record: the mapping stays.
//! * **`_exit`, abort, kill**: nothing runs, nothing is needed; what was
//!   committed is in the file's pages.
//! * **dlclose** of ggml: `hooks::library` and `ffi::real_function` notice by
//!   the loader's count of unloaded objects.
//!
//! Within `Recording`, `recorder::gate` says whether anything is written just now.
//!
//! No state is ever left to the left again, so a relaxed load suffices.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use ggprof_spool::layout::{LossKind, StopReason};

use crate::config::Config;
use crate::hooks::linked_in;
use crate::recorder::Recorder;
use crate::{clock, fail_open, quiet_log, toggle_signal};

const INERT: u8 = 0;
const ARMED: u8 = 1;
const RECORDING: u8 = 2;
const OFF: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(INERT);
static CONFIG: OnceLock<Config> = OnceLock::new();
static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();

/// Runs when the agent is loaded, before `main`.
pub(crate) extern "C" fn on_load() {
    // A panic must not print: the guard reports it in our own words. This is
    // our copy of the standard library, not the program's.
    std::panic::set_hook(Box::new(|_| {}));
    let Some(config) = Config::from_environment() else { return };
    if CONFIG.set(config).is_ok() {
        STATE.store(ARMED, Ordering::Relaxed);
        // SAFETY: registers a handler that only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
        fail_open::guard((), |_| linked_in::hook_program());
    }
}

/// Runs at a normal exit, or when the agent itself is closed.
pub(crate) extern "C" fn on_exit() {
    if let Some(recorder) = recording() {
        recorder.stamp_end();
    }
}

/// # May run inside a fork child
extern "C" fn after_fork_in_child() {
    if STATE.load(Ordering::Relaxed) == RECORDING || RECORDER.get().is_some() {
        STATE.store(OFF, Ordering::Relaxed);
    }
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
        Ok(_) => {
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

pub(crate) fn note_fault() {
    if let Some(recorder) = recording() {
        recorder.spool.header.count_loss(LossKind::Fault, 1);
    }
}

pub(crate) fn disarm_after_faults() {
    if let Some(recorder) = recording() {
        recorder.spool.header.set_stop_reason(StopReason::Faults);
    }
    STATE.store(OFF, Ordering::Relaxed);
}
