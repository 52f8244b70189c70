//! Changes of a program's code, made while all of its threads stand and none of them is in the bytes
//! that change.

use super::call::open_memory;
use super::processor;
use super::refusal;
use super::threads;
use super::tracee::{TIME_TO_STOP, Tracee};
use anyhow::{Context, bail};
use ggprof_spool::attaching::Change;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Threads leave the first instructions of a function at once.
const ATTEMPTS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(1);

/// Makes all of the changes, or none; how long the program stood.
pub(super) fn change(pid: u32, changes: &[Change]) -> anyhow::Result<Duration> {
    let memory = open_memory(pid)?;
    for _ in 0..ATTEMPTS {
        let begun = Instant::now();
        let all = stop_all(pid)?;
        if are_outside(&all, changes)? {
            write(&all, &memory, changes)?;
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
        let all = threads::of(pid)?.into_iter();
        let new = stop_each(all.filter(|thread| !known.contains(thread)))?;
        if new.is_empty() {
            return Ok(stopped);
        }
        stopped.extend(new);
    }
}

/// All of them at once: they stand while others are waited for. Those that have ended are left out.
fn stop_each(threads: impl Iterator<Item = i32>) -> anyhow::Result<Vec<Tracee>> {
    let mut stopping = Vec::new();
    for thread in threads {
        let asked = Tracee::asked_to_stop(thread).map_err(|error| (thread, error));
        stopping.extend(unless_ended(asked)?);
    }
    let mut stopped = Vec::new();
    for mut tracee in stopping {
        let waited = tracee.until_stopped(TIME_TO_STOP);
        let waited = waited.map_err(|error| (tracee.thread(), error));
        stopped.extend(unless_ended(waited)?.map(|()| tracee));
    }
    Ok(stopped)
}

/// `None` of a thread that has ended.
fn unless_ended<R>(done: Result<R, (i32, io::Error)>) -> anyhow::Result<Option<R>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err((_, error)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err((thread, error)) if error.raw_os_error() == Some(libc::EPERM) => {
            let why = refusal::of_thread(thread);
            why.map_or(Ok(None), |why| Err(why.context(cannot_stop(thread))))
        }
        Err((thread, error)) => Err(error).context(cannot_stop(thread)),
    }
}

fn cannot_stop(thread: i32) -> String {
    format!("thread {thread} cannot be stopped")
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

fn write(all: &[Tracee], memory: &File, changes: &[Change]) -> anyhow::Result<()> {
    let writer = all.first().context("it has ended")?;
    for change in changes {
        let mut now = vec![0; change.before().len()];
        memory.read_exact_at(&mut now, change.at)?;
        if now != change.before() {
            bail!("the program's code is not what it was a moment ago; nothing was changed");
        }
    }
    for change in changes {
        writer.write_code(memory, change.at, change.after())?;
    }
    Ok(())
}
