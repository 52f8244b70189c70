//! What is said where the system does not let us look into a program or stop its threads.

use super::process;
use super::tracee::{TIME_TO_STOP, Tracee};
use anyhow::anyhow;

/// Why a thread cannot be stopped. `None` if there is nothing to say: it has ended, or did not stop before
/// and is in our own hands since.
pub(super) fn of_thread(thread: i32) -> Option<anyhow::Error> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    if process::has_this_thread_ended(&status) {
        return None;
    }
    match process::tracer(&status) {
        Some(tracer) if tracer == std::process::id().to_string() => None,
        // Whoever debugged it, another ggprof perhaps, may have gone since.
        Some(tracer) => Some(anyhow!(
            "thread {thread} of the program is being debugged by process {tracer}, and two cannot do that \
             at once. End the other one first, or try again"
        )),
        None if Tracee::stop(thread, TIME_TO_STOP).is_ok() => Some(anyhow!(
            "thread {thread} of the program was being debugged by another process at that moment. Try \
             again"
        )),
        None => Some(forbidden()),
    }
}

pub(super) fn forbidden() -> anyhow::Error {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "1" => anyhow!(
            "this system lets only parents look into their programs (yama's ptrace_scope is 1). Run \
             `sudo ggprof attach` as the program's user with the right to trace, or allow it until the \
             next start: sudo sysctl kernel.yama.ptrace_scope=0"
        ),
        "2" => anyhow!(
            "this system lets only the administrator look into programs (yama's ptrace_scope is 2)"
        ),
        "3" => anyhow!(
            "this system lets nobody look into programs (yama's ptrace_scope is 3); start the program \
             with `ggprof run`"
        ),
        _ => anyhow!(
            "the system does not let ggprof look into the program: it has rights that you do not have, \
             hides its memory (PR_SET_DUMPABLE), or a container forbids it (`--cap-add SYS_PTRACE` allows it)"
        ),
    }
}
