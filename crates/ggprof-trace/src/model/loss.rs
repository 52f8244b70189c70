//! What is missing from a recording. Losses are data: every report shows them.

use serde::{Deserialize, Serialize};

/// A kind of loss with how often it happened and the first case in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub kind: LossKind,
    pub count: u64,
    /// The first case, for the reader of the report: where it was and what was wrong.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LossKind {
    /// The file ends before the recording does.
    Truncated,
    /// A record could not be understood and is left out.
    DamagedRecord,
    /// Text was not UTF-8 or held raw control characters; it is shown with replacements.
    RepairedText,
    /// The file holds something after the recording, or a header that makes no sense.
    DamagedHeader,
    /// Work of a device that gave no usable time.
    Untimed,
    /// Nodes that were computed where no hook sees it.
    Unseen,
    /// The recorder met more than it could take.
    Dropped(Dropped),
    /// Recording ended before the program did.
    Stopped(Stopped),
}

/// What the recorder could not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dropped {
    /// Records for which the file had no room.
    Records,
    /// Graph runs, their ends or their ops, because too many were computed at once.
    GraphRuns,
    /// Shares of threads in ops, because a graph was too large.
    ThreadShares,
    /// Threads, because there were too many, or too little memory.
    Threads,
    /// Nodes of a graph that was too large.
    Nodes,
    /// Ops that belong to no graph run the recorder saw.
    StrayOps,
    /// Observations, because of a fault of the recorder.
    Faults,
    /// Backends, because there were too many.
    Backends,
    /// Descriptions of nodes, because there were too many different ones.
    Descriptions,
    /// Work of a device, because the vendor's tracing library had no room for it.
    DeviceRecords,
    /// Children that the program forked and that could not be followed.
    Children,
    /// Ops that were counted, without which nodes they were.
    UnclearOps,
}

impl Dropped {
    /// In the order of the recording file's counters.
    pub const ALL: [Self; 12] = [
        Self::Records,
        Self::GraphRuns,
        Self::ThreadShares,
        Self::Threads,
        Self::Nodes,
        Self::StrayOps,
        Self::Faults,
        Self::Backends,
        Self::Descriptions,
        Self::DeviceRecords,
        Self::Children,
        Self::UnclearOps,
    ];
}

/// Why recording ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stopped {
    /// The disk was full, or a limit was reached.
    NoSpace,
    /// The file could not be extended any more.
    FileGone,
    /// The recorder met faults of its own and switched itself off.
    Faults,
    /// The program had no memory left.
    NoMemory,
}
