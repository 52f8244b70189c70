//! The thread that is asked to load the agent: one that was seen to be fit, and still is when it stands.

use super::call::{Caller, open_memory};
use super::maps::{self, Mapping};
use super::processor::{self, Registers};
use super::stack::{self, Place};
use super::tracee::{TIME_TO_STOP, Tracee};
use super::{refusal, spare_code, symbol, threads};
use anyhow::bail;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// How long to look for a thread that can be asked.
const TIME_TO_CHOOSE: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_millis(2);

/// Why a thread cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unfit {
    /// It may hold a lock of the C library.
    InLibrary,
    SmallStack,
    /// It uses some that cannot be given back to it.
    Registers,
    DoesNotStop,
}

impl Unfit {
    fn words(self) -> &'static str {
        match self {
            Unfit::InLibrary => "in the middle of the C library or of code that is not ggml's",
            Unfit::SmallStack => "on a stack that has no room for it, as coroutines have",
            Unfit::Registers => {
                "using registers that ggprof cannot give back (AMX tiles, or a shadow stack)"
            }
            Unfit::DoesNotStop => "in the kernel, and did not stop",
        }
    }
}

/// What is found out before anything stands.
struct Prepared {
    pid: u32,
    maps: Vec<Mapping>,
    code: u64,
}

/// Stops a thread that can be asked.
pub(super) fn stop_one(pid: u32) -> anyhow::Result<Caller> {
    let maps = maps::of(pid)?;
    let code = spare_code::find(&maps, &open_memory(pid)?)?;
    let prepared = Prepared { pid, maps, code };
    let maps = &prepared.maps;
    let (begun, mut ggml, mut reasons) = (Instant::now(), None, BTreeSet::new());
    // It was seen to wait, and may have gone on before it was stopped.
    let waits = |registers: &Registers, memory: &File| {
        processor::interrupted_call(registers, memory)
            .is_some_and(|call| threads::waits(&call, maps))
    };
    while begun.elapsed() < TIME_TO_CHOOSE {
        for thread in threads::that_wait(pid, maps)? {
            match prepared.try_one(thread, waits)? {
                Ok(caller) => return Ok(caller),
                Err(reason) => reasons.extend(reason),
            }
        }
        let ggml = ggml.get_or_insert_with(|| symbol::code_of_ggml(maps));
        let computes = |registers: &Registers, _: &File| {
            let place = processor::place(registers);
            ggml.iter().any(|code| code.contains(&place))
        };
        for thread in threads::of(pid)? {
            match prepared.try_one(thread, computes)? {
                Ok(caller) => return Ok(caller),
                Err(reason) => reasons.extend(reason),
            }
        }
        std::thread::sleep(BETWEEN);
    }
    bail!("{}", none_is_fit(pid, &reasons))
}

fn none_is_fit(pid: u32, reasons: &BTreeSet<Unfit>) -> String {
    let words: Vec<&str> = reasons.iter().map(|reason| reason.words()).collect();
    format!(
        "no thread of process {pid} was found that can load the agent safely: each was {}. Try again, or \
         start the program with `ggprof run`.",
        words.join(", or ")
    )
}

impl Prepared {
    /// Why it is not fit is `None` of a thread that has ended.
    fn try_one(
        &self,
        thread: i32,
        is_fit: impl Fn(&Registers, &File) -> bool,
    ) -> anyhow::Result<Result<Caller, Option<Unfit>>> {
        let stopped = Instant::now();
        let tracee = match Tracee::stop(thread, TIME_TO_STOP) {
            Ok(tracee) => tracee,
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                return refusal::of_thread(thread).map_or(Ok(Err(None)), Err);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Ok(Err(Some(Unfit::DoesNotStop)));
            }
            Err(_) => return Ok(Err(None)),
        };
        let registers = tracee.registers()?;
        let memory = open_memory(thread.unsigned_abs())?;
        if !is_fit(&registers, &memory) {
            return Ok(Err(Some(Unfit::InLibrary)));
        }
        if !stack::has_room(&self.maps, &memory, self.place(&tracee, &registers)?) {
            return Ok(Err(Some(Unfit::SmallStack)));
        }
        Ok(Caller::of(tracee, stopped, registers, memory, self.code)?.map_err(Some))
    }

    fn place(&self, tracee: &Tracee, registers: &Registers) -> io::Result<Place> {
        Ok(Place {
            is_first: tracee.thread().unsigned_abs() == self.pid,
            stack: processor::stack(registers),
            notes: processor::notes(registers, tracee)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_said() {
        let said = none_is_fit(7, &[Unfit::SmallStack, Unfit::InLibrary].into());
        assert_eq!(
            said,
            "no thread of process 7 was found that can load the agent safely: each was in the middle of \
             the C library or of code that is not ggml's, or on a stack that has no room for it, as \
             coroutines have. Try again, or start the program with `ggprof run`."
        );
    }
}
