//! Totals by op.

use super::columns::{self, head, row};
use super::sampling;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::roofs::{BackendRoof, RoofFrom};
use ggprof_analysis::{OpRow, Peaks, Roofs, Totals, by_op, node_sums, roofs};
use ggprof_trace::Trace;

const KEY: [Column; 5] = [
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::part("fusion"),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
];

/// How close to what the device can do; which of the two it is, depends on the backend.
const ROOF: [Column; 2] = [
    Column::right("share_of_peak", "of peak", 2),
    Column::right("share_of_best_seen", "of best seen", 4),
];

const SHAPE: [Column; 1] = [Column::left("longest_call", "longest call", 5)];

pub(super) fn all(document: &mut Document, trace: &Trace, peaks: Option<&Peaks>) {
    document.heading("operations", "Operations");
    sampling::note(document, trace);
    let sums = node_sums(trace);
    let roofs = roofs(trace, &sums, peaks);
    document.table(table("operations", trace, &by_op(trace, &sums), &roofs));
}

/// Ops in the given order; fused calls stand below the op they are counted with.
pub(super) fn table(key: &'static str, trace: &Trace, ops: &[OpRow], roofs: &Roofs) -> Table {
    let mut rows = Vec::new();
    for op in ops {
        let name = trace.text(op.op);
        let is_rest = op.totals.estimate.is_some_and(|estimate| estimate.ns < 0.0);
        let words = if is_rest { format!("rest of {name}s") } else { name.to_owned() };
        rows.push(line(trace, roofs, op, (words, Cell::Nothing), &op.totals));
        for fusion in &op.fusions {
            let name = trace.text(fusion.fusion);
            let key = Cell::text(name);
            rows.push(line(trace, roofs, op, (format!("  of it {name}"), key), &fusion.totals));
        }
    }
    Table { key, columns: head(&[&columns::SHARES, &KEY, &columns::TOTALS, &ROOF, &SHAPE]), rows }
}

fn line(
    trace: &Trace,
    roofs: &Roofs,
    op: &OpRow,
    (words, fusion): (String, Cell),
    totals: &Totals,
) -> Vec<Cell> {
    let backend = trace.backend(op.backend);
    let key = vec![
        columns::kind(op.kind),
        Cell::Named { words, name: trace.text(op.op).to_owned() },
        fusion,
        Cell::Number(backend.id.into()),
        Cell::text(backend.label()),
    ];
    let longest = trace.event(totals.longest);
    row([
        columns::shares(totals).to_vec(),
        key,
        columns::totals(totals).to_vec(),
        roof(trace, roofs.of(op.backend), totals).to_vec(),
        vec![columns::shape_of(trace, &longest)],
    ])
}

fn roof(trace: &Trace, roof: &BackendRoof, totals: &Totals) -> [Cell; 2] {
    let share = Cell::or_nothing(roof.share(trace, totals), Cell::Share);
    match roof.basis {
        RoofFrom::Measured => [share, Cell::Nothing],
        RoofFrom::BestSeen => [Cell::Nothing, share],
    }
}
