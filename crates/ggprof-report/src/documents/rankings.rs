//! Rankings: the ops and calls that take longest.

use super::requests::{clock, since_start};
use super::{columns, operations, sampling};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::inefficiency::{LEAST_SHARE, RankedBytes};
use ggprof_analysis::{
    DeviceKernel, OpRow, Peaks, by_op, device_kernels as by_kernel,
    inefficiency as rank_inefficiency, node_sums, roofs, top_kernels as longest,
};
use ggprof_trace::{EventId, Measured, Trace};

const KERNEL: [Column; 15] = [
    Column::right("charged_ns", "time", 0),
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::left("fusion", "", 9),
    Column::left("tensor", "tensor", 1),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
    Column::right("split", "split", 3),
    Column::right("graph_run", "graph run", 3),
    Column::right("clock_unix_ns", "clock", 3),
    Column::right("since_start_ns", "since start", 3),
    Column::right("start_ns", "", 9),
    Column::right("duration_ns", "", 9),
    Column::left("measured", "measured", 4),
    Column::left("shape", "sources", 2),
];

const DEVICE_KERNEL: [Column; 9] = [
    Column::right("share", "% kernels", 0),
    Column::right("total_ns", "total", 0),
    Column::left("kernel", "kernel", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
    Column::right("count", "count", 0),
    Column::right("avg_ns", "avg", 1),
    Column::right("max_ns", "max", 2),
    Column::left("ops", "for", 2),
];

const INEFFICIENT: [Column; 6] = [
    Column::right("ns_per_byte", "time per byte", 0),
    Column::left("op", "operation", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
    Column::right("count", "count", 1),
    Column::right("bytes", "bytes", 1),
];

/// The `n` ops that took longest in all.
pub fn top_ops(trace: &Trace, n: usize, peaks: Option<&Peaks>) -> Document {
    let mut document = Document::default();
    let sums = node_sums(trace);
    let mut ops = by_op(trace, &sums);
    ops.truncate(n);
    document.heading("top_ops", format!("Top {n} operations by total time"));
    sampling::note(&mut document, trace);
    document.table(operations::table("top_ops", trace, &ops, &roofs(trace, &sums, peaks)));
    document
}

/// The `n` longest single calls.
pub fn top_kernels(trace: &Trace, n: usize) -> Document {
    let mut document = Document::default();
    device_kernels(&mut document, trace, n);
    kernels(&mut document, trace, n);
    document
}

/// The `n` ops that took longest for each byte.
pub fn inefficiency(trace: &Trace, n: usize) -> Document {
    let mut document = Document::default();
    inefficient_ops(&mut document, trace, &by_op(trace, &node_sums(trace)), n);
    document
}

/// The `n` kernels that took longest in all; nothing where no device's kernels were recorded.
pub(super) fn device_kernels(document: &mut Document, trace: &Trace, n: usize) {
    let kernels = by_kernel(trace);
    if kernels.is_empty() {
        return;
    }
    let rows = kernels.iter().take(n).map(|kernel| device_kernel(trace, kernel)).collect();
    document.heading("device_kernels", format!("Top {n} kernels of devices by total time"));
    document.table(Table { key: "device_kernels", columns: DEVICE_KERNEL.to_vec(), rows });
}

fn device_kernel(trace: &Trace, kernel: &DeviceKernel) -> Vec<Cell> {
    let backend = trace.backend(kernel.backend);
    let ops: Vec<&str> = kernel.ops.iter().map(|&op| trace.text(op)).collect();
    vec![
        Cell::Share(kernel.share),
        Cell::Nanos(kernel.total_ns as f64),
        Cell::text(trace.text(kernel.name)),
        Cell::Number(backend.id.into()),
        Cell::text(backend.label()),
        Cell::Count(kernel.count.into()),
        Cell::Nanos(kernel.avg_ns()),
        Cell::Nanos(kernel.max_ns as f64),
        Cell::Text(ops.join(", ")),
    ]
}

pub(super) fn kernels(document: &mut Document, trace: &Trace, n: usize) {
    document.heading("top_kernels", format!("Top {n} longest calls"));
    let since_start = since_start(trace);
    let rows = longest(trace, n).iter().map(|&id| kernel(trace, &since_start, id)).collect();
    document.table(Table { key: "top_kernels", columns: KERNEL.to_vec(), rows });
}

fn kernel(trace: &Trace, since_start: &dyn Fn(u64) -> Cell, id: EventId) -> Vec<Cell> {
    let event = trace.events.get(id);
    let signature = trace.signature(event.node);
    let fusion = signature.extra.filter(|_| event.is_op()).map(|fusion| trace.text(fusion));
    let measured = Some(event.measured).filter(|&measured| measured != Measured::Unknown);
    vec![
        Cell::Nanos(event.charged_ns as f64),
        columns::kind(event.kind),
        Cell::text(trace.text(signature.op)),
        Cell::or_nothing(fusion, Cell::text),
        Cell::or_nothing(trace.tensor_name(event.node), Cell::text),
        Cell::Number(trace.backend(event.backend).id.into()),
        columns::backend_name(trace, &event),
        Cell::Number(event.split.into()),
        Cell::or_nothing(event.graph_run, |run| Cell::Number(trace.run_number(run) as i64)),
        clock(trace, event.start_ns),
        since_start(event.start_ns),
        Cell::Nanos(event.start_ns as f64),
        Cell::Nanos(event.duration_ns as f64),
        Cell::or_nothing(measured, |measured| Cell::text(measured.name())),
        columns::shape_of(trace, &event),
    ]
}

pub(super) fn inefficient_ops(document: &mut Document, trace: &Trace, ops: &[OpRow], n: usize) {
    let found = rank_inefficiency(ops, n);
    let basis = match found.basis {
        RankedBytes::Moved => "read and written",
        RankedBytes::Output => "of output alone",
    };
    let least = Cell::Share(LEAST_SHARE).words();
    let rows = found
        .rows
        .iter()
        .map(|line| {
            let backend = trace.backend(line.op.backend);
            vec![
                Cell::NanosPerByte(line.ns_per_byte),
                Cell::text(trace.text(line.op.op)),
                Cell::Number(backend.id.into()),
                Cell::text(backend.label()),
                Cell::Count(line.op.totals.count.into()),
                Cell::Bytes(line.bytes),
            ]
        })
        .collect();
    document.heading(
        "inefficiency",
        format!("Inefficiency: time per byte {basis}, from {least} of the time on"),
    );
    document.table(Table { key: "inefficiency", columns: INEFFICIENT.to_vec(), rows });
}
