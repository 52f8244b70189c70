//! What a device did for an event, and what the host did meanwhile apart from ops.

use super::event::EventId;
use super::graph_run::GraphRunId;
use super::strings::StringId;
use serde::{Deserialize, Serialize};

/// One kernel, copy or fill, by the device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceWork {
    /// The op or copy it is part of.
    pub event: EventId,
    pub kind: WorkKind,
    /// The kernel's name, or what the work is.
    pub name: StringId,
    /// Queue or stream of the device.
    pub stream: u32,
    pub start_ns: u64,
    pub duration_ns: u64,
    /// The part of its time that is charged to it: overlapping time is charged once. All of it
    /// until that is worked out, for which [`WorkOrigin`] is kept.
    pub charged_ns: u64,
    pub bytes: u64,
    /// Nothing kept it apart from other work: its own time cannot be told exactly.
    pub concurrent: bool,
    /// The kernel's first use, which the driver may have compiled or loaded meanwhile.
    pub first_use: bool,
}

/// What a recording says of a piece of work that decides how it is charged. Numbers are those of
/// the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkOrigin {
    /// The backend that had it done, before those of one device became one.
    pub backend: u32,
    pub split: u32,
    /// Where its node stands in the split; `None` if it belongs to no node.
    pub position: Option<u32>,
    /// Clock of the device, and a number on the work's stream: nothing kept work of one group
    /// apart. `None` if it ran alone.
    pub group: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkKind {
    Kernel,
    Copy,
    Fill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskKind {
    PipelineCompile,
    /// The program waits for a graph run's results.
    Wait,
}

impl TaskKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::PipelineCompile => "pipeline compile",
            Self::Wait => "wait for results",
        }
    }
}

/// What a thread of the host does for a device's work: compiling a pipeline, waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostTask {
    pub what: TaskKind,
    pub name: StringId,
    pub thread: u32,
    pub graph_run: Option<GraphRunId>,
    pub start_ns: u64,
    pub duration_ns: u64,
}
