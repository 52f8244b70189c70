//! Running a program with the agent preloaded, each time with a fresh directory
//! for its recordings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use ggprof_spool::names;

use crate::built;
use crate::recording::Recording;

/// What whoever runs the tests may have set, and each test sets itself.
const UNSET: [&str; 6] =
    [names::THREADS, names::SERIALIZE, names::MAX_BYTES, names::CUDA, names::BUDGET, names::CUPTI];

/// A command that will be recorded.
#[derive(Debug)]
pub struct UnderAgent {
    pub command: Command,
    directory: PathBuf,
}

impl UnderAgent {
    pub fn new(program: impl AsRef<OsStr>) -> UnderAgent {
        UnderAgent::of(Command::new(program))
    }

    /// A command that is ready to run.
    pub fn of(command: Command) -> UnderAgent {
        UnderAgent::with(command, &built::agent())
    }

    /// The same with another agent.
    pub(crate) fn with(mut command: Command, agent: &Path) -> UnderAgent {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ggprof-e2e-{}-{number}", std::process::id());
        let directory = built::target_directory().join("recordings").join(name);
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        let directory = directory.canonicalize().expect("it was just made");
        command.env("LD_PRELOAD", agent);
        command.env(names::SPOOL, directory.join("%p.spool"));
        for name in UNSET {
            command.env_remove(name);
        }
        UnderAgent { command, directory }
    }

    /// The workload on these libraries.
    pub fn workload(libraries: &Path, arguments: &[&str]) -> UnderAgent {
        let mut workload = UnderAgent::new(built::workload());
        workload.command.arg(libraries).args(arguments);
        workload
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn run(&mut self) -> Output {
        self.command.output().expect("the program starts")
    }

    /// Runs to a successful end.
    pub fn run_well(&mut self) -> Output {
        let output = self.run();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {:?}\n{errors}", self.command, output.status);
        output
    }

    /// The files of all recordings made, in the order of their names.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).expect("the directory is ours");
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.to_string_lossy().contains(".spool"));
        files.sort();
        files
    }

    /// All recordings made.
    pub fn recordings(&self) -> Vec<Recording> {
        self.files().iter().map(|file| Recording::read(file)).collect()
    }

    /// The one recording made.
    pub fn recording(&self) -> Recording {
        let mut recordings = self.recordings();
        assert_eq!(recordings.len(), 1, "recordings in {}", self.directory.display());
        recordings.remove(0)
    }
}

impl Drop for UnderAgent {
    fn drop(&mut self) {
        // Recordings of a failed test are kept to be looked at.
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}
