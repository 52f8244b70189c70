//! The way in for `ggprof attach`: it loads the agent into a program that runs already and calls this
//! function, on a thread of the program that it has stopped.

use std::ffi::{CStr, c_char};

use ggprof_spool::attaching::{AttachAnswer, BUSY, PREPARED, Refused, encode};

use crate::config::Environment;
use crate::lifecycle;
use crate::observe::fail_open::{contained, guard};
use crate::recorder::current;

/// Begins the recording that the settings ask for. The settings are C strings, as in an environment,
/// with an empty one behind them.
///
/// Returns the answer (`ggprof_spool::attaching`), which is never freed.
///
/// # Safety
/// `settings` are such strings, and nobody else calls this meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn ggprof_agent_attach(settings: *const c_char) -> *const u8 {
    let fault = Err("an internal fault of ggprof; the program itself is not affected".into());
    let answer: AttachAnswer = guard(Err(Refused::Busy), |_| {
        let faults = current::faults();
        let answer = contained(fault, || {
            // SAFETY: the caller's contract.
            let settings = unsafe { strings(settings) };
            lifecycle::attach(Environment::given(&settings))
        });
        if current::faults() > faults {
            // Whoever asked does not wait for a recording any more.
            current::give_up();
        }
        answer
    });
    Box::leak(encode(&answer).into_boxed_slice()).as_ptr()
}

/// The changes of code in the answer cannot be made: the recording does without (`WITHOUT` says what is
/// returned).
///
/// # Safety
/// Nobody else calls this meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn ggprof_agent_go_without() -> usize {
    guard(BUSY, |this| {
        contained(0, || {
            lifecycle::go_without_changes(this);
            PREPARED
        })
    })
}

/// # Safety
/// As for the settings.
unsafe fn strings<'a>(mut next: *const c_char) -> Vec<&'a CStr> {
    let mut strings = Vec::new();
    loop {
        // SAFETY: another string, because the last one was not empty.
        let string = unsafe { CStr::from_ptr(next) };
        if string.is_empty() {
            return strings;
        }
        strings.push(string);
        // SAFETY: behind the string, where the next one begins.
        next = unsafe { next.add(string.to_bytes_with_nul().len()) };
    }
}
