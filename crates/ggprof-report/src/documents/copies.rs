//! What is copied between memories.

use crate::{Cell, Column, Document, Table};
use ggprof_analysis::copies::{Copied, CopyRow};
use ggprof_analysis::{Direction, Explained};
use ggprof_trace::Trace;

const COLUMNS: [Column; 13] = [
    Column::left("phase", "phase", 0),
    Column::left("what", "what", 0),
    Column::left("direction", "direction", 0),
    Column::left("backend", "backend", 2),
    Column::right("count", "copies", 2),
    Column::right("bytes", "", 9),
    Column::right("bytes_per_run", "a run", 0),
    Column::right("bytes_per_token", "a token", 1),
    Column::right("gb_per_s", "rate", 1),
    Column::right("ns", "time", 1),
    Column::right("exposed_ns", "exposed", 0),
    Column::right("tensors", "tensors", 3),
    Column::left("tensor", "largest", 3),
];

pub(super) fn table(document: &mut Document, trace: &Trace, explained: &Explained) {
    let rows: Vec<Vec<Cell>> =
        explained.copies.iter().filter_map(|copies| row(trace, explained, copies)).collect();
    if rows.is_empty() {
        return;
    }
    document.heading("copies", "Copies between memories; exposed: while nothing computes");
    document.table(Table { key: "copies", columns: COLUMNS.to_vec(), rows });
}

/// Nothing of copies outside of phases.
fn row(trace: &Trace, explained: &Explained, copies: &CopyRow) -> Option<Vec<Cell>> {
    let budget = &explained.budgets[copies.budget?];
    let per = |units: u64| Cell::Bytes((copies.bytes / units.max(1)).into());
    Some(vec![
        Cell::text(&budget.label),
        Cell::text(what(copies.what)),
        Cell::text(direction(copies.direction)),
        Cell::text(trace.backend(copies.backend).label()),
        Cell::Count(copies.count.into()),
        Cell::Bytes(copies.bytes.into()),
        per(budget.runs),
        if budget.tokens > 0 { per(budget.tokens) } else { Cell::Nothing },
        Cell::or_nothing(copies.gb_per_s(), Cell::GigabytesPerSecond),
        Cell::or_nothing(copies.ns, |ns| Cell::Nanos(ns as f64)),
        Cell::Nanos(copies.exposed_ns as f64),
        Cell::Count(copies.tensors.into()),
        Cell::text(&copies.tensor),
    ])
}

fn what(what: Copied) -> &'static str {
    match what {
        Copied::Weights => "weights",
        Copied::Experts => "experts",
        Copied::Cache => "cache",
        Copied::Input => "input",
        Copied::Activation => "activations",
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "to the device",
        Direction::DeviceToHost => "from the device",
        Direction::DeviceToDevice => "between devices",
        Direction::HostToHost => "in the host",
        Direction::Unknown => "",
    }
}
