//! The processes of a trace that was made of several recordings.

use super::{DayClock, Gap};
use serde::{Deserialize, Serialize};

/// A place among the trace's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIndex(pub u16);

/// A process that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The name of its program.
    pub command: String,
    pub pid: u32,
    /// The machine's processor.
    pub cpu: String,
    /// Processes with the same number ran on one machine since one start of it: their times are exact
    /// beside each other, and devices of the same name are the same.
    #[serde(default)]
    pub machine: u16,
    pub clock: ProcessClock,
    /// How well its machine and that of the rest know the time of day, both together.
    #[serde(default, skip_serializing_if = "DayClock::is_not_asked")]
    pub day_clock: DayClock,
    /// From its first sign of life to its last; `None` where that is not known. Outside of it, it is
    /// neither idle nor missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there_ns: Option<(u64, u64)>,
    /// When it was not recorded, by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// How a process's times came to those of the first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessClock {
    /// They share the machine and its clock since it was started: exact.
    #[default]
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
