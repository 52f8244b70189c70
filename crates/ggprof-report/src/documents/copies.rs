//! What was copied between backends.

use super::phases::kind_name;
use super::placement::ranges;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::copies::{Copies, CopyRow, HostEnd, RepeatedWeight, TensorClass, copies};
use ggprof_analysis::{Peaks, PhaseKind, Phases, divided, phases, places};
use ggprof_trace::{EventId, MemoryIndex, Trace};

const COPIES: [Column; 22] = [
    Column::left("phase", "phase", 0),
    Column::left("tensors", "tensors", 0),
    Column::left("direction", "direction", 1),
    Column::left("source_backend", "from", 3),
    Column::left("backend", "to", 2),
    Column::left("source_memory", "source memory", 2),
    Column::left("target_memory", "target memory", 2),
    Column::left("host_memory", "host end", 1),
    Column::right("copies", "copies", 1),
    Column::right("graph_runs", "", 9),
    Column::right("bytes", "bytes", 0),
    Column::right("bytes_per_run", "per run", 2),
    Column::right("bytes_per_token", "per token", 3),
    Column::right("timed_ns", "time", 0),
    Column::right("estimated_ns", "estimated", 2),
    Column::right("timed_bytes", "", 9),
    Column::right("gb_per_s", "rate", 0),
    Column::right("best_gb_per_s", "best seen", 3),
    Column::right("share_of_link", "of link", 1),
    Column::right("exposed_ns", "exposed", 1),
    Column::right("exposed_share_of_phase", "% phase", 0),
    Column::left("waiting_op", "waits for it", 1),
];

const REPEATED: [Column; 6] = [
    Column::left("tensor", "tensor", 0),
    Column::left("layers", "layers", 0),
    Column::left("backend", "to", 0),
    Column::left("tensors", "is", 1),
    Column::right("graph_runs", "graph runs", 0),
    Column::right("bytes", "bytes", 0),
];

/// Names are enough to know which weights; programs get all of them.
pub(super) fn all(document: &mut Document, trace: &Trace, peaks: Option<&Peaks>) {
    let phases = phases(trace);
    let exposed = divided(trace, &phases, &places(trace)).exposed;
    of_phases(document, trace, (&phases, &exposed), peaks, |_| true);
}

/// In phases that are wanted, which were divided already. Rates are held against the link where that was
/// measured.
pub(super) fn of_phases(
    document: &mut Document,
    trace: &Trace,
    (phases, exposed): (&Phases, &[(EventId, u64)]),
    peaks: Option<&Peaks>,
    is_wanted: impl Fn(Option<PhaseKind>) -> bool,
) {
    let Copies { rows, repeated } = copies(trace, phases, exposed);
    document.heading("copies", "Copies by tensors and memory");
    let rows = rows.iter().filter(|row| is_wanted(row.phase));
    let rows = rows.map(|row| copy_row(trace, phases, peaks, row)).collect();
    document.table(Table { key: "copies", columns: COPIES.to_vec(), rows });
    if !repeated.is_empty() {
        document.heading("repeated_weights", "Weights copied in more than one graph run");
        let rows = repeated.iter().map(|weight| repeated_row(trace, weight)).collect();
        document.table(Table { key: "repeated_weights", columns: REPEATED.to_vec(), rows });
    }
}

fn copy_row(trace: &Trace, phases: &Phases, peaks: Option<&Peaks>, row: &CopyRow) -> Vec<Cell> {
    let exposed = row.exposed_ns.filter(|_| row.timed_ns > 0);
    let label = |backend| Cell::text(trace.backend(backend).label());
    let memory = |memory: Option<MemoryIndex>| {
        Cell::or_nothing(memory, |memory| Cell::text(&trace.memory_kind(memory).type_name))
    };
    let phase = row.phase.and_then(|phase| phases.sum(phase)).map(|group| group.sum);
    let tokens = phase.as_ref().map(|phase| phase.tokens).filter(|&tokens| tokens > 0);
    let wall = phase.as_ref().map(|phase| phase.wall_ns()).filter(|&wall| wall > 0);
    let per = |count: u64| Cell::Bytes((row.bytes / count.max(1)).into());
    // Where only calls were timed, nothing is known of the copies.
    let of_timed = |ns: u64| Cell::or_nothing((row.timed_ns > 0).then_some(ns as f64), Cell::Nanos);
    vec![
        Cell::or_nothing(row.phase, |phase| Cell::text(kind_name(phase))),
        Cell::text(class(row.class)),
        Cell::text(row.direction.name()),
        Cell::or_nothing(row.source_backend, label),
        label(row.backend),
        memory(row.source),
        memory(row.target),
        Cell::or_nothing(row.host_memory(trace), |memory| Cell::text(host_memory(memory))),
        Cell::Count(row.copies.into()),
        Cell::Count(row.graph_runs.into()),
        Cell::Bytes(row.bytes.into()),
        Cell::or_nothing(Some(row.graph_runs).filter(|&runs| runs > 0), per),
        Cell::or_nothing(tokens, per),
        of_timed(row.timed_ns),
        Cell::or_nothing(row.estimated_ns, |ns| Cell::Nanos(ns.round())),
        Cell::Bytes(row.timed_bytes.into()),
        Cell::or_nothing(row.rate(), |rate| Cell::GigabytesPerSecond(rate / 1e9)),
        Cell::or_nothing(row.best_rate, |rate| Cell::GigabytesPerSecond(rate / 1e9)),
        Cell::or_nothing(peaks.and_then(|it| row.share_of_link(trace, it)), Cell::Share),
        Cell::or_nothing(exposed, |ns| Cell::Nanos(ns as f64)),
        Cell::or_nothing(wall.zip(exposed), |(wall, ns)| Cell::Share(ns as f64 / wall as f64)),
        Cell::or_nothing(row.consumer, |op| Cell::text(trace.text(op))),
    ]
}

fn repeated_row(trace: &Trace, weight: &RepeatedWeight) -> Vec<Cell> {
    vec![
        Cell::text(&weight.tensor),
        Cell::text(ranges(&weight.layers)),
        Cell::text(trace.backend(weight.backend).label()),
        Cell::text(class(weight.class)),
        Cell::Count(weight.graph_runs.into()),
        Cell::Bytes(weight.bytes.into()),
    ]
}

pub(crate) fn class(class: TensorClass) -> &'static str {
    match class {
        TensorClass::Weights => "weights",
        TensorClass::Experts => "experts",
        TensorClass::Cache => "KV cache",
        TensorClass::Input => "inputs",
        TensorClass::Activations => "activations",
        TensorClass::Unknown => "not known",
    }
}

pub(crate) fn host_memory(memory: HostEnd) -> &'static str {
    match memory {
        HostEnd::Pinned => "pinned",
        HostEnd::Pageable => "pageable",
        HostEnd::Unknown => "not known",
    }
}
