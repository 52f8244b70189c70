//! Executions of a graph.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphRunId(pub u32);

/// One execution of a graph: a batch of prompt tokens, or one generated token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphRun {
    /// Which scheduler ran it; runs of several schedulers can overlap.
    pub scheduler: u32,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl GraphRun {
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
