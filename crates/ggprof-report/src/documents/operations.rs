//! Totals by op.

use super::columns::{self, head, row};
use super::sampling;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{OpRow, Totals, by_op};
use ggprof_trace::Trace;

const KEY: [Column; 5] = [
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::left("fusion", "", 9),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
];

const SHAPE: [Column; 1] = [Column::left("longest_call", "longest call", 2)];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    document.heading("operations", "Operations");
    document.table(table("operations", trace, &by_op(trace)));
    sampling::estimates(document, trace);
}

/// Ops in the given order; fused calls stand below the op they are counted with.
pub(super) fn table(key: &'static str, trace: &Trace, ops: &[OpRow]) -> Table {
    let mut rows = Vec::new();
    for op in ops {
        let name = trace.text(op.op);
        rows.push(line(trace, op, name.to_owned(), Cell::Nothing, &op.totals));
        for fusion in &op.fusions {
            let name = trace.text(fusion.fusion);
            let key = Cell::text(name);
            rows.push(line(trace, op, format!("  of it {name}"), key, &fusion.totals));
        }
    }
    Table { key, columns: head(&[&columns::SHARES, &KEY, &columns::TOTALS, &SHAPE]), rows }
}

fn line(trace: &Trace, op: &OpRow, name: String, fusion: Cell, totals: &Totals) -> Vec<Cell> {
    let backend = trace.backend(op.backend);
    let key = vec![
        columns::kind(op.kind),
        Cell::Text(name),
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
