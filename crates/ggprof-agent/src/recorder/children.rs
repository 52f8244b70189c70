//! What becomes of recording in a forked child. `forking` tells when the program forks, `current` has the
//! states.

use std::sync::atomic::Ordering;

use super::Recorder;
use super::current::{
    ARMED, CHILD, CONFIG, FORKED, LOST, OFF, RECORDING, STATE, begin, recorder, recording,
};
use crate::config::Purpose;
use crate::ffi::loader;
use crate::{lock, quiet_log};

/// Called in a forked child: decides whether the child may have a recording of its own once it uses ggml.
/// If its parent has no recording yet, the child needs nothing but the locks.
pub(crate) fn become_child(has_all_locks: bool, can_go_on: bool) {
    if !has_all_locks {
        lock::abandon();
    }
    let next = match STATE.load(Ordering::Relaxed) {
        ARMED if has_all_locks => ARMED,
        RECORDING | FORKED | CHILD if has_all_locks && can_go_on && can_have_own() => FORKED,
        ARMED | RECORDING | FORKED | CHILD | LOST => LOST,
        other => other,
    };
    STATE.store(next, Ordering::Relaxed);
}

/// A fault kept this child from being made fit to record: it does nothing, and counts itself once it uses
/// ggml.
pub(crate) fn be_lost() {
    become_child(false, false);
}

/// Whether the child of a recorded parent can have a recording of its own. It cannot if the program asked
/// for the recording by the C API, because a program reads only its own; nor if `ggprof attach` was about
/// to change code, because that happens in the parent only.
fn can_have_own() -> bool {
    // Only what is known: another thread may have been finding it out when the process forked.
    let config = CONFIG.get().and_then(Option::as_ref);
    let is_for_itself = config.is_some_and(|config| matches!(config.purpose, Purpose::Library));
    !is_for_itself && !recorder().is_some_and(Recorder::is_held)
}

/// This is a child whose locks are abandoned, and it uses ggml.
#[cold]
#[inline(never)]
pub(crate) fn count_if_lost() {
    if STATE.load(Ordering::Relaxed) == LOST {
        count_lost();
    }
}

/// Whether a forked child can be recorded is decided when it first matters: most never use ggml.
pub(super) fn settle() {
    if STATE.load(Ordering::Relaxed) == FORKED {
        let next = if loader::can_be_asked() { CHILD } else { LOST };
        STATE.store(next, Ordering::Relaxed);
    }
}

#[cold]
pub(crate) fn in_child() -> Option<&'static Recorder> {
    match STATE.load(Ordering::Relaxed) {
        FORKED | CHILD => begin(),
        LOST => count_lost(),
        _ => {}
    }
    recording()
}

/// This child uses ggml and cannot be recorded, which it says once. It takes no lock for that: the
/// locks may be held by threads of its parent's.
#[cold]
pub(super) fn count_lost() {
    if STATE.compare_exchange(LOST, OFF, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    match recorder() {
        Some(parent) => parent.count_child(),
        None => quiet_log::say(&[
            b"nothing is recorded of a process that was forked while another thread began to use ggml",
        ]),
    }
}

/// This is a child for which no fork handler ran. Its parent's other threads may have held any
/// lock: it leaves the recording alone.
#[cold]
pub(super) fn stop_in_child() {
    STATE.store(LOST, Ordering::Relaxed);
}
