//! What servers computed for the program, and how well their clocks are known.

use super::phases::kind_name;
use super::{processes, summary};
use crate::{Cell, Column, Document, Table, units};
use ggprof_analysis::remote::{RemoteRow, remote, slowest};
use ggprof_analysis::traffic::{Traffic, TrafficRow, traffic};
use ggprof_analysis::{PhaseKind, Phases, phases};
use ggprof_trace::{Process, ProcessClock, RemoteLink, Trace};

const LINKS: [Column; 12] = [
    Column::left("client", "client", 1),
    Column::left("endpoint", "endpoint", 0),
    Column::left("server", "server", 0),
    Column::right("calls", "graphs left to it", 0),
    Column::right("matched", "found there", 0),
    Column::right("other_runs", "others it ran", 2),
    Column::right("violations", "out of order", 0),
    Column::right("bounds", "of", 1),
    Column::left("clock", "its clock", 0),
    Column::right("clock_ahead_ns", "", 9),
    Column::right("clock_drift_ppb", "", 9),
    Column::right("clock_error_ns", "", 9),
];

const STEPS: [Column; 10] = [
    Column::left("phase", "phase", 0),
    Column::left("server", "server", 0),
    Column::right("steps", "steps", 0),
    Column::right("total_ns", "total", 0),
    Column::right("each_ns", "each", 0),
    Column::right("serialising_ns", "serialising", 0),
    Column::right("wire_ns", "wire", 0),
    Column::right("computing_ns", "computing", 0),
    Column::right("waiting_ns", "waiting", 0),
    Column::right("computing_share", "computing %", 1),
];

const TRAFFIC: [Column; 10] = [
    Column::left("phase", "phase", 0),
    Column::left("endpoint", "server", 0),
    Column::right("sent_bytes", "sent", 0),
    Column::right("received_bytes", "received", 0),
    Column::right("bytes_per_token", "per token", 0),
    Column::right("round_trips", "round trips", 0),
    Column::right("round_trips_per_token", "per token", 1),
    Column::right("sending_ns", "in send", 0),
    Column::right("receiving_ns", "in recv", 0),
    Column::right("tokens", "", 9),
];

/// What is known of several processes when they were put on one axis of time.
pub fn merged(trace: &Trace, name: &str) -> Document {
    let mut document = Document::default();
    document.heading("merged", format!("ggprof: {name}"));
    processes::names(&mut document, trace);
    summary::warn(&mut document, trace);
    servers(&mut document, trace, &phases(trace));
    if trace.remote_links.is_empty() && !trace.processes.is_empty() {
        let note = "No process computed for another one, as far as these recordings tell.";
        document.note("no_links", note.to_owned());
    }
    document
}

/// Nothing, if no process computed for another and none was asked to.
pub(super) fn servers(document: &mut Document, trace: &Trace, phases: &Phases) {
    steps(document, trace, phases);
    let rows = traffic(trace, phases);
    if !rows.is_empty() {
        document.heading("remote_traffic", "Bytes to and from servers");
        let rows = rows.iter().map(traffic_row).collect();
        document.table(Table { key: "remote_traffic", columns: TRAFFIC.to_vec(), rows });
    }
}

fn traffic_row(row: &TrafficRow) -> Vec<Cell> {
    let Traffic { sent, received, round_trips, sending_ns, receiving_ns } = row.traffic;
    let tokens = Some(row.tokens).filter(|&tokens| tokens > 0);
    let per_token = |count: u64| tokens.map(|tokens| count as f64 / tokens as f64);
    vec![
        Cell::text(row.phase.map_or("outside of phases", kind_name)),
        Cell::text(&row.endpoint),
        Cell::Bytes(sent.into()),
        Cell::Bytes(received.into()),
        Cell::or_nothing(tokens, |tokens| Cell::Bytes((row.traffic.bytes() / tokens).into())),
        Cell::Count(round_trips.into()),
        Cell::or_nothing(per_token(round_trips), Cell::Times),
        Cell::Nanos(sending_ns as f64),
        Cell::Nanos(receiving_ns as f64),
        Cell::Count(row.tokens.into()),
    ]
}

fn steps(document: &mut Document, trace: &Trace, phases: &Phases) {
    if trace.remote_links.is_empty() {
        return;
    }
    document.heading("remote_links", "Graphs that were left to servers");
    let rows = trace.remote_links.iter().map(|link| link_row(trace, link)).collect();
    document.table(Table { key: "remote_links", columns: LINKS.to_vec(), rows });
    let rows = remote(trace, phases);
    if rows.is_empty() {
        return;
    }
    document.heading("remote_steps", "Steps of servers: where their time went");
    let cells = rows.iter().map(|row| step_row(trace, row)).collect();
    document.table(Table { key: "remote_steps", columns: STEPS.to_vec(), rows: cells });
    for kind in [PhaseKind::Prompt, PhaseKind::Generation] {
        if let Some(row) = slowest(&rows, kind) {
            document.note("slowest_server", slowest_words(trace, row));
        }
    }
}

fn process<'t>(trace: &'t Trace, link: &RemoteLink) -> (&'t Process, &'t Process) {
    let of = |index: ggprof_trace::ProcessIndex| &trace.processes[usize::from(index.0)];
    (of(link.client), of(link.server))
}

fn link_row(trace: &Trace, link: &RemoteLink) -> Vec<Cell> {
    let (client, server) = process(trace, link);
    let (ahead_ns, drift_ppb, error_ns) = match server.clock {
        ProcessClock::Exchanges { ahead_ns, drift_ppb, error_ns } => {
            (Cell::Number(ahead_ns), Cell::Number(drift_ppb), Cell::Nanos(error_ns as f64))
        }
        _ => (Cell::Nothing, Cell::Nothing, Cell::Nothing),
    };
    vec![
        Cell::Text(client.label()),
        Cell::text(&link.endpoint),
        Cell::Text(server.label()),
        Cell::Count(link.calls.into()),
        Cell::Count(link.matched.into()),
        Cell::Count(link.runs.saturating_sub(link.matched).into()),
        Cell::Count(link.violations.into()),
        Cell::Count(link.bounds.into()),
        Cell::Text(clock(server.clock)),
        ahead_ns,
        drift_ppb,
        error_ns,
    ]
}

/// How a server's times came to those of its client, and how far off they can be.
fn clock(clock: ProcessClock) -> String {
    match clock {
        ProcessClock::Shared => "the same as the client's".to_owned(),
        ProcessClock::TimeOfDay => "by the time of day".to_owned(),
        ProcessClock::Exchanges { ahead_ns, drift_ppb, error_ns } => format!(
            "{} added, {:+.1} µs a second; exact to {}",
            units::signed(ahead_ns as f64, units::duration),
            drift_ppb as f64 / 1000.0,
            units::duration(error_ns as f64)
        ),
    }
}

fn step_row(trace: &Trace, row: &RemoteRow) -> Vec<Cell> {
    let time = &row.time;
    let total_ns = time.total_ns();
    let nanos = |ns: u64| Cell::Nanos(ns as f64);
    vec![
        Cell::text(kind_name(row.phase)),
        Cell::Text(server_name(trace, row)),
        Cell::Count(time.steps.into()),
        nanos(total_ns),
        Cell::Nanos(total_ns as f64 / time.steps.max(1) as f64),
        nanos(time.serialising_ns),
        nanos(time.wire_ns),
        nanos(time.computing_ns),
        nanos(time.waiting_ns),
        Cell::Share(time.computing_ns as f64 / total_ns.max(1) as f64),
    ]
}

/// As the client calls it, which tells two servers of one machine apart.
fn server_name(trace: &Trace, row: &RemoteRow) -> String {
    trace.backend(row.backend).name.clone()
}

fn slowest_words(trace: &Trace, row: &RemoteRow) -> String {
    let each = row.time.computing_ns as f64 / row.time.steps.max(1) as f64;
    format!(
        "In {}, {} computes longest: {} a step.",
        kind_name(row.phase),
        server_name(trace, row),
        units::duration(each)
    )
}
