//! Limits the number of compilers that run at once to the number of processors.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use crate::tool;

/// A file to be made by a command that is told with `-o` where to put it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) result: PathBuf,
}

impl Job {
    /// Makes the file, which appears when it is whole: another test may be using an older one.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let mut fresh = self.result.clone().into_os_string();
        fresh.push(format!(".{}", std::process::id()));
        tool::output(self.command.arg("-o").arg(&fresh))?;
        std::fs::rename(fresh, self.result).map_err(|error| error.to_string())
    }
}

/// Runs all of them; those at the front begin first.
pub(crate) fn run_all(jobs: Vec<Job>) -> Result<(), String> {
    let queue = Mutex::new(jobs.into_iter());
    let worker = || -> Result<(), String> {
        loop {
            let next = queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(job) = next else { return Ok(()) };
            job.run()?;
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic inside"))
    })
}
