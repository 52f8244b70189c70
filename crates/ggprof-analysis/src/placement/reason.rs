//! Why a node was computed where it was, by what ggml's scheduler decides by. It gives a node to
//! the backend that has its weight, unless a device takes the node over; what has no weight follows
//! its neighbours; and what a device does not support stays with the processor.

use crate::layers::Module;
use crate::placement::{has_device, is_host};
use ggprof_ggml::is_of_cache;
use ggprof_trace::{BackendIndex, BufferUsage, MemoryIndex, MemoryKind, NodeId, Placement, Trace};

/// What decided where a node was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// No device supports the op with these types and shapes.
    Unsupported,
    /// The tokens are looked up where the program has them.
    GraphInput,
    /// Its weight is in this memory of the host's.
    WeightOnHost { memory: MemoryIndex, offload: Offload },
    /// It reads or writes a cache that is in this memory of the host's.
    CacheOnHost { memory: MemoryIndex },
    /// Nothing of its own: it stays with its neighbours.
    Neighbours,
    /// What devices say of it was not recorded.
    Unknown,
    /// There is nothing but the processor.
    OnlyBackend,
    /// It is not the processor's.
    OnDevice,
}

/// Whether a device would take over a node whose weight is in the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Offload {
    /// No: the batch is too small to be worth copying the weight.
    Declined,
    /// Yes, but the program has switched that off.
    SwitchedOff,
    /// It could not be asked.
    Unknown,
}

impl Reason {
    /// Which of several is to blame for what they have in common: the one with the lowest number.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Unsupported => 0,
            Self::WeightOnHost { .. } => 1,
            Self::CacheOnHost { .. } => 2,
            Self::GraphInput => 3,
            Self::Neighbours => 4,
            Self::Unknown | Self::OnlyBackend | Self::OnDevice => 5,
        }
    }
}

pub fn reason_of(trace: &Trace, backend: BackendIndex, node: NodeId, module: Module) -> Reason {
    if !is_host(trace, backend) {
        return Reason::OnDevice;
    }
    if !has_device(trace) {
        return Reason::OnlyBackend;
    }
    let Some(placement) = trace.placement(node, backend) else { return Reason::Unknown };
    let weight = find(trace, placement, |kind| kind.usage == BufferUsage::Weights);
    if module == Module::Input && weight.is_some() {
        return Reason::GraphInput;
    }
    let answers = &placement.answers;
    if !answers.is_empty() && answers.iter().all(|answer| !answer.supports) {
        return Reason::Unsupported;
    }
    if let Some(memory) = weight {
        return Reason::WeightOnHost { memory, offload: offload(placement) };
    }
    if let Some(memory) = cache(trace, node, placement) {
        return Reason::CacheOnHost { memory };
    }
    if answers.is_empty() { Reason::Unknown } else { Reason::Neighbours }
}

/// The first of the sources' kinds of memory that is the host's and wanted.
fn find(
    trace: &Trace,
    placement: &Placement,
    is_wanted: impl Fn(&MemoryKind) -> bool,
) -> Option<MemoryIndex> {
    placement.sources.iter().copied().flatten().find(|&memory| {
        let kind = trace.memory_kind(memory);
        kind.is_on_host && is_wanted(kind)
    })
}

/// The host's memory with the cache that a node reads or writes.
fn cache(trace: &Trace, node: NodeId, placement: &Placement) -> Option<MemoryIndex> {
    let is_cache = |memory: MemoryIndex| {
        let kind = trace.memory_kind(memory);
        kind.is_on_host && matches!(kind.usage, BufferUsage::Any | BufferUsage::Unknown)
    };
    let named = trace.nodes.source_names(node).iter().map(|&name| trace.text(name));
    let sources = named.zip(placement.sources.iter().copied());
    let reads = sources.filter(|(name, _)| is_of_cache(name)).find_map(|(_, memory)| memory);
    let writes = placement.output.filter(|_| trace.tensor_name(node).is_some_and(is_of_cache));
    reads.or(writes).filter(|&memory| is_cache(memory))
}

fn offload(placement: &Placement) -> Offload {
    let supporting = placement.answers.iter().filter(|answer| answer.supports);
    let mut offload = Offload::Unknown;
    for answer in supporting {
        match answer.offloads {
            Some(true) => return Offload::SwitchedOff,
            Some(false) => offload = Offload::Declined,
            None => {}
        }
    }
    offload
}
