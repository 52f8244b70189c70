//! Memory, placement and experts in ggprof's JSON files. Nodes have no numbers there: the first
//! record of a node on a backend stands for it.

use crate::model::{
    Answer, BackendIndex, CopyEnds, EventId, GraphRunId, LossKind, MemoryIndex, MemoryKind, NodeId,
    Placement, Trace,
};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PlacementEntries {
    /// What the numbers of memory below count.
    memory_kinds: Vec<MemoryKind>,
    /// `[record, memory of the output, [memory of each source], [[backend, supports, offloads]]]`.
    placements: Vec<PlacementEntry>,
    /// `[record, memory of the source, memory of the target, is an input, offset]`.
    copy_ends: Vec<EndsEntry>,
    /// `[record, graph run, experts, tokens, tokens read, [[expert, uses]]]`.
    expert_uses: Vec<ExpertEntry>,
}

type PlacementEntry = (u32, Option<u16>, Vec<Option<u16>>, Vec<(u16, bool, Option<bool>)>);
type EndsEntry = (u32, Option<u16>, Option<u16>, bool, Option<u64>);
type ExpertEntry = (u32, u32, u32, u32, u32, Vec<(u16, u16)>);

impl PlacementEntries {
    pub(super) fn is_empty(&self) -> bool {
        self.memory_kinds.is_empty() && self.copy_ends.is_empty() && self.expert_uses.is_empty()
    }

    pub(super) fn of(trace: &Trace) -> Self {
        let (mut on_backend, mut anywhere) = (HashMap::new(), HashMap::<NodeId, u32>::new());
        if !trace.placements.is_empty() || !trace.expert_uses.is_empty() {
            for event in trace.events.iter() {
                on_backend.entry((event.node, event.backend)).or_insert(event.id.0);
                anywhere.entry(event.node).or_insert(event.id.0);
            }
        }
        let number = |memory: Option<MemoryIndex>| memory.map(|memory| memory.0);
        let placement = |it: &Placement| {
            let record = *on_backend.get(&(it.node, it.backend))?;
            let sources = it.sources.iter().copied().map(number).collect();
            let answers = it.answers.iter();
            let answers =
                answers.map(|answer| (answer.backend.0, answer.supports, answer.offloads));
            Some((record, number(it.output), sources, answers.collect()))
        };
        let ends = |it: &CopyEnds| {
            (it.event.0, number(it.source), number(it.target), it.is_input, it.offset)
        };
        let uses = trace.expert_uses.iter().filter_map(|(of, counts)| {
            let record = *anywhere.get(&of.node)?;
            let (run, experts) = (of.graph_run.0, of.experts);
            Some((record, run, experts, of.tokens, of.tokens_read, counts.to_vec()))
        });
        Self {
            memory_kinds: trace.memory_kinds.clone(),
            placements: trace.placements.iter().filter_map(placement).collect(),
            copy_ends: trace.copy_ends.iter().map(ends).collect(),
            expert_uses: uses.collect(),
        }
    }

    /// After all records. What refers to something that is not there is damage.
    pub(super) fn take(self, trace: &mut Trace) {
        let kinds = self.memory_kinds.len();
        let (records, runs, backends) =
            (trace.events.len(), trace.graph_runs.len(), trace.backends.len());
        trace.memory_kinds = self.memory_kinds;
        let is_memory = |memory: &Option<u16>| memory.is_none_or(|it| usize::from(it) < kinds);
        let is_record = |record: u32| (record as usize) < records;
        let index = |memory: Option<u16>| memory.map(MemoryIndex);
        let mut strays = 0;
        for (record, output, sources, answers) in self.placements {
            let fits = is_record(record)
                && sources.iter().chain([&output]).all(is_memory)
                && answers.iter().all(|(backend, ..)| usize::from(*backend) < backends);
            if !fits {
                strays += 1;
                continue;
            }
            let event = trace.events.get(EventId(record));
            let answer = |(backend, supports, offloads)| Answer {
                backend: BackendIndex(backend),
                supports,
                offloads,
            };
            trace.placements.push(Placement {
                node: event.node,
                backend: event.backend,
                output: index(output),
                sources: sources.into_iter().map(index).collect(),
                answers: answers.into_iter().map(answer).collect(),
            });
        }
        trace.placements.sort_by_key(|placement| (placement.node, placement.backend));
        for (record, source, target, is_input, offset) in self.copy_ends {
            if !is_record(record) || !is_memory(&source) || !is_memory(&target) {
                strays += 1;
                continue;
            }
            let (event, source, target) = (EventId(record), index(source), index(target));
            trace.copy_ends.push(CopyEnds { event, source, target, is_input, offset });
        }
        trace.copy_ends.sort_by_key(|ends| ends.event);
        for (record, run, experts, tokens, tokens_read, counts) in self.expert_uses {
            if !is_record(record) || run as usize >= runs {
                strays += 1;
                continue;
            }
            let node = trace.events.get(EventId(record)).node;
            let tokens = (tokens, tokens_read);
            trace.expert_uses.push(node, GraphRunId(run), experts, tokens, counts);
        }
        if strays > 0 {
            let detail = || "memory, placement or experts of no record".to_owned();
            trace.lose_many(LossKind::DamagedHeader, strays, detail);
        }
    }
}
