//! What holds until it changes: how much memory there was, at which clock a device ran, and which
//! power it took.

use super::tables::since;
use ggprof_analysis::energy::{device_name, on_machine, watts_of_counter};
use ggprof_analysis::memory::{DeviceMemory, memory};
use ggprof_trace::{Quantity, Sensor, Trace};
use serde_json::{Value, json};

const MEGABYTE: f64 = 1e6;

/// One of these.
pub(crate) struct Level {
    pub(crate) group: &'static str,
    pub(crate) label: String,
    /// Of the machine with this number.
    pub(crate) machine: u16,
    pub(crate) unit: &'static str,
    /// When it became what, in its unit.
    pub(crate) steps: Vec<(u64, f64)>,
}

/// A row of the page for each.
pub(super) fn rows(trace: &Trace, start_ns: u64) -> Vec<Value> {
    levels(trace).into_iter().map(|level| row(level, start_ns)).collect()
}

pub(crate) fn levels(trace: &Trace) -> Vec<Level> {
    let memory = memory(trace).devices.into_iter().map(|device| of_memory(trace, device));
    let sensors = trace.sensors.iter().filter_map(|sensor| of_sensor(trace, sensor));
    memory.chain(sensors).collect()
}

fn of_memory(trace: &Trace, of: DeviceMemory) -> Level {
    let label = on_machine(trace, of.machine, of.device);
    let steps = of.steps.iter().map(|step| (step.ns, step.bytes as f64 / MEGABYTE)).collect();
    Level { group: "Memory", label, machine: of.machine, unit: "MB", steps }
}

fn row(level: Level, start_ns: u64) -> Value {
    let Level { group, label, unit, steps, .. } = level;
    let (times, values): (Vec<i64>, Vec<f64>) =
        steps.into_iter().map(|(ns, value)| (since(ns, start_ns), value)).unzip();
    json!({"group": group, "label": label, "unit": unit, "times": times, "values": values})
}

/// `None` for what has no row: the others of a device say more.
fn of_sensor(trace: &Trace, sensor: &Sensor) -> Option<Level> {
    let scaled = |unit: f64| -> Vec<(u64, f64)> {
        let values = sensor.values.iter().map(|&value| value as f64 / unit);
        sensor.times_ns.iter().copied().zip(values).collect()
    };
    let has_power = || {
        let is_of_it =
            |other: &&Sensor| (other.machine, other.device) == (sensor.machine, sensor.device);
        let mut others = trace.sensors.iter().filter(is_of_it);
        others.any(|other| other.quantity == Quantity::DevicePower)
    };
    let (unit, mut steps) = match sensor.quantity {
        Quantity::DeviceClock | Quantity::ProcessorClock => ("MHz", scaled(1e6)),
        Quantity::DevicePower => ("W", scaled(1e6)),
        Quantity::PackageEnergy => ("W", watts_of_counter(sensor)),
        Quantity::DeviceEnergy if !has_power() => ("W", watts_of_counter(sensor)),
        Quantity::DeviceMemory => ("MB in use", scaled(MEGABYTE)),
        _ => return None,
    };
    // Nothing is known behind the last reading.
    let last = sensor.times_ns.last()?;
    steps.push((last.saturating_add(sensor.every_ns), 0.0));
    let device = match sensor.quantity {
        Quantity::ProcessorClock | Quantity::PackageEnergy => device_name(trace, sensor),
        _ => on_machine(trace, sensor.machine, format!("GPU {}", sensor.device)),
    };
    let label = format!("{device} {unit}");
    Some(Level { group: "Sensors", label, machine: sensor.machine, unit, steps })
}
