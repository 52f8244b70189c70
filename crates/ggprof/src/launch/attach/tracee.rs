//! A thread of another process that is stopped by the kernel for us: its registers, its signals, and
//! what happens to it. The one thread that stopped it may ask; when that ends, the kernel lets it go on.

use super::processor::Registers;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Room for all vector registers that there are, and that there will be for a while.
const STATE_BYTES: usize = 64 << 10;
/// Between looks at what a thread does.
pub(super) const PAUSE: Duration = Duration::from_micros(100);
const SIGNAL_BYTES: usize = 8;
const WORD_BYTES: usize = size_of::<usize>();
/// A thread that does not stop until then is in the middle of something long in the kernel.
pub(super) const TIME_TO_STOP: Duration = Duration::from_secs(1);
/// The kernel's number for the registers that every processor has (`NT_PRSTATUS`).
const GENERAL: usize = 1;

/// Stopped, or on its way through a call that it was given. Let go when dropped.
#[derive(Debug)]
pub(super) struct Tracee {
    thread: i32,
    is_over: bool,
}

/// Why a thread stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Because it was asked to.
    Asked,
    /// A signal is about to be delivered.
    Signal(i32),
}

impl Tracee {
    /// Stops a thread. An error if it has ended, or may not be stopped.
    pub(super) fn stop(thread: i32, limit: Duration) -> io::Result<Tracee> {
        let mut tracee = Tracee::asked_to_stop(thread)?;
        tracee.until_stopped(limit)?;
        Ok(tracee)
    }

    /// A thread that stops soon. An error if it has ended, or may not be stopped.
    pub(super) fn asked_to_stop(thread: i32) -> io::Result<Tracee> {
        request(libc::PTRACE_SEIZE, thread, 0, 0)?;
        let tracee = Tracee { thread, is_over: false };
        request(libc::PTRACE_INTERRUPT, thread, 0, 0)?;
        Ok(tracee)
    }

    /// Stops it while it runs.
    pub(super) fn interrupt(&mut self, limit: Duration) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.thread, 0, 0)?;
        self.until_stopped(limit)
    }

    /// Waits until it has stopped as it was asked to.
    pub(super) fn until_stopped(&mut self, limit: Duration) -> io::Result<()> {
        loop {
            match self.wait(limit)? {
                Stop::Asked => return Ok(()),
                // One that came at the same time is the program's own.
                Stop::Signal(signal) => self.go_on(signal)?,
            }
        }
    }

    pub(super) fn thread(&self) -> i32 {
        self.thread
    }

    /// Lets it run until it stops again, with a signal to be delivered, or 0.
    pub(super) fn go_on(&mut self, signal: i32) -> io::Result<()> {
        request(libc::PTRACE_CONT, self.thread, 0, signal as usize)
    }

    fn wait(&mut self, limit: Duration) -> io::Result<Stop> {
        let begun = Instant::now();
        loop {
            if let Some(stop) = self.look()? {
                return Ok(stop);
            }
            if begun.elapsed() > limit {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether it has stopped.
    pub(super) fn look(&mut self) -> io::Result<Option<Stop>> {
        let mut status = 0;
        // SAFETY: `status` is ours.
        let found =
            unsafe { libc::waitpid(self.thread, &mut status, libc::__WALL | libc::WNOHANG) };
        match found {
            -1 => Err(io::Error::last_os_error()),
            found if found == self.thread => self.understand(status).map(Some),
            _ => Ok(None),
        }
    }

    fn understand(&mut self, status: i32) -> io::Result<Stop> {
        if !libc::WIFSTOPPED(status) {
            self.is_over = true;
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let is_asked = status >> 16 == libc::PTRACE_EVENT_STOP;
        Ok(if is_asked { Stop::Asked } else { Stop::Signal(libc::WSTOPSIG(status)) })
    }

    /// Those that every processor has: numbers, stack and place.
    pub(super) fn registers(&self) -> io::Result<Registers> {
        // SAFETY: all-zero registers are valid, and the kernel fills them in.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        let base = (&raw mut registers).cast::<c_void>();
        self.set(libc::PTRACE_GETREGSET, GENERAL, base, size_of::<Registers>())?;
        Ok(registers)
    }

    pub(super) fn set_registers(&mut self, registers: &Registers) -> io::Result<()> {
        let base = std::ptr::from_ref(registers).cast_mut().cast::<c_void>();
        self.set(libc::PTRACE_SETREGSET, GENERAL, base, size_of::<Registers>()).map(drop)
    }

    /// Others, by the number that the kernel has for their kind.
    pub(super) fn other_registers(&self, kind: usize) -> io::Result<Vec<u8>> {
        let mut state = vec![0; STATE_BYTES];
        let base = state.as_mut_ptr().cast::<c_void>();
        let length = self.set(libc::PTRACE_GETREGSET, kind, base, state.len())?;
        state.truncate(length);
        Ok(state)
    }

    pub(super) fn set_other_registers(&mut self, kind: usize, state: &[u8]) -> io::Result<()> {
        let base = state.as_ptr().cast_mut().cast::<c_void>();
        self.set(libc::PTRACE_SETREGSET, kind, base, state.len()).map(drop)
    }

    /// Asks for or sets registers of a kind; how many bytes there are of them.
    fn set(
        &self,
        what: libc::c_uint,
        kind: usize,
        base: *mut c_void,
        length: usize,
    ) -> io::Result<usize> {
        let mut part = libc::iovec { iov_base: base, iov_len: length };
        request(what, self.thread, kind, (&raw mut part) as usize)?;
        Ok(part.iov_len)
    }

    /// Puts bytes into its process's code. Some systems let nobody write there by the file of its memory.
    pub(super) fn write_code(&self, memory: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        for (place, part) in (at..).step_by(WORD_BYTES).zip(bytes.chunks(WORD_BYTES)) {
            let mut word = [0; WORD_BYTES];
            memory.read_exact_at(&mut word, place)?;
            word[..part.len()].copy_from_slice(part);
            let word = usize::from_ne_bytes(word);
            request(libc::PTRACE_POKETEXT, self.thread, place as usize, word)?;
        }
        Ok(())
    }

    /// The signals that it does not take now, a bit for each.
    pub(super) fn blocked_signals(&self) -> io::Result<u64> {
        let mut signals = 0_u64;
        let at = (&raw mut signals) as usize;
        request(libc::PTRACE_GETSIGMASK, self.thread, SIGNAL_BYTES, at)?;
        Ok(signals)
    }

    pub(super) fn block_signals(&mut self, signals: u64) -> io::Result<()> {
        let at = (&raw const signals) as usize;
        request(libc::PTRACE_SETSIGMASK, self.thread, SIGNAL_BYTES, at)
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if !self.is_over {
            // It may have ended meanwhile. One that has not stopped cannot be let go (`apart`).
            let _ = request(libc::PTRACE_DETACH, self.thread, 0, 0);
        }
    }
}

fn request(what: libc::c_uint, thread: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: what the requests above read and write is theirs, and large enough.
    let done = unsafe { libc::ptrace(what, thread, address, data) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
