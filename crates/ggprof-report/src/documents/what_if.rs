//! What a token would take with more or fewer layers on a device.

use crate::spent_words::unit;
use crate::{Cell, Column, Document, Table, units};
use ggprof_analysis::Explained;
use ggprof_analysis::findings::{LayerCosts, LayerEstimate, ThreadEstimate};
use ggprof_analysis::memory::{Left, left};
use ggprof_trace::{BackendIndex, Quantity, Sensor, Trace};
use std::collections::BTreeSet;

const COLUMNS: [Column; 11] = [
    Column::left("phase", "phase", 0),
    Column::left("device", "device", 0),
    Column::right("layers_on_device", "layers there", 0),
    Column::right("gpu_layers", "-ngl", 0),
    Column::right("now_ns_per_unit", "now", 0),
    Column::right("estimate_ns_per_unit", "estimate", 0),
    Column::left("unit", "for a", 1),
    Column::right("more_bytes", "memory for it", 1),
    Column::left("fits", "fits", 1),
    Column::right("layer_on_host_ns", "layer on CPU", 2),
    Column::right("layer_on_device_ns", "on device", 2),
];

const THREADS: [Column; 7] = [
    Column::left("phase", "phase", 0),
    Column::right("threads", "threads", 0),
    Column::right("now_ns_per_unit", "now", 0),
    Column::right("advised_threads", "-t", 0),
    Column::right("estimate_ns_per_unit", "estimate", 0),
    Column::left("unit", "for a", 1),
    Column::right("reads_gb_per_s", "these read", 1),
];

pub(super) fn tables(document: &mut Document, trace: &Trace, explained: &Explained) {
    layers(document, trace, explained);
    threads(document, explained);
}

fn threads(document: &mut Document, explained: &Explained) {
    if explained.thread_estimates.is_empty() {
        return;
    }
    let row = |it: &ThreadEstimate| {
        let budget = &explained.budgets[it.budget];
        vec![
            Cell::text(&budget.label),
            Cell::Count(it.threads.into()),
            Cell::Nanos(budget.wall_ns as f64 / budget.units() as f64),
            Cell::Count(it.advised.into()),
            Cell::Nanos(it.ns as f64),
            Cell::text(unit(budget)),
            Cell::GigabytesPerSecond(it.gb_per_s.1),
        ]
    };
    let rows = explained.thread_estimates.iter().map(row).collect();
    document.heading("what_if_threads", "What if: estimates for another number of threads");
    document.table(Table { key: "what_if_threads", columns: THREADS.to_vec(), rows });
    document.note(
        "what_if_threads_from",
        "With so many threads, reading memory gets no faster on this machine (`ggprof peaks`). The estimate \
         takes computing to be as long as reading, and nothing else to change.",
    );
}

fn layers(document: &mut Document, trace: &Trace, explained: &Explained) {
    let rows: Vec<Vec<Cell>> =
        explained.layer_costs.iter().flat_map(|costs| rows(trace, explained, costs)).collect();
    if rows.is_empty() {
        return;
    }
    document.heading("what_if", "What if: estimates for more or fewer layers on the device");
    document.table(Table { key: "what_if", columns: COLUMNS.to_vec(), rows });
    for costs in &explained.layer_costs {
        document.note("what_if_from", said(trace, explained, costs));
    }
    let devices = explained.layer_costs.iter().flat_map(|costs| costs.devices.iter().copied());
    for device in devices.collect::<BTreeSet<BackendIndex>>() {
        document.note("device_memory", memory_of(trace, device));
    }
}

fn rows(trace: &Trace, explained: &Explained, costs: &LayerCosts) -> Vec<Vec<Cell>> {
    let budget = &explained.budgets[costs.budget];
    let now = budget.wall_ns as f64 / budget.units() as f64;
    let row = |&LayerEstimate { layers, gpu_layers, ns }: &LayerEstimate| {
        let more = layers.checked_sub(costs.on_device).filter(|&more| more > 0);
        vec![
            Cell::text(&budget.label),
            Cell::Text(names(trace, &costs.devices)),
            Cell::Count(layers.into()),
            Cell::or_nothing(gpu_layers, |it| Cell::Count(it.into())),
            Cell::Nanos(now),
            Cell::or_nothing(ns, |ns| Cell::Nanos(ns as f64)),
            Cell::text(unit(budget)),
            Cell::or_nothing(more, |more| Cell::Bytes((more * costs.bytes).into())),
            Cell::or_nothing(more.zip(costs.fitting()), |(more, fitting)| {
                Cell::text(if more <= fitting { "yes" } else { "no" })
            }),
            Cell::Nanos(costs.host_ns as f64),
            Cell::Nanos(costs.device_ns as f64),
        ]
    };
    costs.estimates.iter().map(row).collect()
}

fn names(trace: &Trace, backends: &[BackendIndex]) -> String {
    let names: Vec<&str> = backends.iter().map(|&it| trace.backend(it).label()).collect();
    names.join(" and ")
}

/// Whether the layers fit, as far as a recording tells: what the device told the program, or else how much
/// the driver said is in use.
fn memory_of(trace: &Trace, device: BackendIndex) -> String {
    let backend = trace.backend(device);
    if let Some(Left { free_bytes, total_bytes }) = left(trace, backend) {
        let [free, total] = [free_bytes, total_bytes].map(|bytes| units::bytes(bytes as f64));
        return format!(
            "{} has {total} of memory, of which about {free} are free beside what this program has. The \
             memory for layers is that of their weights; their part of the cache comes on top.",
            backend.label()
        );
    }
    let is_its = |sensor: &&Sensor| {
        sensor.quantity == Quantity::DeviceMemory && sensor.name == backend.description
    };
    let used = trace.sensors.iter().filter(is_its).flat_map(|sensor| &sensor.values).max();
    let label = backend.label();
    match used {
        Some(&bytes) => format!(
            "{label} had {} of its memory in use at most, by all programs; how much it has in all was \
             not recorded.",
            units::bytes(bytes as f64)
        ),
        None => format!("How much memory {label} has left was not recorded."),
    }
}

fn said(trace: &Trace, explained: &Explained, costs: &LayerCosts) -> String {
    let take = |count: u64, backends: &[BackendIndex], ns: u64| {
        let (backend, time) = (names(trace, backends), units::duration(ns as f64));
        match count {
            1 => format!("1 layer on {backend} takes {time}"),
            _ => format!("{count} layers on {backend} take {time} each"),
        }
    };
    format!(
        "{}: {}, {}, in a graph run.",
        explained.budgets[costs.budget].label,
        take(costs.on_device, &costs.devices, costs.device_ns),
        take(costs.on_host, &[costs.host], costs.host_ns),
    )
}
