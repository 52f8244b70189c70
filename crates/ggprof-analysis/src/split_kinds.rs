//! Which splits of a device were timed as a whole, which op by op, and which of them are of one kind.

use ggprof_trace::{BackendIndex, Event, GraphRunId, Measured, Signature, Tensor, Trace};
use hashbrown::HashMap;

/// What a split computes: its backend, the output of its first op and of its last.
pub(crate) type SplitKind = (BackendIndex, Tensor, Tensor);

/// Runs that were timed as a whole, each with one of the same kind whose ops are known.
pub(crate) fn runs_like_sampled(trace: &Trace) -> Vec<(GraphRunId, GraphRunId)> {
    let mut whole = whole_splits(trace).peekable();
    if whole.peek().is_none() {
        return Vec::new();
    }
    let splits = sampled_splits(trace);
    let sampled: HashMap<SplitKind, GraphRunId> = splits
        .iter()
        .filter_map(|split| Some((kind_of_sampled(trace, split)?, split.first()?.graph_run?)))
        .collect();
    whole
        .filter_map(|event| Some((event.graph_run?, *sampled.get(&kind_of_whole(trace, &event))?)))
        .collect()
}

pub(crate) fn kind_of_whole(trace: &Trace, event: &Event) -> SplitKind {
    let signature = trace.signature(event.node);
    let first = signature.sources.first().map_or(Tensor::UNKNOWN, |source| source.tensor);
    (event.backend, first, signature.output)
}

pub(crate) fn kind_of_sampled(trace: &Trace, split: &[Event]) -> Option<SplitKind> {
    let mut outputs =
        split.iter().map(|event| trace.signature(event.node).output).filter(Tensor::is_known);
    let first = outputs.next()?;
    Some((split.first()?.backend, first, outputs.next_back().unwrap_or(first)))
}

pub(crate) fn is_whole(trace: &Trace, event: &Event) -> bool {
    event.measured == Measured::Device
        && trace.text(trace.signature(event.node).op) == Signature::WHOLE_SPLIT
}

/// Splits that a device timed as a whole.
pub(crate) fn whole_splits(trace: &Trace) -> impl Iterator<Item = Event> + '_ {
    let is_whole_split = |op| trace.text(op) == Signature::WHOLE_SPLIT;
    let any = trace.nodes.signatures().any(|(_, signature)| is_whole_split(signature.op));
    let events = any.then(|| trace.events.iter()).into_iter().flatten();
    events.filter(|event| is_whole(trace, event))
}

/// The events of each split that a device computed op by op, in the order of the ops.
pub(crate) fn sampled_splits(trace: &Trace) -> Vec<Vec<Event>> {
    op_by_op(trace, trace.events.iter())
}

/// The same with those that a part of a recording keeps of the rest.
pub(crate) fn known_splits(trace: &Trace) -> Vec<Vec<Event>> {
    op_by_op(trace, trace.events.iter().chain(trace.elsewhere.iter().copied()))
}

fn op_by_op(trace: &Trace, events: impl Iterator<Item = Event>) -> Vec<Vec<Event>> {
    let mut splits: Vec<Vec<Event>> = Vec::new();
    let mut place: HashMap<_, usize> = HashMap::new();
    let by_device = |event: &Event| {
        matches!(event.measured, Measured::Device | Measured::Modelled) && event.is_op()
    };
    for event in events.filter(by_device) {
        let Some(run) = event.graph_run.filter(|_| !is_whole(trace, &event)) else { continue };
        let at = *place.entry((run, event.split, event.backend)).or_insert_with(|| {
            splits.push(Vec::new());
            splits.len() - 1
        });
        splits[at].push(event);
    }
    splits
}
