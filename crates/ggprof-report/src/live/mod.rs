//! A running program: as a screen of text, as a line of JSON, as metrics.

mod json;
mod metrics;
mod screen;

pub use json::json_line;
pub use metrics::open_metrics;
pub use screen::{Shown, Sort, screen};

use ggprof_analysis::live::{Frame, OpNow};
use ggprof_analysis::step::StepKind;
use ggprof_trace::{Dropped, Quantity};
use std::collections::BTreeMap;

/// Ops by name and backend, whatever they were for, or of one kind of step; longest first.
fn ops_of(frame: &Frame, kind: Option<StepKind>) -> Vec<OpNow> {
    let mut sums: BTreeMap<(&str, &str), OpNow> = BTreeMap::new();
    for op in frame.ops.iter().filter(|op| kind.is_none_or(|kind| op.kind == kind)) {
        match sums.get_mut(&(op.name.as_str(), op.backend.as_str())) {
            None => _ = sums.insert((&op.name, &op.backend), op.clone()),
            Some(sum) => {
                sum.count += op.count;
                sum.total_ns += op.total_ns;
                sum.bytes = sum.bytes.zip(op.bytes).map(|(a, b)| a + b);
            }
        }
    }
    let mut ops: Vec<OpNow> = sums.into_values().collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.total_ns));
    ops
}

/// What a sensor measures is called in machines' output, its unit, and the sensor's own units in one
/// of these.
fn quantity(quantity: Quantity) -> (&'static str, &'static str, f64) {
    match quantity {
        Quantity::DeviceClock => ("device_clock", "hertz", 1.0),
        Quantity::DeviceMemoryClock => ("device_memory_clock", "hertz", 1.0),
        Quantity::DevicePower => ("device_power", "watts", 1e6),
        Quantity::DeviceEnergy => ("device_energy", "joules", 1e6),
        Quantity::DeviceMemory => ("device_memory", "bytes", 1.0),
        Quantity::DeviceUtilisation => ("device_utilisation", "ratio", 100.0),
        Quantity::ProcessorClock => ("processor_clock", "hertz", 1.0),
        Quantity::LowestProcessorClock => ("lowest_processor_clock", "hertz", 1.0),
        Quantity::HighestProcessorClock => ("highest_processor_clock", "hertz", 1.0),
        Quantity::PackageEnergy => ("package_energy", "joules", 1e6),
        Quantity::DeviceClockLimit => ("device_clock_limit", "hertz", 1.0),
        Quantity::ProcessorClockLimit => ("processor_clock_limit", "hertz", 1.0),
        Quantity::UsableProcessors => ("usable", "processors", 1.0),
        Quantity::MachineTime => ("machine_processor_time", "seconds", 1e6),
        Quantity::ProgramTime => ("program_processor_time", "seconds", 1e6),
        Quantity::StolenTime => ("stolen_processor_time", "seconds", 1e6),
        Quantity::ThrottledTime => ("throttled_processor_time", "seconds", 1e6),
    }
}

/// What a kind of loss is called in machines' output.
fn dropped_key(dropped: Dropped) -> &'static str {
    match dropped {
        Dropped::Records => "records",
        Dropped::GraphRuns => "graph_runs",
        Dropped::ThreadShares => "thread_shares",
        Dropped::Threads => "threads",
        Dropped::Nodes => "nodes",
        Dropped::StrayOps => "stray_ops",
        Dropped::Faults => "faults",
        Dropped::Backends => "backends",
        Dropped::Descriptions => "descriptions",
        Dropped::DeviceRecords => "device_records",
        Dropped::Children => "children",
        Dropped::UnclearOps => "unclear_ops",
    }
}
