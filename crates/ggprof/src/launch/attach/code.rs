//! Changes of a program's code, made while all of its threads stand and none of them is in the bytes
//! that change.

use super::call::open_memory;
use super::processor;
use super::threads;
use super::tracee::Tracee;
use anyhow::{Context, bail};
use ggprof_spool::attaching::Change;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Threads leave the first instructions of a function at once.
const ATTEMPTS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(1);
const TIME_TO_STOP: Duration = Duration::from_secs(1);

/// Makes all of the changes, or none; how long the program stood.
pub(super) fn change(pid: u32, changes: &[Change]) -> anyhow::Result<Duration> {
    let memory = open_memory(pid)?;
    for _ in 0..ATTEMPTS {
        let begun = Instant::now();
        let all = stop_all(pid)?;
        if are_outside(&all, changes)? {
            write(&memory, changes)?;
            drop(all);
            return Ok(begun.elapsed());
        }
        drop(all);
        std::thread::sleep(BETWEEN);
    }
    bail!(
        "a thread of process {pid} stays at the start of one of ggml's functions, which therefore \
         cannot be changed"
    )
}

/// Threads can be made by threads that are not stopped yet: until there are no others.
fn stop_all(pid: u32) -> anyhow::Result<Vec<Tracee>> {
    let mut stopped: Vec<Tracee> = Vec::new();
    loop {
        let known: BTreeSet<i32> = stopped.iter().map(Tracee::thread).collect();
        let new: Vec<i32> =
            threads::of(pid)?.into_iter().filter(|thread| !known.contains(thread)).collect();
        let before = stopped.len();
        for thread in new {
            match Tracee::stop(thread, TIME_TO_STOP) {
                Ok(tracee) => stopped.push(tracee),
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    return Err(error).context(format!("thread {thread} cannot be stopped"));
                }
            }
        }
        if stopped.len() == before {
            return Ok(stopped);
        }
    }
}

fn are_outside(all: &[Tracee], changes: &[Change]) -> anyhow::Result<bool> {
    for tracee in all {
        let place = processor::place(&tracee.registers()?);
        if changes.iter().any(|change| change.is_inside(place)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn write(memory: &File, changes: &[Change]) -> anyhow::Result<()> {
    for change in changes {
        let mut now = vec![0; change.before().len()];
        memory.read_exact_at(&mut now, change.at)?;
        if now != change.before() {
            bail!("the program's code is not what it was a moment ago; nothing was changed");
        }
    }
    for change in changes {
        memory.write_all_at(change.after(), change.at)?;
    }
    Ok(())
}
