//! SIGUSR2 starts and stops the recording, in programs that have no use for it themselves:
//! whoever has set the signal up before is left alone, and whoever does so later takes it
//! over. Without us the signal would end the program.

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
        // Interrupted calls go on; threads with small stacks of their own (Go) are spared.
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
