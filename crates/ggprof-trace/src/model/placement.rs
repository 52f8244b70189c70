//! Where tensors are, and why a node was computed where it was.

use super::backend::BackendIndex;
use super::buffer::BufferUsage;
use super::event::EventId;
use super::node::NodeId;
use serde::{Deserialize, Serialize};

/// Position in [`Trace::memory_kinds`](crate::Trace::memory_kinds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemoryIndex(pub u16);

/// A kind of memory that tensors are in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryKind {
    /// As ggml calls it: `CPU_Mapped`, `CUDA_Host`, `Vulkan0`.
    pub type_name: String,
    /// The device that it belongs to, which may have pinned memory of the host; empty if it names
    /// none.
    pub device: String,
    pub usage: BufferUsage,
    pub is_on_host: bool,
}

/// Where the tensors of a node are that the processor computed, and what devices said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub node: NodeId,
    pub backend: BackendIndex,
    pub output: Option<MemoryIndex>,
    /// In the order of the node's sources, those of fused nodes behind.
    pub sources: Vec<Option<MemoryIndex>>,
    /// One for each device of the scheduler that could be asked.
    pub answers: Vec<Answer>,
}

/// What a device says of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub backend: BackendIndex,
    pub supports: bool,
    /// Whether it would take the node over although a weight is in the host's memory; `None` where
    /// that could not be asked.
    pub offloads: Option<bool>,
}

/// What is known of a copy beside its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyEnds {
    pub event: EventId,
    pub source: Option<MemoryIndex>,
    pub target: Option<MemoryIndex>,
    /// The program fills the tensor before it computes the graph.
    pub is_input: bool,
    /// Where in the tensor it begins, if a part of the tensor was copied.
    pub offset: Option<u64>,
}
