//! Totals by op and tensor shape.

use super::columns::{self, head, row};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{by_shape, fusion_of, node_sums};
use ggprof_trace::Trace;

const KEY: [Column; 6] = [
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::left("fusion", "", 9),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
    Column::left("shape", "sources", 0),
];

const INTENSITY: [Column; 1] = [Column::right("flops_per_byte", "FLOP/B", 4)];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let rows = by_shape(trace, &node_sums(trace))
        .iter()
        .map(|line| {
            let signature = trace.nodes.signature(line.signature);
            let backend = trace.backend(line.backend);
            let fusion = fusion_of(signature, line.kind).map(|fusion| trace.text(fusion));
            let key = vec![
                columns::kind(line.kind),
                Cell::text(fusion.unwrap_or_else(|| trace.text(signature.op))),
                Cell::or_nothing(fusion, Cell::text),
                Cell::Number(backend.id.into()),
                Cell::text(backend.label()),
                Cell::text(columns::shape(trace, signature)),
            ];
            row([
                columns::shares(&line.totals).to_vec(),
                key,
                columns::totals(&line.totals).to_vec(),
                vec![Cell::or_nothing(line.totals.arithmetic_intensity(), Cell::Intensity)],
            ])
        })
        .collect();
    document.heading("shapes", "Operations by the shapes of their sources");
    let columns = head(&[&columns::SHARES, &KEY, &columns::TOTALS, &INTENSITY]);
    document.table(Table { key: "shapes", columns, rows });
}
