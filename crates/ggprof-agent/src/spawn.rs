//! Runs another program to its end from inside the user's process, without the process noticing: no
//! `SIGCHLD`, nothing for its `wait`, no change of its signal handlers, memory, files or directory.
//!
//! A child whose end sends no signal is invisible to a plain `wait`, but `execve` turns it into an
//! ordinary child. So there are two processes: a silent one, which only waits, and its child, which
//! becomes the program. Both borrow the memory of this process, as `posix_spawn` does, so that a
//! large process need not be copied; this thread stands still meanwhile. No allocation, no lock:
//! this may run in a signal handler.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::signals;

/// Enough for a handful of system calls.
const STACK_BYTES: usize = 64 * 1024;

/// The program could not be started.
#[derive(Debug)]
pub(crate) struct NotStarted;

struct Job<'a> {
    program: &'a CStr,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: &'a CStr,
    stack: &'a Stack,
    started: bool,
    code: c_int,
}

/// Runs a program and waits for it: its exit code, -1 if a signal ended it. The lists
/// end in a null pointer.
pub(crate) fn run(
    program: &CStr,
    arguments: &[*const c_char],
    environment: &[*const c_char],
    directory: &CStr,
) -> Result<c_int, NotStarted> {
    debug_assert!(arguments.last().is_some_and(|last| last.is_null()));
    debug_assert!(environment.last().is_some_and(|last| last.is_null()));
    let (Some(silent_stack), Some(stack)) = (Stack::new(), Stack::new()) else {
        return Err(NotStarted);
    };
    let mut job = Job {
        program,
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        directory,
        stack: &stack,
        started: false,
        code: -1,
    };
    // The children must not run the program's signal handlers on the program's memory.
    signals::while_blocked(|| {
        let silent = start(wait_for_program, &silent_stack, 0, &mut job);
        if silent > 0 {
            reap(silent, libc::__WCLONE);
        }
    });
    if job.started { Ok(job.code) } else { Err(NotStarted) }
}

/// A child that borrows our memory and sends `signal` when it ends. Returns when it has
/// ended or become another program.
fn start(
    child: extern "C" fn(*mut c_void) -> c_int,
    stack: &Stack,
    signal: c_int,
    job: &mut Job<'_>,
) -> c_int {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | signal;
    // SAFETY: the stack is used by this child alone, and the job outlives its use of it:
    // we stand still until then.
    unsafe { libc::clone(child, stack.top(), flags, std::ptr::from_mut(job).cast()) }
}

/// The silent child.
extern "C" fn wait_for_program(job: *mut c_void) -> c_int {
    // SAFETY: the job of `start`, whose thread stands still.
    let job = unsafe { &mut *job.cast::<Job<'_>>() };
    forget_handlers();
    job.started = true;
    let pid = start(become_program, job.stack, libc::SIGCHLD, job);
    if pid > 0 {
        job.code = reap(pid, 0);
    } else {
        job.started = false;
    }
    0
}

extern "C" fn become_program(job: *mut c_void) -> c_int {
    // SAFETY: the job of `start`, whose thread stands still.
    let job = unsafe { &mut *job.cast::<Job<'_>>() };
    // SAFETY: system calls on strings and lists that `run` was given; they change this
    // child only, whose mask and directory are copies.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::chdir(job.directory.as_ptr());
        libc::execve(job.program.as_ptr(), job.arguments, job.environment);
    }
    job.started = false;
    127
}

/// Signals that the program handles get their default action in these children. Ignored ones stay
/// ignored, except for the end of a child, which we wait for.
fn forget_handlers() {
    for signal in 1..=64 {
        // SAFETY: all-zero is a valid action (the default one); numbers that name no
        // signal are refused; the table of handlers is this child's own copy.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, std::ptr::null(), &mut action) == 0;
            if known && (action.sa_sigaction > libc::SIG_IGN || signal == libc::SIGCHLD) {
                action = std::mem::zeroed();
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Waits for a child: its exit code, or -1.
fn reap(pid: c_int, options: c_int) -> c_int {
    let mut status = 0;
    loop {
        // By number: the function is a cancellation point, and the program might cancel
        // this thread.
        // SAFETY: `status` is ours; only our own child is waited for.
        let ended = unsafe {
            let null = std::ptr::null_mut::<c_void>();
            libc::syscall(libc::SYS_wait4, pid, &raw mut status, options, null)
        };
        if ended == i64::from(pid) {
            return if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 };
        }
        // SAFETY: this thread's own error number.
        if unsafe { *libc::__errno_location() } != libc::EINTR {
            return -1;
        }
    }
}

struct Stack(*mut c_void);

impl Stack {
    fn new() -> Option<Stack> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping of our own.
        let at = unsafe { libc::mmap(anywhere, STACK_BYTES, protection, flags, -1, 0) };
        (at != libc::MAP_FAILED).then_some(Stack(at))
    }

    /// Stacks grow downwards.
    fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping.
        unsafe { self.0.byte_add(STACK_BYTES) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and no longer used: the children are gone.
        unsafe { libc::munmap(self.0, STACK_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(script: &CStr) -> Result<c_int, NotStarted> {
        let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), script.as_ptr(), std::ptr::null()];
        run(c"/bin/sh", &arguments, &[c"A=b".as_ptr(), std::ptr::null()], c"/usr")
    }

    #[test]
    fn exit_codes_environment_and_directory() {
        assert_eq!(run_shell(c"test \"$A:$PWD\" = b:/usr && sleep 0.1 && exit 7").ok(), Some(7));
        assert_eq!(run_shell(c"kill -9 $$").ok(), Some(-1));
        let none = [std::ptr::null()];
        assert!(run(c"/nonexistent", &none, &none, c"/").is_err());
    }
}
