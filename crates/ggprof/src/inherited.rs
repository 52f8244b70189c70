//! The signals that were ignored when the launcher was started, so that the program starts with the
//! same: `nohup` ignores SIGHUP, shells ignore SIGINT for background jobs, systemd ignores SIGPIPE.
//!
//! Rust's runtime ignores SIGPIPE before `main`, and its `Command` starts children with the
//! default. Signals that the launcher handles are reset to the default in its children. So the
//! launcher reads the settings before the runtime begins, and restores them in the child.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

const LAST_SIGNAL: i32 = 64;

/// A bit for each signal.
static IGNORED: AtomicU64 = AtomicU64::new(0);

#[used]
// SAFETY: the loader calls what stands in this section, once, before `main`.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let ignored = (1..=LAST_SIGNAL).filter(|&signal| is_ignored(signal));
    IGNORED.store(ignored.map(bit).sum(), Ordering::Relaxed);
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero is a valid action, which the call fills in; nothing is set.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(signal, std::ptr::null(), &mut action);
        (known == 0).then_some(action)
    };
    action.is_some_and(|action| action.sa_sigaction == libc::SIG_IGN)
}

/// Whether a signal was ignored when the command was started.
pub(crate) fn was_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Makes the command start with them. For the launcher itself SIGCHLD gets its default, because a
/// process that ignores it does not learn of the end of its children.
pub(crate) fn pass_on(command: &mut Command) -> &mut Command {
    // SAFETY: the default is always allowed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: `ignore_again` only makes system calls.
    unsafe { command.pre_exec(ignore_again) }
}

/// Runs in the child, between fork and exec.
fn ignore_again() -> io::Result<()> {
    let ignored = IGNORED.load(Ordering::Relaxed);
    for signal in (1..=LAST_SIGNAL).filter(|&signal| ignored & bit(signal) != 0) {
        // SAFETY: it was ignored when we were started.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    Ok(())
}
