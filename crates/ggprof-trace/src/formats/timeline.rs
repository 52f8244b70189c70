//! What analysis adds to the events of a recording when it is written as a timeline.

use crate::model::EventId;

#[derive(Debug, Default)]
pub struct Annotations {
    pub phases: Vec<Slice>,
    /// Copies and the ops that consume them.
    pub links: Vec<(EventId, EventId)>,
    /// What holds until it changes, such as clocks and memory.
    pub counters: Vec<Counter>,
    /// What is missing from the recording, as sentences.
    pub losses: Vec<String>,
}

/// A named span of time.
#[derive(Debug)]
pub struct Slice {
    pub name: String,
    pub start_ns: u64,
    pub end_ns: u64,
}

#[derive(Debug)]
pub struct Counter {
    pub name: String,
    /// Of the machine with this number.
    pub machine: u16,
    pub unit: &'static str,
    /// When it became what.
    pub steps: Vec<(u64, f64)>,
}
