//! The registers of vectors, of floating point, and of whatever else the processor has: as the kernel
//! tells them of a stopped thread, and as it puts them on the stack of a thread that takes a signal.

use crate::launch::attach::tracee::Tracee;
use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernel's number (`NT_X86_XSTATE`).
const KIND: usize = 0x202;

/// All registers of a thread but those that every processor has.
#[derive(Debug)]
pub(in crate::launch::attach) struct Others(pub(super) Vec<u8>);

impl Others {
    /// `None` for a thread whose registers cannot be given back; of such the way back knows more.
    pub(in crate::launch::attach) fn of(tracee: &Tracee) -> io::Result<Option<Others>> {
        tracee.other_registers(KIND).map(|state| Some(Others(state)))
    }

    pub(in crate::launch::attach) fn give_back(&self, tracee: &mut Tracee) -> io::Result<()> {
        tracee.set_other_registers(KIND, &self.0)
    }
}

/// How the kernel describes the state of vectors that it puts on the stack of a program. It is the same
/// for all programs that did not ask for more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Description(pub(super) [u8; 48]);

impl Description {
    pub(super) fn parts(&self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|at| self.0[8 + at]))
    }

    pub(super) fn length(&self) -> usize {
        u32::from_le_bytes(std::array::from_fn(|at| self.0[16 + at])) as usize
    }
}

/// How this system's kernel describes the vectors that it puts on a stack: as it does on ours, for a
/// signal that we send to ourselves.
pub(super) fn description() -> io::Result<Description> {
    const SIGNAL: c_int = libc::SIGURG;
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = note_description;
    // SAFETY: an all-zero action and set of signals are valid; the handler has the signature that the flag
    // asks for, and what was set before is set again. Nobody else here uses the signal, which by default
    // does nothing. Whoever started us may have blocked it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        let mut signals: libc::sigset_t = std::mem::zeroed();
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        action.sa_flags = libc::SA_SIGINFO;
        action.sa_sigaction = handler as usize;
        libc::sigaddset(&mut signals, SIGNAL);
        if libc::sigaction(SIGNAL, &action, &mut before) != 0
            || libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, &mut blocked) != 0
            || libc::raise(SIGNAL) != 0
        {
            return Err(io::Error::last_os_error());
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());
        libc::sigaction(SIGNAL, &before, std::ptr::null_mut());
    }
    let word = |at: usize| DESCRIPTION[at / 4].load(Ordering::Relaxed).to_le_bytes()[at % 4];
    Ok(Description(std::array::from_fn(word)))
}

static DESCRIPTION: [AtomicU32; 12] = [const { AtomicU32::new(0) }; 12];

extern "C" fn note_description(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's context, whose last words before the end of the oldest part describe the rest.
    let vectors = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.fpregs };
    for (at, word) in DESCRIPTION.iter().enumerate() {
        // SAFETY: as above: 48 bytes at the end of 512.
        let found = unsafe { vectors.cast::<u32>().add(116 + at).read_unaligned() };
        word.store(found, Ordering::Relaxed);
    }
}
