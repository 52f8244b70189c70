//! What a token would take with more or fewer layers on a device.

use super::budget::unit;
use crate::{Cell, Column, Document, Table, units};
use ggprof_analysis::Explained;
use ggprof_analysis::findings::LayerCosts;
use ggprof_trace::Trace;

const COLUMNS: [Column; 9] = [
    Column::left("phase", "phase", 0),
    Column::left("device", "device", 0),
    Column::right("layers_on_device", "layers there", 0),
    Column::right("now_ns_per_unit", "now", 0),
    Column::right("estimate_ns_per_unit", "estimate", 0),
    Column::left("unit", "for a", 1),
    Column::right("more_bytes", "memory for it", 1),
    Column::right("layer_on_host_ns", "layer on CPU", 2),
    Column::right("layer_on_device_ns", "on device", 2),
];

pub(super) fn table(document: &mut Document, trace: &Trace, explained: &Explained) {
    let rows: Vec<Vec<Cell>> =
        explained.layer_costs.iter().flat_map(|costs| rows(trace, explained, costs)).collect();
    if rows.is_empty() {
        return;
    }
    document.heading("what_if", "What if: estimates for more or fewer layers on the device (-ngl)");
    document.table(Table { key: "what_if", columns: COLUMNS.to_vec(), rows });
    for costs in &explained.layer_costs {
        document.note("what_if_from", said(trace, explained, costs));
    }
}

fn rows(trace: &Trace, explained: &Explained, costs: &LayerCosts) -> Vec<Vec<Cell>> {
    let budget = &explained.budgets[costs.budget];
    let now = budget.wall_ns as f64 / budget.units() as f64;
    let row = |&(layers, ns): &(u64, u64)| {
        let more = layers.checked_sub(costs.on_device).filter(|&more| more > 0);
        vec![
            Cell::text(&budget.label),
            Cell::text(trace.backend(costs.device).label()),
            Cell::Count(layers.into()),
            Cell::Nanos(now),
            Cell::Nanos(ns as f64),
            Cell::text(unit(budget)),
            Cell::or_nothing(more, |more| Cell::Bytes((more * costs.bytes).into())),
            Cell::Nanos(costs.host_ns as f64),
            Cell::Nanos(costs.device_ns as f64),
        ]
    };
    costs.estimates.iter().map(row).collect()
}

fn said(trace: &Trace, explained: &Explained, costs: &LayerCosts) -> String {
    let layers = |count: u64| if count == 1 { "1 layer".into() } else { format!("{count} layers") };
    format!(
        "{}: {} on {} take {} each, {} on {} take {} each, in a graph run.",
        explained.budgets[costs.budget].label,
        layers(costs.on_device),
        trace.backend(costs.device).label(),
        units::duration(costs.device_ns as f64),
        layers(costs.on_host),
        trace.backend(costs.host).label(),
        units::duration(costs.host_ns as f64),
    )
}
