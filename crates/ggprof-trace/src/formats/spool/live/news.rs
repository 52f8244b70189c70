//! What a look at a growing recording finds.

use super::ops::LiveOps;
use crate::model::{BackendIndex, Batch, ContextChange, Dropped, Stopped};

/// What happened between two looks, as far as it is over or its begin is known. Times are those of
/// `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Default)]
pub struct News {
    /// Batches that were handed over, by start, without their ends.
    pub begun: Vec<Batch>,
    /// Calls whose results are there, and since when.
    pub ended: Vec<(u32, u64)>,
    /// By time.
    pub changes: Vec<ContextChange>,
    /// Start and end of each graph run that is over; by start.
    pub runs: Vec<(u64, u64)>,
    /// When the oldest graph run began that is not over.
    pub run_since_ns: Option<u64>,
    pub ops: LiveOps,
    /// When backends computed.
    pub busy: Vec<(BackendIndex, u64, u64)>,
    /// Backends that are computing, and since when.
    pub computing: Vec<(BackendIndex, u64)>,
    pub copies: Vec<LiveCopy>,
    /// The numbers of nodes are others than before.
    pub is_renumbered: bool,
    pub standing: Standing,
}

#[derive(Debug, Clone, Copy)]
pub struct LiveCopy {
    pub backend: BackendIndex,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    /// The times are those of the copy, not of the call that started it.
    pub is_timed: bool,
}

/// How the recording stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    pub program: String,
    pub pid: u32,
    pub is_recording: bool,
    /// The program said that it ends. One that is killed does not.
    pub has_ended: bool,
    /// The recorder gave up, while the program may go on.
    pub stopped: Option<Stopped>,
    /// Graph runs since its begin.
    pub graph_runs: u64,
    /// What the recorder could not take, since its begin.
    pub dropped: Vec<(Dropped, u64)>,
    /// Blocks that were used again before they could be looked at.
    pub missed_blocks: u64,
    /// Older events were there that were not looked at.
    pub is_partial: bool,
    /// Positions were seen in graphs, and not the calls that they came with: of tokens, or of parts of an
    /// image.
    pub has_positions: bool,
}

impl Standing {
    /// Whether what the program does from now on will be seen.
    pub fn is_going_on(&self) -> bool {
        self.is_recording && !self.has_ended && self.stopped.is_none()
    }
}
