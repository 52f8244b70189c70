//! Totals by layer and by part of the model.

use super::columns::{self, head, row};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{Totals, by_layer};
use ggprof_trace::{BackendIndex, Trace};

const LAYER: [Column; 1] = [Column::right("layer", "layer", 0)];
const MODULE: [Column; 1] = [Column::left("module", "module", 0)];
const BACKEND: [Column; 2] =
    [Column::right("backend_id", "", 9), Column::left("backend", "backend", 1)];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let (layers, modules) = by_layer(trace);
    document.heading("modules", "Parts of the model, over all layers");
    document.table(Table {
        key: "modules",
        columns: head(&[&columns::SHARES, &MODULE, &BACKEND, &columns::TOTALS]),
        rows: modules
            .iter()
            .map(|line| cells(trace, Cell::text(line.module.name()), line.backend, &line.totals))
            .collect(),
    });
    document.heading("layers", "Layers");
    document.table(Table {
        key: "layers",
        columns: head(&[&columns::SHARES, &LAYER, &BACKEND, &columns::TOTALS]),
        rows: layers
            .iter()
            .map(|line| {
                let layer =
                    line.layer.map_or(Cell::text("none"), |layer| Cell::Number(layer.0.into()));
                cells(trace, layer, line.backend, &line.totals)
            })
            .collect(),
    });
}

fn cells(trace: &Trace, key: Cell, backend: BackendIndex, totals: &Totals) -> Vec<Cell> {
    let backend = trace.backend(backend);
    let key = vec![key, Cell::Number(backend.id.into()), Cell::text(backend.label())];
    row([columns::shares(totals).to_vec(), key, columns::totals(totals).to_vec()])
}
