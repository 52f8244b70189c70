//! The functions that libggml-profiler calls in the agent. The library contains an agent, but
//! another agent may be preloaded and comes first. So the calls go through a table of functions
//! that each agent exports, and the first agent answers.

use std::ffi::{CStr, c_char, c_void};

use crate::hooks::{BACKEND_HOOKS, late};
use crate::lifecycle;
use crate::observe::fail_open::{contained, guard};
use crate::observe::schedulers;
use crate::patch::load_order;
use crate::recorder::current;

/// Counts changes of [`AgentFunctions`].
pub const VERSION: u32 = 1;
/// In place of the number of a scheduler that was freed.
pub const FREED: u32 = schedulers::FREED;
/// The symbol under which an agent exports its [`AgentFunctions`].
pub const SYMBOL: &CStr = lifecycle::SYMBOL;

/// Functions of the agent; any thread may call them.
#[repr(C)]
#[derive(Debug)]
pub struct AgentFunctions {
    pub version: u32,
    /// Starts tracking which schedulers are made and freed, unless the program already runs: it may
    /// not want to be recorded at all.
    pub prepare: extern "C" fn(),
    /// Records from now on what the scheduler computes: its number in the recording. 0 if
    /// nothing can be recorded, [`FREED`] if it was freed.
    pub follow: unsafe extern "C" fn(*mut c_void) -> u32,
    /// The number of a scheduler that is followed, 0 for others and freed ones.
    pub number: extern "C" fn(*mut c_void) -> u32,
    /// Whether anything is to be recorded, in a recording that is the program's own.
    pub record: extern "C" fn(bool),
    /// Graph runs recorded so far.
    pub runs: extern "C" fn() -> u32,
    /// The path of the recording, null without; valid as long as the process.
    pub recording: extern "C" fn() -> *const c_char,
}

/// The agent's table. Its address tells agents apart as well.
#[unsafe(no_mangle)]
pub extern "C" fn ggprof_agent_control() -> *const AgentFunctions {
    static CONTROL: AgentFunctions =
        AgentFunctions { version: VERSION, prepare, follow, number, record, runs, recording };
    &CONTROL
}

extern "C" fn prepare() {
    guard((), |_| {
        if load_order::came_with_program() {
            late::lead_calls_here();
        }
    });
}

/// # Safety
/// The scheduler is one of ggml's, unless it was freed.
unsafe extern "C" fn follow(scheduler: *mut c_void) -> u32 {
    guard(0, |this| {
        lifecycle::arm_for_library();
        late::lead_calls_here();
        // SAFETY: by this function's contract.
        unsafe { schedulers::follow(this, scheduler, &BACKEND_HOOKS) }
    })
}

extern "C" fn number(scheduler: *mut c_void) -> u32 {
    contained(0, || schedulers::known_number(scheduler).unwrap_or(0))
}

extern "C" fn record(on: bool) {
    contained((), || lifecycle::record_for_library(on));
}

extern "C" fn runs() -> u32 {
    contained(0, || current::recording().map_or(0, |recorder| recorder.runs()))
}

extern "C" fn recording() -> *const c_char {
    let path = || current::recording().map(|recorder| recorder.spool.path().as_ptr());
    contained(None, path).unwrap_or(std::ptr::null())
}
