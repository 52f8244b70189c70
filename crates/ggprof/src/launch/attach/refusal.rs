//! What is said where the system does not let us look into a program or stop its threads.

use super::process;
use super::tracee::{TIME_TO_STOP, Tracee};
use anyhow::anyhow;
use std::path::Path;

/// Why a thread cannot be stopped. `None` if there is nothing to say: it has ended, or did not stop before
/// and is in our own hands since.
pub(super) fn of_thread(thread: i32) -> Option<anyhow::Error> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    if process::has_this_thread_ended(&status) {
        return None;
    }
    match process::tracer(&status) {
        // The system names the thread that does it.
        Some(tracer) if Path::new("/proc/self/task").join(tracer).exists() => None,
        // Whoever debugged it, another ggprof perhaps, may have gone since.
        Some(tracer) => Some(anyhow!(
            "thread {thread} of the program is being debugged by process {tracer}, and two cannot do that \
             at once. End the other one first, or try again"
        )),
        None if Tracee::stop(thread, TIME_TO_STOP).is_ok() => Some(anyhow!(
            "thread {thread} of the program was being debugged by another process at that moment. Try \
             again"
        )),
        None => Some(forbidden(thread.unsigned_abs())),
    }
}

/// `process` may be a thread of it.
pub(super) fn forbidden(process: u32) -> anyhow::Error {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let pid = process::number(&status, "Tgid").unwrap_or(process);
    anyhow!("{}", forbidden_by(scope.trim(), &as_user_of(pid, &status)))
}

fn forbidden_by(scope: &str, with_the_right: &str) -> String {
    let hint = || format!("Keep the right to trace: {with_the_right}");
    match scope {
        "1" => format!(
            "this system lets only parents look into their programs (yama's ptrace_scope is 1). {}; or \
             allow it until the next start: sudo sysctl kernel.yama.ptrace_scope=0",
            hint()
        ),
        "2" => format!(
            "this system lets only the administrator look into programs (yama's ptrace_scope is 2). {}",
            hint()
        ),
        "3" => "this system lets nobody look into programs (yama's ptrace_scope is 3); start the program \
                with `ggprof run`"
            .to_owned(),
        _ => "the system does not let ggprof look into the program: it has rights that you do not have, \
              hides its memory (PR_SET_DUMPABLE), or a container forbids it (`--cap-add SYS_PTRACE` allows \
              it)"
            .to_owned(),
    }
}

/// How the administrator attaches as the user of a program: what is written is that user's, and the right
/// to trace stays where the system asks for it.
pub(super) fn as_user_of(pid: u32, status: &str) -> String {
    format!("sudo {}", without_sudo(pid, status))
}

/// The same for a program that does not see all files as we do.
pub(super) fn among_files_of(pid: u32, status: &str) -> String {
    format!("sudo nsenter -t {pid} -m {}", without_sudo(pid, status))
}

fn without_sudo(pid: u32, status: &str) -> String {
    let id = |name: &str| process::field(status, name)?.split_whitespace().next()?.parse().ok();
    let (user, group) = (id("Uid").unwrap_or(0_u32), id("Gid").unwrap_or(0_u32));
    // Its directory need not be among those that sudo looks into.
    let own = std::env::current_exe().unwrap_or_else(|_| "ggprof".into());
    let attach = format!("{} attach {pid}", own.display());
    match user {
        0 => attach,
        _ => format!(
            "setpriv --reuid={user} --regid={group} --clear-groups --inh-caps=+sys_ptrace \
             --ambient-caps=+sys_ptrace {attach}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_in_our_own_hands_is_not_refused() {
        let mut program = Command::new("sleep").arg("60").spawn().unwrap();
        let thread = program.id().cast_signed();
        let tracee = Tracee::stop(thread, TIME_TO_STOP).unwrap();
        assert_eq!(of_thread(thread).map(|error| error.to_string()), None);
        drop(tracee);
        program.kill().unwrap();
        program.wait().unwrap();
    }

    #[test]
    fn commands_are_for_the_programs_user() {
        let command = as_user_of(7, "Uid:\t1000\t0\t0\t0\nGid:\t100\t0\t0\t0\n");
        assert!(command.starts_with("sudo setpriv --reuid=1000 --regid=100 "), "{command}");
        assert!(command.ends_with(" attach 7"), "{command}");
        let roots = as_user_of(7, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
        assert!(!roots.contains("setpriv"), "{roots}");
        for (scope, says) in [("1", true), ("2", true), ("3", false), ("", false)] {
            assert_eq!(forbidden_by(scope, &command).contains(&command), says, "{scope}");
        }
    }
}
