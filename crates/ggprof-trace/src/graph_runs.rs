//! Separates the executions of a graph in recordings that do not number them.
//!
//! For each execution, ggml's profiler appends the ops of backend 0 in order, those of backend 1,
//! and so on, then the copies. So an execution begins where that order starts again. With a single
//! backend and no copies, it begins where its first node appears again.

use crate::model::{Event, EventId, EventKind, GraphRun, GraphRunId, Trace};

/// Checks recorded graph runs, or works them out if there are none.
pub(crate) fn complete(trace: &mut Trace) {
    if trace.graph_runs.is_empty() {
        infer(trace);
    } else {
        check(trace);
    }
    let events = trace.events.len() as u32;
    trace.events.thread_shares.retain(|share| share.event.0 < events);
}

/// Forgets references to graph runs that the recording does not have.
fn check(trace: &mut Trace) {
    let known = trace.graph_runs.len() as u32;
    let is_unknown = |run: GraphRunId| run.0 >= known;
    if trace.events.stretches().all(|(stretch, _)| !stretch.graph_run.is_some_and(is_unknown)) {
        return;
    }
    let runs = trace.events.iter().map(|event| event.graph_run.filter(|run| run.0 < known));
    let runs: Vec<_> = runs.collect();
    trace.events.set_graph_runs(runs);
}

fn infer(trace: &mut Trace) {
    trace.graph_runs_inferred = true;
    let mut runs: Vec<GraphRun> = Vec::new();
    let mut run_of_event: Vec<u32> = Vec::with_capacity(trace.events.len());
    let mut current: Option<(Event, Event)> = None;
    for at in 0..trace.events.len() as u32 {
        let event = trace.events.get(EventId(at));
        let first = match current {
            Some((first, previous)) if !begins_run(trace, &first, &previous, &event) => first,
            _ => {
                let (start_ns, end_ns) = (event.start_ns, event.end_ns());
                runs.push(GraphRun::new(0, start_ns, end_ns));
                event
            }
        };
        current = Some((first, event));
        if let Some(run) = runs.last_mut() {
            run.start_ns = run.start_ns.min(event.start_ns);
            run.end_ns = run.end_ns.max(event.end_ns());
        }
        run_of_event.push(runs.len() as u32 - 1);
    }
    trace.events.set_graph_runs(run_of_event.into_iter().map(|run| Some(GraphRunId(run))));
    trace.graph_runs = runs;
}

/// Whether `event` cannot belong to the execution that began with `first`.
fn begins_run(trace: &Trace, first: &Event, previous: &Event, event: &Event) -> bool {
    match (previous.kind, event.kind) {
        (EventKind::Copy, EventKind::Op) => true,
        (EventKind::Op, EventKind::Op) if previous.backend != event.backend => {
            trace.backend(event.backend).id < trace.backend(previous.backend).id
        }
        (EventKind::Op, EventKind::Op) => {
            event.split < previous.split || repeats_first_node(trace, first, event)
        }
        (_, EventKind::Copy) => false,
    }
}

/// Whether the node that the execution began with comes again.
fn repeats_first_node(trace: &Trace, first: &Event, event: &Event) -> bool {
    let (one, other) = (trace.signature(first.node), trace.signature(event.node));
    if one.op != other.op || first.backend != event.backend {
        return false;
    }
    let (one, other) = (trace.node(first.node).tensor_name, trace.node(event.node).tensor_name);
    // Without names only the look-up of the embeddings, which a model does once and first,
    // says that a graph begins.
    one == other && (one.is_some() || trace.op_name(first.node) == "GET_ROWS")
}

#[cfg(test)]
mod tests {
    use crate::text_fixture;

    /// The graph run of each event, in order.
    #[track_caller]
    fn check(fixture: &str, expected: &str) {
        let trace = text_fixture::parse(fixture);
        let runs: Vec<_> = trace
            .events
            .iter()
            .map(|event| event.graph_run.map_or("-".to_owned(), |run| run.0.to_string()))
            .collect();
        assert_eq!(runs.join(" "), expected);
        for event in trace.events.iter() {
            let run = trace.graph_runs[event.graph_run.unwrap().0 as usize];
            assert!(run.start_ns <= event.start_ns && event.end_ns() <= run.end_ns);
        }
    }

    #[test]
    fn an_op_after_a_copy_begins_a_run() {
        check(
            "backend 0 CUDA0 gpu
             backend 1 CPU cpu
             op CUDA0 MUL_MAT 20..30 Qcur-0
             op CPU GET_ROWS 0..10 embd
             copy CUDA0 H2D 10..20 8 embd
             op CUDA0 MUL_MAT 50..60 Qcur-0
             op CPU GET_ROWS 30..40 embd
             copy CUDA0 H2D 40..50 8 embd",
            "0 0 0 1 1 1",
        );
    }

    #[test]
    fn a_lower_backend_or_split_begins_a_run() {
        check(
            "backend 0 BLAS accel
             backend 1 CPU cpu
             op BLAS MUL_MAT 0..1 a split=1
             op BLAS MUL_MAT 1..2 b split=3
             op CPU ADD 2..3 c split=2
             op BLAS MUL_MAT 3..4 a split=1
             op BLAS MUL_MAT 4..5 x split=0",
            "0 0 0 1 2",
        );
    }

    #[test]
    fn the_first_node_coming_again_begins_a_run() {
        check(
            "backend 0 CPU cpu
             op CPU GET_ROWS 0..1 embd
             op CPU RMS_NORM 1..2 norm-0
             op CPU RMS_NORM 2..3 norm-0
             op CPU GET_ROWS 3..4 embd
             op CPU RMS_NORM 4..5 norm-0",
            "0 0 0 1 1",
        );
    }

    #[test]
    fn without_names_only_the_embedding_look_up_begins_a_run() {
        check(
            "backend 0 CPU cpu
             op CPU GET_ROWS 0..1
             op CPU ADD 1..2
             op CPU ADD 2..3
             op CPU GET_ROWS 3..4
             op CPU ADD 4..5",
            "0 0 0 1 1",
        );
        check(
            "backend 0 CPU cpu
             op CPU ADD 1..2
             op CPU ADD 2..3",
            "0 0",
        );
    }
}
