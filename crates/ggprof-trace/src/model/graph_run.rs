//! Executions of a graph.

use super::{BatchId, ProcessIndex};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GraphRunId(pub u32);

/// One execution of a graph: a batch of prompt tokens, or one generated token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphRun {
    /// Which scheduler ran it; runs of several schedulers can overlap.
    pub scheduler: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Which graph run of the program it is, counted from 1, those that were not recorded included.
    pub number: Option<u64>,
    /// The call of libllama that it was part of.
    pub batch: Option<BatchId>,
    /// Who computed it, in a trace that was made of several recordings.
    pub process: Option<ProcessIndex>,
}

/// Time of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The end of the graph run before it; 0 if there is none.
    pub start_ns: u64,
    /// The start of the graph run after it; the end of all time if there is none.
    pub end_ns: u64,
    /// Graph runs that are missing, as far as that is known.
    pub runs: u64,
}

impl GraphRun {
    /// One of which nothing else is known.
    pub fn new(scheduler: u32, start_ns: u64, end_ns: u64) -> Self {
        Self { scheduler, start_ns, end_ns, number: None, batch: None, process: None }
    }

    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
