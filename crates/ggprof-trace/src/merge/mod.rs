//! One trace of several recordings: processes that ran at the same time, on one axis of time.
//!
//! Each process keeps its backends, schedulers, contexts and threads. What is described alike becomes
//! one, so that the same op of two processes is one op on two backends. A graph run that a server
//! computed for a client becomes a part of the client's (`exchanges.rs`).

mod answers;
mod clock_line;
mod exchanges;
mod host_clocks;
mod matching;
mod merged;
mod renumbering;
mod same_bytes;

use crate::model::Trace;
use host_clocks::{clocks, machines, rebase};
use merged::Merged;

/// Why recordings cannot be put on one axis of time. Each names its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotMerge {
    /// It does not say when it was made.
    NoTimes(usize),
    TooManyBackends(usize),
    /// It is several already, which would become one process.
    IsMerged(usize),
}

/// Puts recordings together, whose device work is charged.
pub fn merge(recordings: Vec<Trace>) -> Result<Trace, CannotMerge> {
    let mut recordings = recordings;
    if recordings.len() == 1 {
        return Ok(recordings.remove(0));
    }
    if let Some(at) = recordings.iter().position(|trace| !trace.processes.is_empty()) {
        return Err(CannotMerge::IsMerged(at));
    }
    let mut clocks = clocks(&recordings, &machines(&recordings)?, |_| true)?;
    let exchanges = exchanges::find(&recordings, &mut clocks);
    rebase(&recordings, &mut clocks)?;
    let mut merged = Merged::new(&recordings, &clocks, exchanges);
    for (at, (trace, clock)) in recordings.into_iter().zip(&clocks).enumerate() {
        merged.take(at, trace, *clock)?;
    }
    Ok(merged.finish(&clocks))
}

#[cfg(test)]
mod tests;
