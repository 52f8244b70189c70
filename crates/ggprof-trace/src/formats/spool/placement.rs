//! Where tensors are, and what devices say of the nodes that the processor computes.

use super::backends::BackendMap;
use super::nodes::Nodes;
use super::tables::Tables;
use crate::model::{
    Answer, BackendIndex, CopyEnds, EventId, MemoryIndex, MemoryKind, NodeId, Placement, Trace,
};
use ggprof_spool::layout::{self, CopyEvent};
use hashbrown::HashMap;

/// The trace's kind of memory for each of the file.
#[derive(Debug, Default)]
pub(super) struct Memories(HashMap<u32, MemoryIndex>);

impl Memories {
    pub(super) fn take(tables: &Tables, trace: &mut Trace) -> Self {
        let mut memories = Self::default();
        for record in tables.memory_kinds.values() {
            let kind = MemoryKind {
                type_name: tables.text(record.type_name).to_owned(),
                device: tables.text(record.device).to_owned(),
                usage: super::buffers::usage(record.usage),
                is_on_host: record.flags & layout::MEMORY_ON_HOST != 0,
            };
            let known = trace.memory_kinds.iter().position(|known| *known == kind);
            let place = known.unwrap_or(trace.memory_kinds.len());
            let Ok(place) = u16::try_from(place) else { break };
            if known.is_none() {
                trace.memory_kinds.push(kind);
            }
            memories.0.insert(record.memory, MemoryIndex(place));
        }
        memories
    }

    fn get(&self, number: u32) -> Option<MemoryIndex> {
        self.0.get(&number).copied()
    }

    /// What is known of a copy beside its event, if anything is.
    pub(super) fn ends(&self, copy: &CopyEvent, event: EventId) -> Option<CopyEnds> {
        let is_partial = copy.flags & layout::COPY_PARTIAL != 0;
        let ends = CopyEnds {
            event,
            source: self.get(copy.source_memory.into()),
            target: self.get(copy.target_memory.into()),
            is_input: copy.flags & layout::COPY_INPUT != 0,
            offset: is_partial.then_some(copy.offset),
        };
        let is_known = ends.source.is_some() || ends.target.is_some();
        (is_known || ends.is_input || is_partial).then_some(ends)
    }
}

/// For every node that the processor computed, by itself or fused with others.
pub(super) fn take(
    tables: &Tables,
    backends: &BackendMap,
    memories: &Memories,
    nodes: &Nodes,
    trace: &mut Trace,
) {
    let mut by_node: HashMap<u32, Vec<&super::tables::Placed>> = HashMap::new();
    for placed in tables.placements.values() {
        by_node.entry(placed.record.node).or_default().push(placed);
    }
    if by_node.is_empty() {
        return;
    }
    let mut found: HashMap<(NodeId, BackendIndex), Placement> = HashMap::new();
    for (node, numbers) in nodes.members(tables) {
        let placed = numbers.iter().filter_map(|number| by_node.get(number)).flatten();
        let mut own: HashMap<BackendIndex, Placement> = HashMap::new();
        for placed in placed {
            let Some(&backend) = backends.get(&placed.record.backend) else { continue };
            let one = placement(placed, (node, backend), backends, memories);
            match own.get_mut(&backend) {
                Some(first) => join(first, one),
                None => _ = own.insert(backend, one),
            }
        }
        for (backend, placement) in own {
            found.entry((node, backend)).or_insert(placement);
        }
    }
    trace.placements = found.into_values().collect();
    trace.placements.sort_by_key(|placement| (placement.node, placement.backend));
}

fn placement(
    placed: &super::tables::Placed,
    (node, backend): (NodeId, BackendIndex),
    backends: &BackendMap,
    memories: &Memories,
) -> Placement {
    let answer = |answer: &layout::Answer| {
        let can_tell = answer.says & layout::ANSWER_OFFLOAD_UNKNOWN == 0;
        Some(Answer {
            backend: *backends.get(&answer.backend)?,
            supports: answer.says & layout::ANSWER_SUPPORTS != 0,
            offloads: can_tell.then_some(answer.says & layout::ANSWER_OFFLOADS != 0),
        })
    };
    Placement {
        node,
        backend,
        output: memories.get(placed.record.memory),
        sources: placed.sources.iter().map(|&memory| memories.get(memory)).collect(),
        answers: placed.answers.iter().filter_map(answer).collect(),
    }
}

/// Nodes that ran as one: a device could have computed them only if it supports them all.
fn join(first: &mut Placement, next: Placement) {
    first.sources.extend(next.sources);
    first.output = next.output.or(first.output);
    for answer in &mut first.answers {
        let other = next.answers.iter().find(|other| other.backend == answer.backend);
        answer.supports &= other.is_none_or(|other| other.supports);
    }
}
