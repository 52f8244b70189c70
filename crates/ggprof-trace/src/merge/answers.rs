//! When a client had what only a server could give it: the moments that bound the server's clock from
//! above.

use crate::model::{Event, EventKind, GraphCall, Measured, TaskKind, Trace};

/// When the client began to wait for something of a server, and when it had it.
pub(super) type Answer = (u64, u64);

/// The moments at which a client had something that one server computed, by start.
pub(super) fn answers(client: &Trace, server: &str) -> Vec<Answer> {
    let mut answers: Vec<Answer> = copies(client, server).collect();
    answers.extend(outputs(client));
    answers.sort_unstable();
    answers
}

/// The first answer that cannot come before a call was computed: servers do one thing after the other.
pub(super) fn after(answers: &[Answer], call: &GraphCall) -> Option<Answer> {
    let at = answers.partition_point(|answer| answer.0 < call.end_ns);
    answers.get(at).copied()
}

/// Copies from the server that have arrived when the call returns.
fn copies<'t>(client: &'t Trace, server: &'t str) -> impl Iterator<Item = Answer> + 't {
    let is_of_server = move |event: &Event| {
        let source = event.source_backend.map(|backend| client.backend(backend));
        source.is_some_and(|backend| backend.endpoint() == Some(server))
    };
    let has_arrived =
        |event: &Event| event.kind == EventKind::Copy && event.measured == Measured::Host;
    let copies = client.events.iter().filter(has_arrived);
    copies.filter(is_of_server).map(|event| (event.start_ns, event.end_ns()))
}

/// Outputs of batches: the program has them when its call of libllama and its wait for the graph run
/// are both over. A batch without outputs is not waited for.
fn outputs(client: &Trace) -> impl Iterator<Item = Answer> {
    client.host_tasks.iter().filter_map(|task| {
        let run = client.graph_runs.get(task.graph_run?.0 as usize)?;
        let batch = client.batches.get(run.batch?.0 as usize)?;
        let has_outputs = task.what == TaskKind::Wait && batch.outputs.is_some_and(|it| it > 0);
        let end_ns = task.start_ns.saturating_add(task.duration_ns).max(batch.end_ns?);
        has_outputs.then_some((run.end_ns.min(task.start_ns), end_ns))
    })
}
