//! Totals by op.

use super::columns::{self, head, row};
use super::sampling;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{OpRow, Totals, by_op};
use ggprof_trace::Trace;

const KEY: [Column; 5] = [
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::part("fusion"),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
];

const SHAPE: [Column; 1] = [Column::left("longest_call", "longest call", 5)];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    document.heading("operations", "Operations");
    sampling::note(document, trace);
    document.table(table("operations", trace, &by_op(trace)));
}

/// Ops in the given order; fused calls stand below the op they are counted with.
pub(super) fn table(key: &'static str, trace: &Trace, ops: &[OpRow]) -> Table {
    let mut rows = Vec::new();
    for op in ops {
        let name = trace.text(op.op);
        let is_rest = op.totals.estimate.is_some_and(|estimate| estimate.ns < 0.0);
        let words = if is_rest { format!("rest of {name}s") } else { name.to_owned() };
        rows.push(line(trace, op, words, Cell::Nothing, &op.totals));
        for fusion in &op.fusions {
            let name = trace.text(fusion.fusion);
            let key = Cell::text(name);
            rows.push(line(trace, op, format!("  of it {name}"), key, &fusion.totals));
        }
    }
    Table { key, columns: head(&[&columns::SHARES, &KEY, &columns::TOTALS, &SHAPE]), rows }
}

fn line(trace: &Trace, op: &OpRow, words: String, fusion: Cell, totals: &Totals) -> Vec<Cell> {
    let backend = trace.backend(op.backend);
    let key = vec![
        columns::kind(op.kind),
        Cell::Named { words, name: trace.text(op.op).to_owned() },
        fusion,
        Cell::Number(backend.id.into()),
        Cell::text(backend.label()),
    ];
    let longest = trace.events.get(totals.longest);
    row([
        columns::shares(totals).to_vec(),
        key,
        columns::totals(totals).to_vec(),
        vec![columns::shape_of(trace, &longest)],
    ])
}
