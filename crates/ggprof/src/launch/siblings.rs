//! Which file of `GGML_PROFILE` belongs to which process. One command may start several that use
//! ggml, and no launcher waits for them. The first that has something to write gets the name that
//! was asked for; the others get names with their process id, as `ggprof run` would give them.

use crate::format::Output;
use crate::output::Settled;
use ggprof_ggml::PROFILE_VARIABLE;
use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// More processes between a command and what it starts than there ever are.
const MOST_ANCESTORS: usize = 64;

/// A process that is about to end, and what it was asked to write.
pub(crate) struct Heir<'a> {
    pub(crate) pid: u32,
    pub(crate) output: &'a Output,
    /// It has written the file before.
    pub(crate) again: bool,
}

impl Heir<'_> {
    /// The name of its file. Others that settle theirs in the same directory wait until this one has
    /// its name.
    pub(crate) fn settle(&self) -> Settled {
        let own = self.output.of_one(&self.pid.to_string());
        let path = &self.output.path;
        let held = lock_of(path);
        let is_taken = match self.again {
            true => is_written_since(&own.path, self.pid),
            false => is_written_since(path, first_ancestor(self.pid, path)),
        };
        let path = if is_taken { own.path } else { path.clone() };
        Settled { path, _held: held }
    }
}

/// Held until it is dropped. Where there are no locks, two that end at the same moment share a file.
fn lock_of(path: &Path) -> Option<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(parent.unwrap_or(Path::new("."))).ok()?;
    flock(&directory, FlockOperation::LockExclusive).ok()?;
    Some(directory)
}

/// Whether a file was written while a process ran.
fn is_written_since(path: &Path, pid: u32) -> bool {
    let written = std::fs::metadata(path).and_then(|found| found.modified()).ok();
    written.zip(start_of(pid)).is_some_and(|(written, start)| written >= start)
}

/// The process that everything began with which is to write to this file: the first with this value
/// of the variable in its environment, from which its children have it.
fn first_ancestor(pid: u32, path: &Path) -> u32 {
    let variable = [PROFILE_VARIABLE.as_bytes(), b"=", path.as_os_str().as_encoded_bytes()];
    let variable = variable.concat();
    let asks = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == variable)
    };
    let parents = std::iter::successors(Some(pid), |&pid| parent_of(pid));
    parents.skip(1).take(MOST_ANCESTORS).take_while(asks).last().unwrap_or(pid)
}

fn parent_of(pid: u32) -> Option<u32> {
    stat(pid, 4)
}

/// When a process was started, rounded up to the next tick of the system's clock: what was written
/// shortly before by another command does not count.
fn start_of(pid: u32) -> Option<SystemTime> {
    let ticks: u64 = stat(pid, 22)?;
    let each =
        Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    let start = each * u32::try_from(ticks + 1).ok()?;
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    SystemTime::now().checked_sub(now.checked_sub(start)?)
}

/// A number of `/proc/PID/stat`, counted from 1 as in its description. The name of the program may
/// hold anything.
fn stat<T: std::str::FromStr>(pid: u32, number: usize) -> Option<T> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, behind_the_name) = text.rsplit_once(')')?;
    behind_the_name.split_whitespace().nth(number - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_and_a_start() {
        let pid = std::process::id();
        assert_eq!(parent_of(pid), Some(std::os::unix::process::parent_id()));
        let start = start_of(pid).expect("a start");
        let age = SystemTime::now().duration_since(start).expect("in the past");
        assert!(age < Duration::from_secs(24 * 3600), "{age:?}");
        assert_eq!(first_ancestor(pid, Path::new("no such value")), pid);
    }
}
