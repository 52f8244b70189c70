//! The signals of a child stay in it. Whatever gives up in one (`abort`, an assertion of ggml's) has the C
//! library send a signal to this very thread. musl, and glibc before 2.24, do not ask the system which
//! thread that is: they know it from memory, and in a child that was made by a system call this is still the
//! program's thread. The signal would end the program.
//!
//! So the kernel refuses every signal that a child sends, and tells the child by one of its own (SIGSYS),
//! which ends it like any other fault. It needs no rights, holds for every way to send a signal and depends
//! on no C library. Writing the right number to that memory would not do: where it lies differs, it cannot
//! be proven everywhere, and locks that this thread holds are held under the old one.
//!
//! Emulators of programs (qemu-user) and kernels without filters cannot do this. There only a C library
//! that asks the system is let go on.

use libc::{c_int, c_long, c_ulong, c_void};

use crate::c_library;

/// All calls that send a signal to a process or thread that is named by a number.
const SENDING: [c_long; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];
const STEPS: usize = 2 * SENDING.len() + 2;

/// In a child: whether no signal of it can reach the program from now on.
pub(super) fn keep() -> bool {
    refuse_sending() || c_library::asks_which_thread_gives_up()
}

fn refuse_sending() -> bool {
    let mut steps = steps();
    let filter = libc::sock_fprog { len: STEPS as u16, filter: steps.as_mut_ptr() };
    // SAFETY: both are about this thread, the child's only one; the kernel copies the filter.
    unsafe {
        control(libc::PR_SET_NO_NEW_PRIVS, 1, std::ptr::null())
            && control(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER as c_ulong,
                (&raw const filter).cast(),
            )
    }
}

/// # Safety
/// As the kernel's manual says of the option.
unsafe fn control(option: c_int, value: c_ulong, argument: *const c_void) -> bool {
    // SAFETY: the caller's contract.
    unsafe { libc::prctl(option, value, argument, 0 as c_ulong, 0 as c_ulong) == 0 }
}

/// The filter: the number of the call is compared with each of them. Calls of 32-bit programs have other
/// numbers, but the child is none.
fn steps() -> [libc::sock_filter; STEPS] {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    const ANSWER: u32 = libc::BPF_RET | libc::BPF_K;
    // The number is the first field of what a filter is given.
    let mut steps = [step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0); STEPS];
    for (pair, call) in steps[1..].chunks_exact_mut(2).zip(SENDING) {
        pair[0] = step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32);
        pair[1] = step(ANSWER, 0, libc::SECCOMP_RET_TRAP);
    }
    steps[STEPS - 1] = step(ANSWER, 0, libc::SECCOMP_RET_ALLOW);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::rehearsal::{Failure, rehearse};

    /// What C libraries do that know their thread's number from memory; the last one nobody could survive.
    #[test]
    fn no_signal_of_a_child_reaches_the_program() {
        // SAFETY: numbers of this process and thread.
        let (process, thread) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid)) };
        for signal in [libc::SIGABRT, libc::SIGKILL] {
            for (call, to) in [
                (libc::SYS_tkill, [thread, c_long::from(signal), 0]),
                (libc::SYS_tgkill, [c_long::from(process), thread, c_long::from(signal)]),
                (libc::SYS_kill, [c_long::from(process), c_long::from(signal), 0]),
            ] {
                // SAFETY: sends a signal, or ends the child.
                let sent = rehearse(|_| unsafe { libc::syscall(call, to[0], to[1], to[2]) });
                assert_eq!(sent, Err(Failure::Crashed), "call {call}, signal {signal}");
            }
        }
    }

    /// As in an emulator. The thread's filter goes with it.
    #[test]
    fn without_filters_the_c_library_decides() {
        let found = std::thread::spawn(|| {
            let refused = libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32;
            let mut steps = steps();
            steps[1].k = libc::SYS_prctl as u32;
            steps[2].k = refused;
            steps[3].k = libc::SYS_seccomp as u32;
            steps[4].k = refused;
            let filter = libc::sock_fprog { len: STEPS as u16, filter: steps.as_mut_ptr() };
            // SAFETY: about this thread only, which makes no such call later.
            unsafe {
                assert!(control(libc::PR_SET_NO_NEW_PRIVS, 1, std::ptr::null()));
                let mode = libc::SECCOMP_MODE_FILTER as c_ulong;
                assert!(control(libc::PR_SET_SECCOMP, mode, (&raw const filter).cast()));
            }
            rehearse(|_| 1)
        });
        let expected =
            if c_library::asks_which_thread_gives_up() { Ok(1) } else { Err(Failure::NotKept) };
        assert_eq!(found.join().expect("it ends"), expected);
    }
}
