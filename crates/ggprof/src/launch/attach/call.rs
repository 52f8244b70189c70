//! Calls of functions in another process, made by one of its threads.
//!
//! The thread is stopped and gets other registers. When it has returned from the call it waits until we
//! stop it again, and gets back all registers, those of vectors as well, and the signals that it did not
//! take meanwhile. If we do not come any more, it gets them back by itself (`way_back`): at no moment does
//! the program need us to go on.

use super::choice::Unfit;
use super::processor::others::Others;
use super::processor::way_back::{self, CODE};
use super::processor::{self, RED_ZONE, Registers};
use super::tracee::{self, Stop, TIME_TO_STOP, Tracee};
use super::{refusal, spare_code};
use anyhow::{Context, bail};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// To load a library from a slow disk takes a while.
const TIME_TO_CALL: Duration = Duration::from_secs(20);
/// Signals that a thread sends to itself by what it does. If they are blocked then, they end the program.
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// A thread that makes calls for us. It was waiting for something outside of its process, or computing:
/// in both cases it does not hold a lock of the C library.
pub(super) struct Caller {
    tracee: Tracee,
    memory: File,
    before: Registers,
    others_before: Others,
    signals: u64,
    /// Where the code of the way back is, and what it needs, on the thread's stack.
    code: u64,
    block: u64,
    /// Below this the stack is free.
    stack: u64,
    stopped: Instant,
    /// Where its number of the last error is, and what it was.
    error_number: Option<(u64, [u8; 4])>,
    /// Whether it is ours to bring back: not while it makes a call, nor when it has gone back by itself.
    is_in_hand: bool,
}

impl Caller {
    /// The thread, which stands since then with these registers, and can be asked. The error is why not.
    pub(super) fn of(
        tracee: Tracee,
        stopped: Instant,
        before: Registers,
        memory: File,
        code: u64,
    ) -> anyhow::Result<Result<Caller, Unfit>> {
        let Some(others_before) = Others::of(&tracee)? else { return Ok(Err(Unfit::Registers)) };
        let signals = tracee.blocked_signals()?;
        let room = way_back::room(&others_before);
        let stack = processor::stack(&before);
        let block = (stack - RED_ZONE - room) & !(way_back::ALIGNMENT - 1);
        let Some(bytes) = way_back::block(block, &before, &others_before, signals) else {
            return Ok(Err(Unfit::Registers));
        };
        memory.write_all_at(&bytes, block)?;
        spare_code::put(&tracee, &memory, code)?;
        Ok(Ok(Caller {
            tracee,
            memory,
            before,
            others_before,
            signals,
            code,
            block,
            stack: block,
            stopped,
            error_number: None,
            is_in_hand: true,
        }))
    }

    /// What it is going to call sets the number of the last error, which a thread that computes may look at
    /// afterwards. `function` tells where that is.
    pub(super) fn keep_error_number(&mut self, function: u64) -> anyhow::Result<()> {
        let at = self.call(function, [0, 0])?;
        let mut number = [0; 4];
        self.read(at, &mut number)?;
        self.error_number = Some((at, number));
        Ok(())
    }

    /// Puts bytes on the thread's stack, where they stay until it is let go; where they are.
    pub(super) fn put<const N: usize>(&mut self, parts: [&[u8]; N]) -> io::Result<[u64; N]> {
        let mut places = [0; N];
        for (place, bytes) in places.iter_mut().zip(parts) {
            self.stack = (self.stack - bytes.len() as u64) & !15;
            self.memory.write_all_at(bytes, self.stack)?;
            *place = self.stack;
        }
        Ok(places)
    }

    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, at)
    }

    /// What the function returns.
    pub(super) fn call(&mut self, function: u64, arguments: [u64; 2]) -> anyhow::Result<u64> {
        self.memory.write_all_at(&0_u64.to_le_bytes(), self.block + way_back::DONE)?;
        let places = (self.code, self.stack, self.block);
        let registers = processor::calling(&self.before, places, function, arguments);
        // In this order: from here on it has a way back, which sets its signals as well.
        self.tracee.set_registers(&registers)?;
        self.is_in_hand = false;
        self.tracee.block_signals(!FAULTS.iter().fold(0, |all, &fault| all | bit(fault)))?;
        self.tracee.go_on(0)?;
        self.until_return()
            .context("the program did not come back from a call that it was asked to make")
    }

    fn until_return(&mut self) -> anyhow::Result<u64> {
        let begun = Instant::now();
        while begun.elapsed() < TIME_TO_CALL {
            match self.tracee.look()? {
                // Somebody else wants the whole process stopped; that is done when it is let go.
                Some(Stop::Asked) => self.tracee.go_on(0)?,
                Some(Stop::Signal(signal)) if FAULTS.contains(&signal) => {
                    self.is_in_hand = true;
                    let place = processor::place(&self.tracee.registers()?);
                    bail!("it failed at {place:#x} (signal {signal})");
                }
                Some(Stop::Signal(signal)) => self.tracee.go_on(signal)?,
                None if self.word(way_back::DONE)? != 0 => return self.take_back(),
                None => std::thread::sleep(tracee::PAUSE),
            }
        }
        bail!("it takes too long; it finishes the call without ggprof")
    }

    /// Stops it in the pause after the call.
    fn take_back(&mut self) -> anyhow::Result<u64> {
        self.tracee.interrupt(TIME_TO_STOP)?;
        let place = processor::place(&self.tracee.registers()?);
        self.is_in_hand = (self.code..self.code + CODE.len() as u64).contains(&place);
        if !self.is_in_hand {
            bail!("it went on by itself, because this machine is very busy. Try again");
        }
        Ok(self.word(way_back::RESULT)?)
    }

    fn word(&self, place: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.read(self.block + place, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Everything is as it was, and the thread goes on; for how long it stood.
    pub(super) fn let_go(mut self) -> io::Result<Duration> {
        if self.is_in_hand {
            if let Some((at, number)) = &self.error_number {
                self.memory.write_all_at(number, *at)?;
            }
            // The place where it goes on comes last: until then it has its own way back.
            self.tracee.block_signals(self.signals)?;
            self.others_before.give_back(&mut self.tracee)?;
            self.tracee.set_registers(&self.before)?;
        }
        drop(self.tracee);
        Ok(self.stopped.elapsed())
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The memory of a process, to be read and written, by the number of the process or of a thread.
pub(super) fn open_memory(pid: u32) -> anyhow::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{pid}/mem")).map_err(|error| {
        match error.kind() {
            io::ErrorKind::PermissionDenied => refusal::forbidden(pid),
            _ => error.into(),
        }
    })
}
