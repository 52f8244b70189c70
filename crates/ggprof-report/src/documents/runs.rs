//! Graph run by graph run, and second by second.

use super::requests::{clock, note_part, since_start};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{Second, phases, seconds};
use ggprof_trace::{GraphRunId, Trace, done};

const RUNS: [Column; 10] = [
    Column::right("run", "run", 0),
    Column::right("clock_unix_ns", "clock", 0),
    Column::right("since_start_ns", "since start", 0),
    Column::right("start_ns", "", 9),
    Column::left("phase", "phase", 0),
    Column::right("tokens", "tokens", 0),
    Column::right("wall_ns", "wall", 0),
    Column::right("call_ns", "call", 2),
    Column::right("before_ns", "since the run before", 1),
    Column::right("scheduler", "", 9),
];

const SECONDS: [Column; 12] = [
    Column::right("clock_unix_ns", "clock", 0),
    Column::right("since_start_ns", "since start", 0),
    Column::right("start_ns", "", 9),
    Column::right("runs", "graph runs", 1),
    Column::right("prompt_tokens", "prompt tokens", 0),
    Column::right("generated_tokens", "generated", 0),
    Column::right("requests", "requests", 1),
    Column::right("computing_share", "computing", 0),
    Column::right("copying_share", "copying", 2),
    Column::right("idle_share", "idle", 0),
    Column::right("unrecorded_share", "not recorded", 3),
    Column::right("absent_share", "not there", 3),
];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let (phases, done) = (phases(trace), done(trace));
    document.heading("runs", "Graph runs");
    let since_start = since_start(trace);
    let mut latest_ns = None;
    let mut rows = Vec::new();
    for (at, run) in trace.graph_runs.iter().enumerate() {
        let number = trace.run_number(GraphRunId(at as u32));
        let phase = phases.phase_of_run.get(at).map(|&phase| &phases.phases[phase as usize]);
        let call = run.batch.and_then(|batch| trace.batches.get(batch.0 as usize));
        let call_ns = call.and_then(|call| Some(call.end_ns?.saturating_sub(call.start_ns)));
        let before_ns = latest_ns.map(|latest| run.start_ns.saturating_sub(latest));
        let nanos = |ns: u64| Cell::Nanos(ns as f64);
        rows.push(vec![
            Cell::Number(number as i64),
            clock(trace, run.start_ns),
            since_start(run.start_ns),
            nanos(run.start_ns),
            Cell::or_nothing(phase, |phase| Cell::Text(phase.label())),
            Cell::or_nothing(phases.tokens_of_run[at], |tokens| Cell::Count(tokens.into())),
            nanos(done[at].saturating_sub(run.start_ns)),
            Cell::or_nothing(call_ns, nanos),
            Cell::or_nothing(before_ns, nanos),
            Cell::Number(run.scheduler.into()),
        ]);
        latest_ns = latest_ns.max(Some(done[at]));
    }
    let count = rows.len();
    document.table(Table { key: "runs", columns: RUNS.to_vec(), rows });
    note_part(document, count);
}

pub(super) fn by_second(document: &mut Document, trace: &Trace) {
    document.heading("seconds", "Seconds");
    let (are_several, since_start) = (!trace.processes.is_empty(), since_start(trace));
    let row = |second: &Second| {
        vec![
            clock(trace, second.start_ns),
            since_start(second.start_ns),
            Cell::Nanos(second.start_ns as f64),
            Cell::Count(second.runs.into()),
            Cell::Count(second.prompt_tokens.into()),
            Cell::Count(second.generated_tokens.into()),
            Cell::or_nothing(second.requests, |requests| Cell::Count(requests.into())),
            Cell::Share(second.computing),
            Cell::Share(second.copying),
            Cell::Share(second.idle),
            Cell::Share(second.unrecorded),
            Cell::or_nothing(Some(second.absent).filter(|_| are_several), Cell::Share),
        ]
    };
    let rows: Vec<_> = seconds(trace).iter().map(row).collect();
    let count = rows.len();
    document.table(Table { key: "seconds", columns: SECONDS.to_vec(), rows });
    note_part(document, count);
}
