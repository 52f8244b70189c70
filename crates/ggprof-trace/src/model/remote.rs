//! Graphs that one process left to another.

use super::{BackendIndex, GraphRunId, ProcessIndex};
use serde::{Deserialize, Serialize};

/// A call to compute a graph that may have its other half in another process: on a backend that
/// leaves the work to a server, or by a program that computes what it is told to, without a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphCall {
    pub graph_run: GraphRunId,
    /// Its place among the splits of the run.
    pub split: i32,
    pub backend: BackendIndex,
    pub start_ns: u64,
    pub end_ns: u64,
    /// What is computed: ops, names and shapes of all nodes, as one number that is the same in all
    /// processes.
    pub content: u64,
}

/// What two recordings of a client and its server have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteLink {
    pub client: ProcessIndex,
    pub server: ProcessIndex,
    /// What the client calls the server.
    pub endpoint: String,
    /// Graphs that the client left to this endpoint, those that the server computed for anybody, and
    /// those that are the same.
    pub calls: u64,
    pub runs: u64,
    pub matched: u64,
    /// Moments of these that cannot be in another order, and those that are.
    pub bounds: u64,
    pub violations: u64,
}

/// A split of one process that a server computed, as both recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRun {
    /// The graph run of the client that it is part of.
    pub graph_run: GraphRunId,
    pub split: i32,
    /// The client's backend, which stands for the server.
    pub backend: BackendIndex,
    pub server: ProcessIndex,
    /// The client's call, which may return before anything was computed.
    pub called_ns: (u64, u64),
    /// The server's computing, by the client's clock.
    pub computed_ns: (u64, u64),
    /// When the client began to wait for a result that the server cannot give before it has computed
    /// this, and when it had it; `None` where that was not seen.
    pub waited_ns: Option<(u64, u64)>,
}

/// Bytes that the program sent to another machine, or received from it, in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Whose it is, where the trace was made of several recordings.
    pub process: Option<ProcessIndex>,
    /// The same number at both ends.
    pub connection: u64,
    pub is_received: bool,
    /// The connection was seen from its beginning.
    pub is_whole: bool,
    /// Of this end, and of the other one.
    pub port: u16,
    pub other_port: u16,
    /// How many went the same way before.
    pub offset: u64,
    pub bytes: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Transfer {
    /// Whether the other end is a server, by what the program calls the server.
    pub fn is_with(&self, endpoint: &str) -> bool {
        let port = endpoint.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port == Some(self.other_port)
    }
}
