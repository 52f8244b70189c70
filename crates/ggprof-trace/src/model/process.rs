//! The processes of a trace that was made of several recordings.

use serde::{Deserialize, Serialize};

/// A place among the trace's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIndex(pub u16);

/// A process that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The name of its program.
    pub command: String,
    pub pid: u32,
    /// The machine's processor.
    pub cpu: String,
    pub clock: ProcessClock,
}

/// How a process's times came to those of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessClock {
    /// They share the machine and its clock since it was started: exact.
    Shared,
    /// By the times of day that both machines believed in.
    TimeOfDay,
    /// By what it computed for another process, which cannot have been before it was asked, or after
    /// the other had the results.
    Exchanges {
        /// What has to be added to its times at the first exchange, and how much more of it there is
        /// with each second, in nanoseconds.
        ahead_ns: i64,
        drift_ppb: i64,
        /// How far its times can be off then.
        error_ns: u64,
    },
}

impl Process {
    /// What people call it.
    pub fn label(&self) -> String {
        format!("{} {}", self.command, self.pid)
    }
}
