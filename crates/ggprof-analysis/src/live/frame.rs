//! What a look at a running program shows.

use crate::step::StepKind;
use ggprof_trace::Quantity;
use ggprof_trace::formats::spool::Standing;
use serde::{Deserialize, Serialize};

/// What a program does: the time between two looks, about a second, unless something else is said. The
/// first one is of the last minute, or of as much of it as there is, and its ops of all that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub standing: Standing,
    pub now_ns: u64,
    pub interval_ns: u64,
    /// Whether batches of libllama are seen; otherwise tokens are not known.
    pub knows_tokens: bool,
    /// Tokens a second of the steps that ended; where one took longer than the interval, over that.
    pub prompt_speed: f64,
    pub generation_speed: f64,
    pub runs: u64,
    /// The longest of them, or of what is under way.
    pub longest_run: Option<LiveWait>,
    pub requests: u64,
    /// Mean over the steps that ended.
    pub batch_tokens: Option<f64>,
    /// Tokens of the oldest batch that is being computed, and for how long.
    pub under_way: Option<(u64, u64)>,
    /// Tokens of the longest sequence under way.
    pub depth: Option<u64>,
    /// Median and 95th percentile of the last minute.
    pub first_token_ns: Option<(u64, u64)>,
    pub between_tokens_ns: Option<(u64, u64)>,
    /// The longest time that a sequence waited for its next token, or has been waiting for one that is
    /// being computed; where sequences are not known, that lay between two graph runs, or since the last.
    pub longest_gap: LiveWait,
    pub backends: Vec<BackendNow>,
    /// Longest first.
    pub ops: Vec<OpNow>,
    pub copied_bytes: u64,
    /// What the machine's sensors said last; whoever reads them adds it.
    pub readings: Vec<Reading>,
}

/// How long something took, and from when on; the longest is the greatest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveWait {
    pub ns: u64,
    pub start_ns: u64,
}

/// What a sensor of the machine said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub quantity: Quantity,
    /// The system's number of the device.
    pub device: u32,
    pub name: String,
    pub value: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BackendNow {
    pub name: String,
    /// Shares of the interval; not known where only the starts of work are.
    pub busy: Option<f64>,
    pub copying: f64,
    pub idle: Idle,
}

/// What went on while a backend neither computed nor copied, in shares of the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Idle {
    /// Another backend worked.
    pub elsewhere: f64,
    /// None did, in a graph run or a call of libllama: graphs are built, scheduled and launched.
    pub between_ops: f64,
    /// The program did something else, or nothing.
    pub outside: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OpNow {
    pub name: String,
    pub backend: String,
    pub kind: StepKind,
    pub count: u64,
    pub total_ns: u64,
    /// Bytes that were read and written, as far as that follows from the shapes.
    pub bytes: Option<u64>,
}

impl OpNow {
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        self.bytes.filter(|_| self.total_ns > 0).map(|bytes| bytes as f64 / self.total_ns as f64)
    }
}
