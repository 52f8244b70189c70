//! Calls of functions in another process, made by one of its threads.
//!
//! The thread is stopped, gets other registers, and returns from the call to an address where there is
//! nothing: then the kernel stops it again, before anybody in the program hears of it. It then gets
//! back all registers, those of vectors as well, and the signals that it did not take meanwhile.

use super::maps::{self, Mapping};
use super::tracee::{Registers, Stop, Tracee};
use super::{symbol, threads};
use anyhow::{Context, anyhow, bail};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// In the first page, where nothing ever is.
const NOWHERE: u64 = 0x6e;
/// What a function may use below the stack pointer without saying so.
const RED_ZONE: u64 = 128;
/// A thread that does not stop is in the middle of something long in the kernel.
const TIME_TO_STOP: Duration = Duration::from_secs(1);
/// To load a library from a slow disk takes a while.
const TIME_TO_CALL: Duration = Duration::from_secs(20);
/// How long to look for a thread that can be asked.
const TIME_TO_CHOOSE: Duration = Duration::from_secs(2);
/// The bit of the flags that turns string instructions around.
const BACKWARDS: u64 = 1 << 10;

/// A thread that makes calls for us. It was waiting for something outside of its process, or computing:
/// in both cases it does not hold a lock of the C library.
pub(super) struct Caller {
    tracee: Tracee,
    memory: File,
    before: Registers,
    other_before: Vec<u8>,
    signals: u64,
    /// Below this the stack is free.
    stack: u64,
    stopped: Instant,
}

impl Caller {
    /// Stops a thread that can be asked.
    pub(super) fn stop_one(pid: u32) -> anyhow::Result<Caller> {
        let memory = open_memory(pid)?;
        let begun = Instant::now();
        let maps = maps::of(pid)?;
        let mut ggml = None;
        while begun.elapsed() < TIME_TO_CHOOSE {
            for thread in threads::that_wait(pid, &maps)? {
                if let Some(caller) = Caller::try_one(thread, &memory, |_| true, &maps)? {
                    return Ok(caller);
                }
            }
            let ggml = ggml.get_or_insert_with(|| symbol::code_of_ggml(&maps));
            let computes = |place: u64| ggml.iter().any(|code| code.contains(&place));
            for thread in threads::of(pid)? {
                if let Some(caller) = Caller::try_one(thread, &memory, computes, &maps)? {
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
        memory: &File,
        is_fit: impl Fn(u64) -> bool,
        maps: &[Mapping],
    ) -> anyhow::Result<Option<Caller>> {
        let stopped = Instant::now();
        let tracee = match Tracee::stop(thread, TIME_TO_STOP) {
            Ok(tracee) => tracee,
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(forbidden()),
            Err(_) => return Ok(None),
        };
        let before = tracee.registers()?;
        if !is_fit(before.rip) || !threads::has_room(maps, before.rsp) {
            return Ok(None);
        }
        let (other_before, signals) = (tracee.other_registers()?, tracee.blocked_signals()?);
        let (memory, stack) = (memory.try_clone()?, before.rsp - RED_ZONE);
        Ok(Some(Caller { tracee, memory, before, other_before, signals, stack, stopped }))
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
        let stack = (self.stack & !15) - 8;
        self.memory.write_all_at(&NOWHERE.to_le_bytes(), stack)?;
        let mut registers = self.before;
        registers.rip = function;
        registers.rsp = stack;
        [registers.rdi, registers.rsi] = arguments;
        registers.rax = 0;
        registers.eflags &= !BACKWARDS;
        // It is in no call of the system that could be begun again.
        registers.orig_rax = u64::MAX;
        self.tracee.block_signals(!bit(libc::SIGSEGV))?;
        self.tracee.set_registers(&registers)?;
        self.tracee.go_on(0)?;
        let returned = self.until_return();
        if returned.is_err() {
            // It may be on its way still. It goes on where it was: the end of the call leads nowhere.
            let _ = self.tracee.interrupt(TIME_TO_STOP);
        }
        returned.context("the program did not come back from a call that it was asked to make")
    }

    fn until_return(&mut self) -> anyhow::Result<u64> {
        loop {
            match self.tracee.wait(TIME_TO_CALL)? {
                // Somebody else wants the whole process stopped; that is done when it is let go.
                Stop::Asked => self.tracee.go_on(0)?,
                Stop::Signal(libc::SIGSEGV) => {
                    let registers = self.tracee.registers()?;
                    return match registers.rip == NOWHERE {
                        true => Ok(registers.rax),
                        false => Err(anyhow!("it failed at {:#x}", registers.rip)),
                    };
                }
                Stop::Signal(signal) => self.tracee.go_on(signal)?,
            }
        }
    }

    /// Everything is as it was, and the thread goes on; for how long it stood.
    pub(super) fn let_go(mut self) -> io::Result<Duration> {
        self.tracee.set_other_registers(&self.other_before)?;
        self.tracee.set_registers(&self.before)?;
        self.tracee.block_signals(self.signals)?;
        drop(self.tracee);
        Ok(self.stopped.elapsed())
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The memory of a process, to be read and written.
pub(super) fn open_memory(pid: u32) -> anyhow::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{pid}/mem")).map_err(|error| {
        match error.kind() {
            io::ErrorKind::PermissionDenied => forbidden(),
            _ => error.into(),
        }
    })
}

fn forbidden() -> anyhow::Error {
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
             or a container forbids it (`--cap-add SYS_PTRACE` allows it)"
        ),
    }
}
