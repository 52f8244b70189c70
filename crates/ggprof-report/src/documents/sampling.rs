//! Ops of splits that were timed as a whole, estimated from samples of the same kind.

use crate::document::Block;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{SampledOp, Sampling, sampling};
use ggprof_trace::Trace;

const COLUMNS: [Column; 8] = [
    Column::right("share", "% kernels", 0),
    Column::right("total_ns", "total", 0),
    Column::left("op", "operation", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
    Column::right("measured_ns", "measured", 1),
    Column::right("estimated_ns", "estimated", 1),
    Column::right("error_ns", "± of it", 1),
];

/// Nothing where every op was measured.
pub(super) fn estimates(document: &mut Document, trace: &Trace) {
    let found = sampling(trace);
    if found.is_empty() {
        return;
    }
    document.heading("estimates", "Operations where kernels were recorded in samples only");
    let mut rows = Vec::new();
    for backend in &found {
        document.blocks.push(Block::Warning(sentence(trace, backend)));
        let all: f64 = backend.ops.iter().map(SampledOp::total_ns).sum();
        rows.extend(backend.ops.iter().map(|op| row(trace, backend, op, all)));
    }
    document.table(Table { key: "estimates", columns: COLUMNS.to_vec(), rows });
}

/// Which figures are measured, and how far the others can be trusted.
fn sentence(trace: &Trace, found: &Sampling) -> String {
    let label = trace.backend(found.backend).label();
    let words = |ns: f64| Cell::Nanos(ns).words();
    let mut text = format!(
        "{label}: kernels were recorded for {} of {} splits ({}). The other {} took {} on the \
         device, which is exact; {} of it are estimated to be kernels (standard error {}), by \
         the mean of the samples",
        found.sampled,
        found.sampled + found.whole,
        Cell::Share(found.sampled_share()).words(),
        found.whole,
        words(found.whole_ns as f64),
        words(found.estimated_ns()),
        words(found.error_ns()),
    );
    if found.unlike > 0 {
        text.push_str(&format!("; {} of them are of a kind without samples", found.unlike));
    }
    text.push('.');
    text
}

fn row(trace: &Trace, found: &Sampling, op: &SampledOp, all: f64) -> Vec<Cell> {
    let backend = trace.backend(found.backend);
    vec![
        Cell::Share(if all > 0.0 { op.total_ns() / all } else { 0.0 }),
        Cell::Nanos(op.total_ns()),
        Cell::text(trace.text(op.op)),
        Cell::Number(backend.id.into()),
        Cell::text(backend.label()),
        Cell::Nanos(op.measured_ns as f64),
        Cell::Nanos(op.estimated_ns),
        Cell::Nanos(op.error_ns),
    ]
}
