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
use ggprof_spool::attaching::{self, Change, FUNCTION, LENGTH_BYTES, WITHOUT};
pub(crate) use process::Process as Running;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use symbol::OfAgent;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

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
    let open = symbol::of_loader(pid, process.libc)?;
    let error_number = symbol::of_error_number(pid, process.libc)?;
    let (file, inode) = match &process.agent {
        Some(loaded) => (loaded.file(pid, library)?, loaded.inode()),
        None => (library, std::fs::metadata(library)?.ino()),
    };
    let function = OfAgent::find(file, inode, FUNCTION)?;
    let without = OfAgent::find(file, inode, WITHOUT)?;
    if process.agent.is_some() {
        abandoned::end(pid)?;
    }
    let (answer, one_stood) = apart::from_us(|| {
        let mut caller = choice::stop_one(pid)?;
        let kept = caller.keep_error_number(error_number);
        let loaded = kept.and_then(|()| match process.agent {
            Some(_) => Ok(()),
            None => load(&mut caller, library, open),
        });
        let function = loaded.and_then(|()| function.address(pid));
        let answer = function.and_then(|function| ask(&mut caller, function, settings));
        let one_stood = caller.let_go()?;
        anyhow::Ok((answer, one_stood))
    })??;
    let changes = answer?;
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
    let answer = apart::from_us(|| {
        let mut caller = choice::stop_one(pid)?;
        let kept = caller.keep_error_number(error_number);
        let answer = kept.and_then(|()| caller.call(function, [0, 0]));
        caller.let_go()?;
        answer
    })??;
    match answer {
        1 => Ok(()),
        _ => bail!("nothing is recorded, because of an internal fault of ggprof"),
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
) -> anyhow::Result<Vec<Change>> {
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
        Ok(changes) => Ok(changes),
        Err(problem) => bail!("nothing is recorded: {problem}"),
    }
}
