//! What rules find, with the evidence.

use super::copied::CopyRow;
use crate::budget::{Direction, Part};
use crate::placement::Reason;
use ggprof_trace::{BackendIndex, StringId};

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// R1: ops on the host beside a device that computes most.
    HostOps {
        device: BackendIndex,
        which: WhichHostOps,
        /// The longest first.
        ops: Vec<HostOp>,
        /// Copies and waits of the scheduler that these ops cause.
        around_ns: u64,
        /// What the device would need for the same.
        on_device_ns: Option<u64>,
    },
    /// R2
    ManySplits { per_run: f64, devices: usize },
    /// R3
    ExposedCopies { direction: Direction, copies: Vec<CopyRow> },
    /// R4
    SlowCopies { copies: Vec<CopyRow>, gb_per_s: f64, best_gb_per_s: f64, best: RateFrom },
    /// R5
    CopiedWeights { copies: Vec<CopyRow>, bytes_per_run: u64, gb_per_s: Option<f64> },
    /// R6
    Program { per_token_ns: u64, longest_ns: u64, is_guess: bool },
    /// R7
    Barriers { threads: u32, between_ns: u64, in_ops_ns: u64 },
    /// R8
    UnequalThreads { threads: u32, worst: StringId, worst_share: f64, others: Option<f64> },
    /// R9: more threads than processors, or than the memory can feed.
    TooManyThreads { threads: u32, processors: Option<u32>, knee: Option<u32> },
    /// R11
    SmallKernels { backend: BackendIndex, kernels_per_run: u64, kernel_ns: u64, gap_ns: u64 },
    /// R12
    GraphsOff { backend: BackendIndex, kernels_per_run: u64, gap_ns: u64 },
    /// R13
    PromptAgain { requests: u64, tokens: u64, of_tokens: u64 },
    /// R14
    Depth {
        from: DepthPoint,
        to: DepthPoint,
        ns_per_1000: f64,
        is_flash: bool,
        /// Where the time grows at once: the shallower and the deeper point.
        step: Option<(DepthPoint, DepthPoint)>,
    },
    /// R15
    Draft { draft_ns_per_token: u64, target_step_ns: u64, tokens_per_step: f64 },
    /// R16
    SlowClock { shown: ClockShown },
    /// R17
    FirstUse { pipelines: u64, backend: Option<BackendIndex>, longest: Option<(StringId, u64)> },
    /// R18
    Bubbles { devices: Vec<BusyDevice> },
    /// R19
    SmallBatches { tokens_per_run: u64, runs: u64, bytes_per_run: u64, gb_per_s: f64 },
    /// R20
    RoundTrips {
        servers: usize,
        steps_per_run: f64,
        /// 0 where sockets were not seen, as with the bytes.
        round_trips_per_run: f64,
        bytes_per_run: u64,
        wire_ns_per_step: u64,
    },
    /// R21
    GraphSentAgain { bytes_per_step: u64, steps_per_run: f64 },
    /// R22: the client's backends that stand for the slowest and the best server, and what a layer
    /// takes there.
    SlowServer {
        server: BackendIndex,
        layer_ns: u64,
        layers: u64,
        best: BackendIndex,
        best_layer_ns: u64,
    },
}

/// Which ops are on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichHostOps {
    /// Whole layers.
    Layers { first: u32, last: u32, count: u32, of: u32 },
    /// The experts of layers whose other parts are on the device.
    Experts { layers: u32, of: u32 },
    /// What comes after the last layer.
    Output,
    /// An op of layers that the device computes otherwise.
    Op { layers: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOp {
    pub op: StringId,
    pub part: Part,
    /// A tensor of it, and the shape and type of what it reads.
    pub example: ggprof_trace::EventId,
    pub count: u64,
    pub ns: u64,
    pub reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateFrom {
    /// What was measured of this machine.
    Peaks,
    /// The best of the recording.
    BestSeen,
}

/// How fast a phase reads, and how fast its device could.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    pub budget: usize,
    pub backend: BackendIndex,
    /// Bytes that ops moved, over the phase's wall time.
    pub gb_per_s: f64,
    pub roof_gb_per_s: Option<f64>,
    /// The best rate of one op with large weights.
    pub best_seen: Option<f64>,
}

impl Rate {
    /// A fraction of one.
    pub fn of_roof(&self) -> Option<f64> {
        self.roof_gb_per_s.filter(|&roof| roof > 0.0).map(|roof| self.gb_per_s / roof)
    }
}

/// The time of a token at a number of cells of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthPoint {
    pub cells: u64,
    /// Of attention, for a token.
    pub ns: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClockShown {
    pub device: String,
    pub median_hz: u64,
    pub highest_hz: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyDevice {
    pub backend: BackendIndex,
    /// Of the phase's wall time.
    pub share: f64,
}
