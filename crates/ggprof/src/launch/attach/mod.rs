//! Loading the agent into a program that runs already.
//!
//! One thread of the program is stopped, calls `dlopen` and the agent, and goes on as if nothing had
//! been (`call`). All others run meanwhile, so none of them can hold a lock that the call waits for
//! for ever. Where code has to be changed, that is done from here, while every thread stands (`code`).

mod abandoned;
mod apart;
mod call;
mod choice;
mod code;
mod loaded_agent;
mod maps;
mod process;
mod refusal;
mod spare_code;
mod stack;
mod symbol;
mod threads;
// Asks the system to stop threads of another process, and to tell and change their registers.
#[allow(unsafe_code)]
mod tracee;
// Only these folders depend on the processor.
#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use super::Agent;
#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
use anyhow::{Context, anyhow, bail};
use call::Caller;
use ggprof_spool::attaching::{
    self, BUSY, Change, FUNCTION, LENGTH_BYTES, PREPARED, Refused, WITHOUT,
};
pub(crate) use process::Process as Running;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use symbol::OfAgent;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

/// How long to look for a thread that is not inside the agent.
const TIME_TO_ASK: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_millis(5);

/// What was done to the program.
#[derive(Debug)]
pub(crate) struct Attached {
    /// How long the thread stood that loaded the agent.
    pub(crate) one_stood: Duration,
    /// How long all of them stood; `None` where no code was changed.
    pub(crate) all_stood: Option<Duration>,
    /// Why code that should have been changed was not.
    pub(crate) unchanged: Option<anyhow::Error>,
}

/// Loads the agent into the process and hands it these settings. The recording begins when it is asked
/// for afterwards.
pub(crate) fn attach(
    process: &Running,
    agent: &Agent,
    settings: &[(&str, OsString)],
) -> anyhow::Result<Attached> {
    load_and_ask(process, agent, settings).map_err(|error| process.or_ended(error))
}

fn load_and_ask(
    process: &Running,
    agent: &Agent,
    settings: &[(&str, OsString)],
) -> anyhow::Result<Attached> {
    let pid = process.pid;
    let library = agent.library(Some(process.libc));
    symbol::wait_for_libc(pid, process.libc)?;
    let open = symbol::of_loader(pid, process.libc)?;
    let error_number = symbol::of_error_number(pid, process.libc)?;
    let (file, inode) = match &process.agent {
        Some(loaded) => (loaded.file(pid, library)?, loaded.inode()),
        None => (library, std::fs::metadata(library)?.ino()),
    };
    let function = OfAgent::find(file, inode, FUNCTION)?;
    let without = OfAgent::find(file, inode, WITHOUT)?;
    abandoned::end(pid)?;
    let load_and_ask = || {
        on_a_thread(pid, error_number, |caller| {
            if process.agent.is_none() {
                load(caller, library, open)?;
            }
            ask(caller, function.address(pid)?, settings)
        })
    };
    let (changes, one_stood) = match load_and_ask() {
        // A thread that a killed ggprof had asked goes on by itself, and may have done so just now.
        Err(_) if abandoned::end(pid)? => load_and_ask()?,
        asked => asked?,
    };
    let changed = match &changes[..] {
        [] => Ok(None),
        changes => apart::from_us(|| code::change(pid, changes))?.map(Some),
    };
    let (all_stood, unchanged) = match changed {
        Ok(all_stood) => (all_stood, None),
        Err(why) => {
            go_without_changes(pid, error_number, &without)?;
            (None, Some(why))
        }
    };
    Ok(Attached { one_stood, all_stood, unchanged })
}

/// The agent has prepared for changes of code that could not be made: it has to know before anything is
/// recorded.
fn go_without_changes(pid: u32, error_number: u64, without: &OfAgent) -> anyhow::Result<()> {
    let function = without.address(pid)?;
    let (answer, _) = on_a_thread(pid, error_number, |caller| {
        let answer = caller.call(function, [0, 0])?;
        Ok((answer != BUSY as u64).then_some(answer))
    })?;
    match answer == PREPARED as u64 {
        true => Ok(()),
        false => bail!("nothing is recorded, because of an internal fault of ggprof"),
    }
}

/// A thread of the program is asked, and another one or later again where it is `None`: that one was inside
/// the agent. Also for how long the thread stood.
fn on_a_thread<T: Send>(
    pid: u32,
    error_number: u64,
    ask: impl Fn(&mut Caller) -> anyhow::Result<Option<T>> + Sync,
) -> anyhow::Result<(T, Duration)> {
    let begun = Instant::now();
    loop {
        let (answer, stood) = apart::from_us(|| {
            let mut caller = choice::stop_one(pid)?;
            let kept = caller.keep_error_number(error_number);
            let answer = kept.and_then(|()| ask(&mut caller));
            let stood = caller.let_go()?;
            anyhow::Ok((answer, stood))
        })??;
        match answer? {
            Some(answer) => return Ok((answer, stood)),
            None if begun.elapsed() < TIME_TO_ASK => std::thread::sleep(BETWEEN),
            None => {
                bail!("nothing is recorded: its threads are inside ggprof's own code. Try again")
            }
        }
    }
}

fn load(caller: &mut Caller, library: &Path, open: u64) -> anyhow::Result<()> {
    let mut path = library.as_os_str().as_bytes().to_vec();
    path.push(0);
    let [path] = caller.put([&path])?;
    if caller.call(open, [path, libc::RTLD_NOW as u64])? == 0 {
        bail!(
            "the program could not load {}. If it runs in a container or sandbox, the file must be \
             there as well.",
            library.display()
        );
    }
    Ok(())
}

fn ask(
    caller: &mut Caller,
    function: u64,
    settings: &[(&str, OsString)],
) -> anyhow::Result<Option<Vec<Change>>> {
    let mut block = Vec::new();
    for (name, value) in settings {
        block.extend_from_slice(name.as_bytes());
        block.push(b'=');
        block.extend_from_slice(value.as_bytes());
        block.push(0);
    }
    block.push(0);
    let [settings] = caller.put([&block])?;
    let at = caller.call(function, [settings, 0])?;
    let unknown = || anyhow!("the agent's answer is not understood");
    let mut front = [0; LENGTH_BYTES];
    caller.read(at, &mut front)?;
    let mut body = vec![0; attaching::length(front).with_context(|| format!("{}", unknown()))?];
    caller.read(at + LENGTH_BYTES as u64, &mut body)?;
    match attaching::decode(&body).ok_or_else(unknown)? {
        Ok(changes) => Ok(Some(changes)),
        Err(Refused::Busy) => Ok(None),
        Err(Refused::Because(problem)) => bail!("nothing is recorded: {problem}"),
    }
}
