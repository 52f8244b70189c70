//! A carried agent in memory, for systems on which no directory will do: programs reach it through
//! this process, so it is there for as long as this process runs, and for programs of the same user
//! and the same container.

use super::{Agent, FILE};
use ggprof_agents::Agent as Carried;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

pub(super) fn agent(glibc: &Carried) -> io::Result<Agent> {
    let mut file = File::from(create()?);
    file.write_all(&glibc.unpacked()?)?;
    // Nobody changes what programs have loaded.
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    path.metadata()?;
    Ok(Agent { memory: Some(file.into()), ..Agent::of_glibc(glibc.processor(), path) })
}

/// Newer kernels must be told that the memory may hold code; older ones do not know the word.
fn create() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(FILE, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => Ok(memfd_create(FILE, flags)?),
        created => Ok(created?),
    }
}
