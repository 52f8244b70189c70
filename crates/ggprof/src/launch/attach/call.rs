//! Calls of functions in another process, made by one of its threads.
//!
//! The thread is stopped and gets other registers. When it has returned from the call it waits until we
//! stop it again, and gets back all registers, those of vectors as well, and the signals that it did not
//! take meanwhile. If we do not come any more, it gets them back by itself (`way_back`): at no moment does
//! the program need us to go on.

use super::maps::{self, Mapping};
use super::processor::others::Others;
use super::processor::way_back::{self, CODE};
use super::processor::{self, RED_ZONE, Registers};
use super::tracee::{self, Stop, Tracee};
use super::{process, spare_code, stack, symbol, threads};
use anyhow::{Context, anyhow, bail};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// A thread that does not stop is in the middle of something long in the kernel.
const TIME_TO_STOP: Duration = Duration::from_secs(1);
/// To load a library from a slow disk takes a while.
const TIME_TO_CALL: Duration = Duration::from_secs(20);
/// How long to look for a thread that can be asked.
const TIME_TO_CHOOSE: Duration = Duration::from_secs(5);

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
    /// Whether it is ours to bring back: not while it makes a call, nor when it has gone back by itself.
    is_in_hand: bool,
}

/// What is found out before anything stands.
struct Prepared {
    pid: u32,
    maps: Vec<Mapping>,
    code: u64,
}

impl Caller {
    /// Stops a thread that can be asked.
    pub(super) fn stop_one(pid: u32) -> anyhow::Result<Caller> {
        let prepared = Prepared::of(pid)?;
        let maps = &prepared.maps;
        let begun = Instant::now();
        let mut ggml = None;
        // It was seen to wait, and may have gone on before it was stopped.
        let waits = |registers: &Registers, memory: &File| {
            processor::interrupted_call(registers, memory)
                .is_some_and(|call| threads::waits(&call, maps))
        };
        while begun.elapsed() < TIME_TO_CHOOSE {
            for thread in threads::that_wait(pid, maps)? {
                if let Some(caller) = Caller::try_one(thread, &prepared, waits)? {
                    return Ok(caller);
                }
            }
            let ggml = ggml.get_or_insert_with(|| symbol::code_of_ggml(maps));
            let computes = |registers: &Registers, _: &File| {
                let place = processor::place(registers);
                ggml.iter().any(|code| code.contains(&place))
            };
            for thread in threads::of(pid)? {
                if let Some(caller) = Caller::try_one(thread, &prepared, computes)? {
                    return Ok(caller);
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!(
            "no thread of process {pid} was found that can load the agent safely: all were in the middle \
             of the C library. Try again, or start the program with `ggprof run`."
        )
    }

    /// `None` if the thread is not fit, or has ended.
    fn try_one(
        thread: i32,
        prepared: &Prepared,
        is_fit: impl Fn(&Registers, &File) -> bool,
    ) -> anyhow::Result<Option<Caller>> {
        let stopped = Instant::now();
        let tracee = match Tracee::stop(thread, TIME_TO_STOP) {
            Ok(tracee) => tracee,
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(refused(thread)),
            Err(_) => return Ok(None),
        };
        let before = tracee.registers()?;
        // Some kernels let code be written only through the thread that is stopped, which need not be the
        // process's first.
        let memory = open_memory(thread.unsigned_abs())?;
        let stack_pointer = processor::stack(&before);
        let place = stack::Place {
            is_first: thread.unsigned_abs() == prepared.pid,
            stack: stack_pointer,
            notes: processor::notes(&before, &tracee)?,
        };
        if !is_fit(&before, &memory) || !stack::has_room(&prepared.maps, &memory, place) {
            return Ok(None);
        }
        let Some(others_before) = Others::of(&tracee)? else { return Ok(None) };
        let signals = tracee.blocked_signals()?;
        let room = way_back::room(&others_before);
        let block = (stack_pointer - RED_ZONE - room) & !(way_back::ALIGNMENT - 1);
        let Some(bytes) = way_back::block(block, &before, &others_before, signals) else {
            return Ok(None);
        };
        memory.write_all_at(&bytes, block)?;
        spare_code::put(&memory, prepared.code)?;
        Ok(Some(Caller {
            tracee,
            memory,
            before,
            others_before,
            signals,
            code: prepared.code,
            block,
            stack: block,
            stopped,
            is_in_hand: true,
        }))
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
        self.tracee.block_signals(!bit(libc::SIGSEGV))?;
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
                Some(Stop::Signal(libc::SIGSEGV)) => {
                    self.is_in_hand = true;
                    bail!("it failed at {:#x}", processor::place(&self.tracee.registers()?));
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
            // The place where it goes on comes last: until then it has its own way back.
            self.tracee.block_signals(self.signals)?;
            self.others_before.give_back(&mut self.tracee)?;
            self.tracee.set_registers(&self.before)?;
        }
        drop(self.tracee);
        Ok(self.stopped.elapsed())
    }
}

impl Prepared {
    fn of(pid: u32) -> anyhow::Result<Prepared> {
        let maps = maps::of(pid)?;
        let code = spare_code::find(&maps, &open_memory(pid)?)?;
        Ok(Prepared { pid, maps, code })
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The memory of a process, to be read and written, by the number of the process or of a thread.
pub(super) fn open_memory(pid: u32) -> anyhow::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{pid}/mem")).map_err(|error| {
        match error.kind() {
            io::ErrorKind::PermissionDenied => forbidden(),
            _ => error.into(),
        }
    })
}

/// Why a thread cannot be stopped. Whoever debugged it, another ggprof perhaps, may have gone since.
fn refused(thread: i32) -> anyhow::Error {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    match process::tracer(&status) {
        Some(tracer) => anyhow!(
            "thread {thread} of the program is being debugged by process {tracer}, and two cannot do that \
             at once. End the other one first, or try again"
        ),
        None if Tracee::stop(thread, TIME_TO_STOP).is_ok() => anyhow!(
            "thread {thread} of the program was being debugged by another process at that moment. Try \
             again"
        ),
        None => forbidden(),
    }
}

pub(super) fn forbidden() -> anyhow::Error {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "1" => anyhow!(
            "this system lets only parents look into their programs (yama's ptrace_scope is 1). Run \
             `sudo ggprof attach` as the program's user with the right to trace, or allow it until the \
             next start: sudo sysctl kernel.yama.ptrace_scope=0"
        ),
        "2" => anyhow!(
            "this system lets only the administrator look into programs (yama's ptrace_scope is 2)"
        ),
        "3" => anyhow!(
            "this system lets nobody look into programs (yama's ptrace_scope is 3); start the program \
             with `ggprof run`"
        ),
        _ => anyhow!(
            "the system does not let ggprof look into the program: it has rights that you do not have, \
             hides its memory (PR_SET_DUMPABLE), or a container forbids it (`--cap-add SYS_PTRACE` allows it)"
        ),
    }
}
