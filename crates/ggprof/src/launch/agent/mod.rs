//! The library that is loaded into the program: which one it is, and where the dynamic linker finds
//! it. A command that carries agents uses those (`place`, `memory`); a development build takes the
//! one beside itself.

mod memory;
mod others;
mod place;

use super::{preload, program};
use anyhow::{anyhow, bail};
use ggprof_agents::{Agent as Carried, CARRIED, Libc};
use ggprof_spool::names;
use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) const FILE: &str = "libggprof_agent.so";

/// The agent as programs can load it, for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The processor that it is for, in the words of Rust.
    pub(crate) processor: &'static str,
    /// The library for programs of glibc.
    pub(crate) path: PathBuf,
    /// The one for programs of musl, if there is one.
    pub(crate) musl: Option<PathBuf>,
    /// Its part of `LD_PRELOAD`.
    pub(super) entry: OsString,
    /// Where it is in memory only.
    memory: Option<OwnedFd>,
    /// The locks that keep its files.
    _held: Vec<OwnedFd>,
}

impl Agent {
    fn of_glibc(processor: &'static str, path: PathBuf) -> Self {
        let entry = preload::for_glibc(&path);
        Self { entry, processor, path, musl: None, memory: None, _held: Vec::new() }
    }

    /// The library for programs of a C library.
    pub(crate) fn library(&self, libc: Option<Libc>) -> &Path {
        match (libc, &self.musl) {
            (Some(Libc::Musl), Some(musl)) => musl,
            _ => &self.path,
        }
    }

    /// Whether it is gone when this command ends.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }
}

/// The agent for programs of this command's own processor.
pub(crate) fn find() -> anyhow::Result<Agent> {
    find_for_processor(ARCH)
}

/// The agent for the program of a command, which may be built for another processor if the system has
/// an emulator for it.
pub(crate) fn find_for(command: &OsStr) -> anyhow::Result<Agent> {
    let is_carried = |processor: &&str| carried(processor, Libc::Glibc).is_some();
    find_for_processor(program::processor_of(command).filter(is_carried).unwrap_or(ARCH))
}

/// The agent that `GGPROF_AGENT` names, or one that the command carries, or the one beside it,
/// where the build puts it.
fn find_for_processor(processor: &'static str) -> anyhow::Result<Agent> {
    if let Some(path) = std::env::var_os(names::AGENT) {
        let path = PathBuf::from(path);
        if !path.is_file() {
            bail!("{} names {}, which is not a file. Unset it.", names::AGENT, path.display());
        }
        let path = loadable(std::path::absolute(path)?)?;
        let processor = program::processor_of(path.as_os_str()).unwrap_or(ARCH);
        return Ok(Agent::of_glibc(processor, path));
    }
    match carried(processor, Libc::Glibc) {
        Some(glibc) => provided(glibc, carried(processor, Libc::Musl)),
        None => Ok(Agent::of_glibc(ARCH, beside_the_command()?)),
    }
}

/// What this command carries for a processor.
fn carried(processor: &str, libc: Libc) -> Option<&'static Carried> {
    CARRIED.iter().find(|agent| agent.processor() == processor && agent.libc() == libc)
}

/// As a file in the first directory that is fit for it, or else in memory.
fn provided(glibc: &Carried, musl: Option<&Carried>) -> anyhow::Result<Agent> {
    let placed = place::directories().iter().find_map(|place| place::agent(place, glibc, musl));
    match placed {
        Some(agent) => Ok(agent),
        None => memory::agent(glibc).map_err(|problem| {
            anyhow!(
                "the recording agent cannot be given to programs: {problem}. Set XDG_CACHE_HOME to \
                 a directory of yours, on a file system from which programs can be run."
            )
        }),
    }
}

fn beside_the_command() -> anyhow::Result<PathBuf> {
    let command = own_path();
    let directory = command.parent().unwrap_or(Path::new("."));
    let path = directory.join(FILE);
    match path.is_file() {
        true => loadable(path.canonicalize()?),
        false => bail!(
            "this ggprof was built without the recording agent, and there is no {FILE} beside it. \
             Install ggprof with `cargo xtask install`, or name the agent with {}.",
            names::AGENT
        ),
    }
}

/// This command's file: as the system knows it, or, without /proc, as we were called.
fn own_path() -> PathBuf {
    let called = || std::env::args_os().next().and_then(|name| program::find(&name));
    let path = std::env::current_exe().ok().or_else(called).unwrap_or_default();
    path.canonicalize().unwrap_or(path)
}

fn loadable(path: PathBuf) -> anyhow::Result<PathBuf> {
    if !is_loadable(&path) {
        bail!(
            "the recording agent is at {}, and the dynamic linker does not accept paths with a space \
             or colon. Install ggprof somewhere else.",
            path.display()
        );
    }
    Ok(path)
}

/// `LD_PRELOAD` takes a list, so a path in it can hold none of what separates the list.
fn is_loadable(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|&byte| preload::is_separator(byte))
}
