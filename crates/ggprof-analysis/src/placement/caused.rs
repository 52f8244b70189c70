//! Copies and splits that were needed only because the processor computed something, each with the
//! op that is to blame: of the ops in the processor's split the longest one of those with the
//! weightiest reason.

use super::{Caused, has_device, is_host, reason_of};
use crate::copy_consumers::copy_consumers;
use crate::estimates::CopyTimes;
use crate::layers::Places;
use ggprof_trace::{BackendIndex, BufferUsage, Event, GraphRunId, StringId, Trace};
use hashbrown::HashMap;
use std::cmp::Reverse;

type SplitKey = (GraphRunId, BackendIndex, i32);

/// Each with an op that caused it.
pub(super) fn all(trace: &Trace, places: &Places) -> Vec<(Event, Caused)> {
    if !has_device(trace) {
        return Vec::new();
    }
    let is_host = |backend: BackendIndex| is_host(trace, backend);
    let mut to_blame: HashMap<SplitKey, ((u8, Reverse<u64>), Event)> = HashMap::new();
    let mut makers: HashMap<(GraphRunId, StringId), SplitKey> = HashMap::new();
    let mut reasons = HashMap::new();
    for event in trace.events.iter().filter(|event| event.is_op() && is_host(event.backend)) {
        let Some(key) = split_key(&event) else { continue };
        if let Some(name) = trace.node(event.node).tensor_name {
            makers.insert((key.0, name), key);
        }
        let module = places.of(&event).module;
        let reason = *reasons
            .entry((event.node, event.backend, module))
            .or_insert_with(|| reason_of(trace, event.backend, event.node, module));
        let blame = (reason.rank(), Reverse(event.duration_ns));
        let (worst, blamed) = to_blame.entry(key).or_insert((blame, event));
        if blame < *worst {
            (*worst, *blamed) = (blame, event);
        }
    }
    let one_split = Caused { splits: 1, ..Caused::default() };
    let splits = to_blame.values().map(|(_, event)| (*event, one_split));
    let consumers: HashMap<_, _> = copy_consumers(trace).into_iter().collect();
    let times = CopyTimes::of(trace);
    let copies = trace.events.copies();
    let copies = copies.filter_map(|copy| {
        let blamed = if is_host(copy.backend) {
            let consumer = trace.events.get(*consumers.get(&copy.id)?);
            to_blame.get(&split_key(&consumer)?)?.1
        } else if is_weight(trace, &copy) {
            trace.events.get(*consumers.get(&copy.id)?)
        } else {
            let name = trace.node(copy.node).tensor_name?;
            to_blame.get(makers.get(&(copy.graph_run?, name))?)?.1
        };
        let (copy_bytes, copy_ns) = (copy.bytes, copy.charged_ns);
        let timed = Caused { copies: 1, copy_bytes, copy_ns, ..Caused::default() };
        Some((
            blamed,
            if times.is_untimed(trace, &copy) { estimated(trace, &times, &copy) } else { timed },
        ))
    });
    splits.chain(copies).collect()
}

/// What a copy of which only the call was timed takes a device, by those that it timed.
fn estimated(trace: &Trace, times: &CopyTimes, copy: &Event) -> Caused {
    let ns = times.mean_ns(trace, copy).map_or(0, |ns| ns.round() as u64);
    Caused {
        copies: 1,
        copy_bytes: copy.bytes,
        copy_ns: ns,
        estimated_copy_ns: ns,
        ..Caused::default()
    }
}

fn split_key(event: &Event) -> Option<SplitKey> {
    Some((event.graph_run?, event.backend, event.split))
}

/// A weight is copied from the host for every op that a device takes over.
fn is_weight(trace: &Trace, copy: &Event) -> bool {
    let source = trace.ends_of(copy.id).and_then(|ends| ends.source);
    source.is_some_and(|memory| trace.memory_kind(memory).usage == BufferUsage::Weights)
}
