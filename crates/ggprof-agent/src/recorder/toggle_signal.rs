//! SIGUSR2 starts and stops the recording, in programs that do not use the signal themselves: if
//! the program has set it up before, the agent leaves it alone, and the program may take it over
//! later. Without the agent, the signal would end the program.

use super::current;

/// Called once, when recording is set up.
pub(crate) fn arm() {
    // SAFETY: all-zero is a valid `sigaction`; the calls read and write only these.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(libc::SIGUSR2, std::ptr::null(), &mut now) == 0;
        if !known || now.sa_sigaction != libc::SIG_DFL {
            return;
        }
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = toggle as *const () as usize;
        // Interrupted calls are restarted; threads with small stacks (Go) use their signal stack.
        ours.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigemptyset(&mut ours.sa_mask);
        libc::sigaction(libc::SIGUSR2, &ours, std::ptr::null_mut());
    }
}

/// # Runs inside a signal's handler
/// Loads and stores atomics and asks for the process id; nothing else is allowed here.
extern "C" fn toggle(_signal: libc::c_int) {
    if let Some(recorder) = current::recording() {
        recorder.toggle();
    }
}
