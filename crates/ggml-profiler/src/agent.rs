//! The agent of this process: the one that was preloaded, or else the one in this library.

use crate::error::Error;
use ggprof_agent::control::{self, AgentFunctions};
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    if let Ok(agent) = agent() {
        (agent.prepare)();
    }
}

/// Begins to record what the scheduler computes: its number in the recording.
pub(crate) fn follow(scheduler: *mut c_void) -> Result<u32, Error> {
    let agent = agent()?;
    // SAFETY: the caller of the library guarantees that it is a scheduler of ggml's, or one
    // that was freed.
    match unsafe { (agent.follow)(scheduler) } {
        0 => Err(off()),
        control::FREED => Err(Error::Invalid("the scheduler was freed")),
        number => Ok(number),
    }
}

/// The number of a scheduler that is followed; `None` if it was freed.
pub(crate) fn number(scheduler: *mut c_void) -> Option<u32> {
    let number = (agent().ok()?.number)(scheduler);
    (number != 0).then_some(number)
}

/// Whether any scheduler is to be recorded.
pub(crate) fn record(on: bool) {
    if let Ok(agent) = agent() {
        (agent.record)(on);
    }
}

/// Graph runs recorded so far.
pub(crate) fn runs() -> u32 {
    agent().map_or(0, |agent| (agent.runs)())
}

/// Where the recording is.
pub(crate) fn recording() -> Result<PathBuf, Error> {
    let path = (agent()?.recording)();
    if path.is_null() {
        return Err(off());
    }
    // SAFETY: the agent's path is a C string that lives as long as the process.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()).into())
}

fn off() -> Error {
    Error::Off(
        "nothing can be recorded: there is no room for a recording in TMPDIR, the process is a \
         forked child, or recording has stopped"
            .into(),
    )
}

fn agent() -> Result<&'static AgentFunctions, Error> {
    static AGENT: OnceLock<Option<&'static AgentFunctions>> = OnceLock::new();
    let other = || Error::Off("another version of ggprof is preloaded into this process".into());
    AGENT.get_or_init(find).ok_or_else(other)
}

/// The first in the order of symbols, which is the one that ggml's callers reach.
fn find() -> Option<&'static AgentFunctions> {
    // SAFETY: a look-up by a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, control::SYMBOL.as_ptr()) };
    let table = if found.is_null() {
        control::ggprof_agent_control()
    } else {
        // SAFETY: agents export this function under this name, in all versions.
        unsafe {
            std::mem::transmute::<*mut c_void, extern "C" fn() -> *const AgentFunctions>(found)()
        }
    };
    // SAFETY: the table is static; its first field is the version in all versions.
    unsafe { ((*table).version == control::VERSION).then(|| &*table) }
}
