//! This thread's signals: on Linux, `sigprocmask` is about one thread, as `pthread_sigmask` is, which old
//! systems have in another library than the C library.

/// Does something while no handler of the program's can run on this thread.
pub(crate) fn while_blocked<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: all-zero is a valid set, both are ours; this thread's mask only, and it is put back.
    unsafe {
        let (mut all, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        let result = work();
        libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}
