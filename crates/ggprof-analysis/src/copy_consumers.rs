//! Which op waits for a copy.
//!
//! The scheduler copies the inputs of a split just before the split runs. A copy is
//! therefore for an op of the same graph run, backend and split: the first one that has the
//! copied tensor as a source. Where the recording does not name sources, it is the first one
//! with a source of the same shape and type, or the first one at all if none has.

use ggprof_ggml::copied_tensor;
use ggprof_trace::{BackendIndex, Event, EventId, GraphRunId, Trace};
use hashbrown::{HashMap, HashSet};

type SplitKey = (Option<GraphRunId>, BackendIndex, i32);

/// Pairs of a copy and the op that consumes it, in the order of the copies. Copies that no
/// later op can be waiting for are left out.
pub fn copy_consumers(trace: &Trace) -> Vec<(EventId, EventId)> {
    let copies: Vec<Event> = trace.events.copies().collect();
    let wanted: HashSet<SplitKey> = copies.iter().map(split_key).collect();
    let mut ops: HashMap<SplitKey, Vec<Event>> = HashMap::new();
    for event in trace.events.iter().filter(|event| event.is_op() && is_of_node(trace, event)) {
        if wanted.contains(&split_key(&event)) {
            ops.entry(split_key(&event)).or_default().push(event);
        }
    }
    for ops in ops.values_mut() {
        ops.sort_by_key(|op| op.start_ns);
    }
    copies
        .iter()
        .filter_map(|copy| Some((copy.id, consumer(trace, copy, ops.get(&split_key(copy))?)?)))
        .collect()
}

/// What a device does for no node, such as filling memory, takes nothing in.
fn is_of_node(trace: &Trace, op: &Event) -> bool {
    trace.tensor_name(op.node).is_some() || !trace.signature(op.node).sources.is_empty()
}

fn split_key(event: &Event) -> SplitKey {
    (event.graph_run, event.backend, event.split)
}

fn consumer(trace: &Trace, copy: &Event, ops: &[Event]) -> Option<EventId> {
    let later = &ops[ops.partition_point(|op| op.start_ns < copy.start_ns)..];
    let copied = trace.signature(copy.node).sources.first().map(|source| source.tensor);
    let takes_it_by_name = |op: &&Event| {
        let names = trace.nodes.source_names(op.node).iter().map(|&name| trace.text(name));
        trace
            .tensor_name(copy.node)
            .is_some_and(|copied| names.into_iter().any(|name| copied_tensor(name) == Some(copied)))
    };
    let takes_its_shape = |op: &&Event| {
        let sources = &trace.signature(op.node).sources;
        sources.iter().any(|source| Some(source.tensor) == copied)
    };
    let consumer =
        later.iter().find(takes_it_by_name).or_else(|| later.iter().find(takes_its_shape));
    consumer.or(later.first()).map(|op| op.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[track_caller]
    fn check(events: &str, expected: &[(u32, u32)]) {
        let trace = text_fixture::parse(&format!("backend 0 GPU gpu\nbackend 1 CPU cpu\n{events}"));
        let links: Vec<_> =
            copy_consumers(&trace).into_iter().map(|(copy, op)| (copy.0, op.0)).collect();
        assert_eq!(links, expected);
    }

    #[test]
    fn the_first_op_with_such_a_source() {
        check(
            "op GPU MUL_MAT 20..30 q f32[4] <- f32[8,4] f32[8]
             op GPU ROPE 30..40 q f32[4] <- f32[4] i32[1]
             copy GPU H2D 0..5 4 pos <- i32[1]
             copy GPU H2D 5..9 32 embd <- f32[8]
             copy GPU H2D 5..9 32 mask <- f16[8]",
            &[(2, 1), (3, 0), (4, 0)],
        );
    }

    #[test]
    fn the_op_that_names_it() {
        check(
            "op GPU MUL_MAT 20..30 q f32[4] <- f32[8,4] f32[8] from=w,GPU#norm#0
             op GPU MUL_MAT 30..40 k f32[4] <- f32[8,4] f32[8] from=w,GPU#embd#0
             copy GPU H2D 5..9 32 embd <- f32[8]",
            &[(2, 1)],
        );
    }

    #[test]
    fn filling_memory_is_no_op_that_waits() {
        check("copy GPU D2H 0..5 32 <- f32[8]\nop GPU memset 20..30", &[]);
    }

    #[test]
    fn only_ops_of_the_same_split_run_and_backend_that_start_later() {
        check(
            "op GPU ADD 0..1 a split=1
             op GPU ADD 50..60 b split=2
             op CPU ADD 40..45 c split=1
             copy GPU H2D 30..40 8 x split=1
             op GPU ADD 70..80 a split=1",
            &[],
        );
    }
}
