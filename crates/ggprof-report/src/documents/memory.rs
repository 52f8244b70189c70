//! Memory for tensors, by device and use.

use crate::document::Block;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::energy::on_machine;
use ggprof_analysis::memory::{Amount, Memory, Purpose, memory};
use ggprof_trace::{Coverage, CoveredWhy, Trace};

const DEVICE: [Column; 1] = [Column::left("device", "device", 0)];
const USE: [Column; 2] = [Column::left("memory", "memory", 1), Column::left("use", "used for", 0)];
const AMOUNT: [Column; 5] = [
    Column::right("buffers", "buffers", 2),
    Column::right("end_bytes", "at the end", 0),
    Column::right("peak_bytes", "peak", 0),
    Column::left("peak_reached", "reached", 1),
    Column::right("peak_ns", "", 9),
];

const NONE: &str = "No memory is known: it is in recordings of ggprof's own from format 4 on, \
                    where ggml's calls that make buffers are seen.";

const ATTACHED: &str = "ggprof attached to the program while it ran: this is only what it has made since, \
                        and not what it had by then, such as its weights.";

pub(super) fn all(document: &mut Document, trace: &Trace) {
    if trace.buffers.is_empty() && !is_attached(trace) {
        document.blocks.push(Block::Warning(NONE.to_owned()));
    }
    let memory = memory(trace);
    let rows = memory.devices.iter().map(|one| {
        [vec![device(trace, one.machine, &one.device)], amount(trace, &one.amount)].concat()
    });
    document.heading("memory_by_device", "Memory by device");
    let columns = [&DEVICE[..], &AMOUNT].concat();
    document.table(Table { key: "memory_by_device", columns, rows: rows.collect() });
    uses(document, trace, &memory);
}

/// For the summary: nothing where nothing is known.
pub(super) fn overview(document: &mut Document, trace: &Trace) {
    if !trace.buffers.is_empty() {
        uses(document, trace, &memory(trace));
    }
}

fn uses(document: &mut Document, trace: &Trace, memory: &Memory) {
    let rows = memory.uses.iter().map(|one| {
        let device = device(trace, one.machine, &one.device);
        let key = vec![device, Cell::text(&one.type_name), Cell::text(purpose(one.purpose))];
        [key, amount(trace, &one.amount)].concat()
    });
    document.heading("memory", "Memory by device and use");
    let columns = [&DEVICE[..], &USE, &AMOUNT].concat();
    document.table(Table { key: "memory", columns, rows: rows.collect() });
    if is_attached(trace) {
        document.blocks.push(Block::Warning(ATTACHED.to_owned()));
    }
    let is_partly_seen = |entry: &&Coverage| entry.why == CoveredWhy::FreesNotSeen;
    for entry in trace.coverage.iter().filter(is_partly_seen) {
        let sentence = format!(
            "{} frees its own buffers by direct calls, which are not seen: memory that is gone may \
             be counted.",
            entry.subject
        );
        document.blocks.push(Block::Warning(sentence));
    }
}

fn is_attached(trace: &Trace) -> bool {
    trace.provenance.as_ref().is_some_and(|provenance| provenance.attached)
}

fn device(trace: &Trace, machine: u16, name: &str) -> Cell {
    Cell::text(on_machine(trace, machine, name.to_owned()))
}

fn amount(trace: &Trace, amount: &Amount) -> Vec<Cell> {
    vec![
        Cell::Count(amount.buffers.into()),
        Cell::Bytes(amount.at_end),
        Cell::Bytes(amount.peak.bytes),
        reached(trace, amount.peak.ns),
        Cell::Nanos(amount.peak.ns as f64),
    ]
}

/// When, after the first event; most memory is there before.
fn reached(trace: &Trace, ns: u64) -> Cell {
    let Some((start, _)) = trace.span_ns() else { return Cell::Nothing };
    match ns.checked_sub(start) {
        Some(after) => Cell::text(format!("after {}", Cell::Nanos(after as f64).words())),
        None => Cell::text("before the first op"),
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Weights => "weights",
        Purpose::Cache => "KV cache",
        Purpose::Compute => "compute",
        Purpose::Other => "other",
    }
}
