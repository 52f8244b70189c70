//! Where a recording comes from.

use serde::{Deserialize, Serialize};

/// What the recorder noted about the program and the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program's file name, without its arguments.
    pub command: String,
    pub pid: u32,
    pub cpu: String,
    /// The operating system and its kernel; empty where nobody noted them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// Drivers of devices, with their versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<String>,
    /// Nanoseconds since 1970 when recording began.
    pub recorded_at_unix_ns: u64,
    /// Moments of this recording's clock, and nanoseconds since 1970 at the same time; by time. A
    /// new one wherever the system's clock was set.
    #[serde(default)]
    pub clock_anchors: Vec<(u64, u64)>,
    /// How far that time of day can be off.
    #[serde(default, skip_serializing_if = "DayClock::is_not_asked")]
    pub day_clock: DayClock,
    /// How far times can be off on the common clock; `None` where it cannot be told.
    pub clock_error_ns: Option<u64>,
    /// The same of the devices' clocks, the worst of them; `None` without any.
    #[serde(default)]
    pub device_clock_error_ns: Option<u64>,
    /// The copies of ggml in the program.
    #[serde(default)]
    pub ggml: Vec<Ggml>,
    /// The program ran already when ggprof came: what it had made before is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
    /// The program was ended from outside, or by itself without a normal exit.
    pub cut_short: bool,
    /// Graph runs that were being computed then; nothing of them is counted.
    pub unfinished_runs: u64,
    #[serde(default)]
    pub extent: Extent,
    /// Of how many recorded graph runs the trace has the newest, where the size of the
    /// recording was limited and older ones made room for them.
    #[serde(default)]
    pub newest_of: Option<u64>,
}

/// How well a machine knows the time of day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DayClock {
    /// Nobody asked it.
    #[default]
    NotAsked,
    /// Nobody sets it right, as the system says.
    Free,
    /// Within so many nanoseconds, as the system says.
    Within(u64),
}

impl DayClock {
    pub(super) fn is_not_asked(&self) -> bool {
        *self == Self::NotAsked
    }

    /// How far two can be apart.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Within(one), Self::Within(other)) => Self::Within(one.saturating_add(other)),
            (Self::Free, _) | (_, Self::Free) => Self::Free,
            _ => Self::NotAsked,
        }
    }
}

/// How much of the program's run was to be recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// All, or from some moment on.
    #[default]
    ToTheEnd,
    /// It was stopped, or its window ended, before the program did.
    Stopped,
    /// The program was still running when this was taken.
    Snapshot,
    /// The program ended before the window to record began, or before anybody asked for it.
    NotBegun,
}

/// A copy of ggml, as it names itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ggml {
    /// The file of its base library.
    pub library: String,
    /// Empty in versions that do not say.
    pub version: String,
    pub commit: String,
    /// The file of the libllama that came with it; empty where there is none, or it is linked in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub llama: String,
    /// The files of its backends for processors, which come in variants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<String>,
    /// Where that file was; empty where it is not known. It stays out of other formats, because a
    /// path may name a person.
    #[serde(skip)]
    pub path: String,
}
