//! Recorded ops alone: in the model, with what they read in the cache and without, and the roof.

use super::columns;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::roofs::RoofFrom;
use ggprof_analysis::{Attended, DistinctOp, Roofs, work_of};
use ggprof_trace::{BackendIndex, Trace};

/// One op on one ggml.
#[derive(Debug, Clone)]
pub struct OpBenchRow {
    pub op: DistinctOp,
    /// What the user calls the ggml; empty for that of the recorded program.
    pub ggml: String,
    /// Nanoseconds with what it reads in the cache and without, and special memory that the weights
    /// were in; or why there are none.
    pub outcome: Result<(f64, f64, Option<String>), String>,
}

/// An op of a single number: no other can take less there.
#[derive(Debug, Clone)]
pub struct LeastOp {
    pub backend: BackendIndex,
    pub ggml: String,
    /// `None` where it could not be computed.
    pub ns: Option<f64>,
}

const LEAST: [Column; 3] = [
    Column::left("backend", "backend", 0),
    Column::left("ggml", "ggml", 0),
    Column::right("least_ns", "takes at least", 0),
];

const COLUMNS: [Column; 14] = [
    Column::left("op", "operation", 0),
    Column::left("tensor", "", 9),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
    Column::left("ggml", "ggml", 0),
    Column::right("count", "count", 3),
    Column::right("total_ns", "total", 2),
    Column::right("model_ns", "in the model", 0),
    Column::right("warm_ns", "warm", 0),
    Column::right("cold_ns", "cold", 0),
    Column::right("roof_ns", "roof", 0),
    Column::left("weights_in", "weights in", 3),
    Column::left("shape", "sources", 0),
    Column::left("problem", "why not", 0),
];

pub fn op_bench(trace: &Trace, rows: &[OpBenchRow], least: &[LeastOp], roofs: &Roofs) -> Document {
    let mut document = Document::default();
    document.heading("op_bench", "Operations alone: what one call takes");
    let attended = Attended::of(trace);
    let cells = rows.iter().map(|row| cells(trace, row, roofs, &attended)).collect();
    document.table(Table { key: "op_bench", columns: COLUMNS.to_vec(), rows: cells });
    document.note(
        "op_bench_meaning",
        "In the model: the median of all calls. Warm: what it reads is in the cache, as far as it fits; \
         cold: none of it is. Roof: at the peak rates of this machine (`ggprof peaks`).",
    );
    let known = least.iter().filter_map(|it| Some((it, it.ns?)));
    let least: Vec<Vec<Cell>> = known.map(|(it, ns)| least_cells(trace, it, ns)).collect();
    if !least.is_empty() {
        document.heading("op_bench_least", "An op of a single number: no op alone takes less");
        document.table(Table { key: "op_bench_least", columns: LEAST.to_vec(), rows: least });
    }
    document
}

fn least_cells(trace: &Trace, of: &LeastOp, ns: f64) -> Vec<Cell> {
    vec![Cell::text(trace.backend(of.backend).label()), ggml(&of.ggml), Cell::Nanos(ns)]
}

/// Empty for that of the recorded program.
fn ggml(name: &str) -> Cell {
    if name.is_empty() { Cell::Nothing } else { Cell::text(name) }
}

fn cells(trace: &Trace, row: &OpBenchRow, roofs: &Roofs, attended: &Attended) -> Vec<Cell> {
    let op = &row.op;
    let signature = trace.nodes.signature(op.signature);
    let backend = trace.backend(op.backend);
    let roof = roofs.of(op.backend);
    let event = trace.events.get(op.longest);
    let work = attended.work(trace, &event).unwrap_or_else(|| work_of(trace, signature));
    let least_ns = roof.least_ns(trace, signature, &work);
    let least_ns = least_ns.filter(|_| roof.basis == RoofFrom::Measured);
    let measured = row.outcome.as_ref().ok();
    let name = signature.extra.unwrap_or(signature.op);
    vec![
        Cell::text(trace.text(name)),
        Cell::or_nothing(trace.tensor_name(op.node), Cell::text),
        Cell::Number(backend.id.into()),
        Cell::text(backend.label()),
        ggml(&row.ggml),
        Cell::Count(op.count as u128),
        Cell::Nanos(op.total_ns as f64),
        Cell::Nanos(op.median_ns),
        Cell::or_nothing(measured, |(warm_ns, ..)| Cell::Nanos(*warm_ns)),
        Cell::or_nothing(measured, |(_, cold_ns, _)| Cell::Nanos(*cold_ns)),
        Cell::or_nothing(least_ns, Cell::Nanos),
        Cell::or_nothing(measured.and_then(|(.., memory)| memory.as_ref()), Cell::text),
        Cell::text(columns::shape(trace, signature)),
        Cell::or_nothing(row.outcome.as_ref().err(), Cell::text),
    ]
}
