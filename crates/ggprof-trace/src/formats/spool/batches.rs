//! The program's calls of libllama, and the graph runs that belong to them.

use super::clock::Clock;
use super::tables::{BatchCall, Run, Tables};
use crate::model::{
    Batch, BatchFunction, BatchId, BatchSequence, ContextChange, ContextChangeKind, Trace,
};
use ggprof_spool::layout::{self, NONE};
use hashbrown::HashMap;

/// Which call each graph run was part of.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// The calls of each thread: begin, end, place in the trace; by begin.
    by_thread: HashMap<u32, Vec<(u64, u64, BatchId)>>,
}

impl Batches {
    /// Takes the calls over. A call is of interest only with a graph run, so others are left out.
    pub(super) fn take(tables: &Tables, clock: &Clock, trace: &mut Trace) -> Self {
        let mut calls: Vec<&BatchCall> = tables.batches.values().collect();
        calls.sort_by_key(|call| call.begin.ticks);
        let mut spans: HashMap<u32, Vec<(u64, u64, &BatchCall)>> = HashMap::new();
        for call in calls {
            let end = call.end.map_or(u64::MAX, |end| end.ticks);
            let of_thread = spans.entry(call.begin.os_thread).or_default();
            of_thread.push((call.begin.ticks, end, call));
        }
        let mut used: Vec<&BatchCall> = Vec::new();
        for run in tables.runs.values().filter(|run| run.end.is_some()) {
            used.extend(around(spans.get(&run.begin.os_thread), run).copied());
        }
        used.sort_by_key(|call| call.begin.ticks);
        used.dedup_by_key(|call| call.begin.call);
        let mut batches = Self::default();
        for call in used {
            let end = call.end.map_or(u64::MAX, |end| end.ticks);
            let id = BatchId(trace.batches.len() as u32);
            let of_thread = batches.by_thread.entry(call.begin.os_thread).or_default();
            of_thread.push((call.begin.ticks, end, id));
            trace.batches.push(batch(call, clock));
        }
        let changes = tables.context_changes.iter();
        trace.context_changes.extend(changes.filter_map(|change| context_change(change, clock)));
        trace.context_changes.sort_by_key(|change| change.at_ns);
        batches
    }

    pub(super) fn of(&self, run: &Run) -> Option<BatchId> {
        around(self.by_thread.get(&run.begin.os_thread), run).copied()
    }
}

/// The call that was under way when the run began.
fn around<'a, T>(calls: Option<&'a Vec<(u64, u64, T)>>, run: &Run) -> Option<&'a T> {
    let calls = calls?;
    let after = calls.partition_point(|(begin, ..)| *begin <= run.begin.ticks);
    let (_, end, call) = calls.get(after.checked_sub(1)?)?;
    (*end >= run.begin.ticks).then_some(call)
}

pub(super) fn batch(call: &BatchCall, clock: &Clock) -> Batch {
    let begin = &call.begin;
    let has = |flag: u8| begin.flags & flag != 0;
    let is_read = !has(layout::BATCH_PARTLY_KNOWN);
    let tokens = Some(begin.tokens).filter(|&tokens| is_read || tokens > 0);
    // Of a batch with too many sequences, some results may not be counted, but none is counted twice.
    let are_counted = is_read || (begin.outputs == begin.tokens && begin.tokens > 0);
    let outputs = Some(begin.outputs);
    let outputs = outputs.filter(|_| are_counted && !has(layout::BATCH_OUTPUTS_UNSAID));
    let sequences = call.sequences.iter().filter(|_| is_read);
    Batch {
        call: begin.call,
        context: begin.context,
        start_ns: clock.ns(begin.ticks),
        end_ns: call.end.map(|end| clock.ns(end.ticks)),
        is_from_positions: has(layout::BATCH_FROM_POSITIONS),
        function: match has(layout::BATCH_ENCODE) {
            true => BatchFunction::Encode,
            false => BatchFunction::Decode,
        },
        tokens,
        outputs,
        sequences: sequences.map(sequence).collect(),
    }
}

fn sequence(entry: &layout::BatchSequence) -> BatchSequence {
    let first = u32::try_from(entry.first).ok();
    let positions = first.zip(u32::try_from(entry.last).ok());
    let (tokens, outputs) = (entry.tokens, entry.outputs);
    BatchSequence { sequence: entry.sequence, positions, tokens, outputs }
}

/// `None` for what a later version of the format may tell.
pub(super) fn context_change(
    change: &layout::ContextChange,
    clock: &Clock,
) -> Option<ContextChange> {
    let sequence = u32::try_from(change.sequence).ok();
    // libllama takes a negative begin for the first position, and a negative end for the last one.
    let (first, last) = (change.first.max(0) as u32, u32::try_from(change.last).ok());
    let what = match change.what {
        layout::CONTEXT_CLEARED => ContextChangeKind::Cleared,
        layout::CONTEXT_REMOVED => ContextChangeKind::Removed { sequence, first, last },
        layout::CONTEXT_SHIFTED => {
            ContextChangeKind::Shifted { sequence, first, last, by: change.other }
        }
        layout::CONTEXT_COPIED => {
            ContextChangeKind::Copied { sequence: sequence?, to: u32::try_from(change.other).ok()? }
        }
        layout::CONTEXT_KEPT => ContextChangeKind::Kept { sequence: sequence? },
        layout::CONTEXT_DIVIDED => {
            let by = u32::try_from(change.other).ok().filter(|&by| by > 0)?;
            ContextChangeKind::Divided { sequence, first, last, by }
        }
        layout::CONTEXT_WARM_UP => ContextChangeKind::WarmUp,
        layout::CONTEXT_WARMED_UP => ContextChangeKind::WarmedUp,
        layout::CONTEXT_FREED => ContextChangeKind::Freed,
        layout::CONTEXT_EMBEDDINGS_READ => {
            ContextChangeKind::EmbeddingsRead { call: change.other as u32 }
        }
        _ => return None,
    };
    let context = Some(change.context).filter(|&context| context != NONE);
    Some(ContextChange { context, at_ns: clock.ns(change.ticks), what })
}
