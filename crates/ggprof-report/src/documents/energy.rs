//! Clocks, power and energy of devices.

use super::phases::kind_name;
use crate::document::Block;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::Phases;
use ggprof_analysis::energy::{DevicePower, Energy, EnergyFrom, energy};
use ggprof_trace::Trace;

const DEVICES: [Column; 7] = [
    Column::left("device", "device", 0),
    Column::right("clock_min_hz", "lowest clock", 2),
    Column::right("clock_median_hz", "median", 1),
    Column::right("clock_max_hz", "highest", 2),
    Column::right("watts", "mean power", 0),
    Column::right("joules", "energy", 0),
    Column::left("from", "by", 3),
];

const PHASES: [Column; 7] = [
    Column::left("device", "device", 0),
    Column::left("phase", "phase", 0),
    Column::right("tokens", "tokens", 1),
    Column::right("wall_ns", "wall", 1),
    Column::right("joules", "energy", 0),
    Column::right("joules_per_token", "a token", 0),
    Column::left("from", "by", 3),
];

/// Nothing where nothing was read.
pub(super) fn overview(document: &mut Document, trace: &Trace, phases: &Phases) {
    let devices = energy(trace, &phases.phases);
    if devices.is_empty() {
        return;
    }
    document.heading("energy", "Clocks and energy of whole devices, whoever used them");
    let rows = devices.iter().map(device_row).collect();
    document.table(Table { key: "energy", columns: DEVICES.to_vec(), rows });
    for device in devices.iter().filter(|device| device.is_forbidden) {
        let sentence = format!(
            "The energy of {} is not known: the system lets only its administrator read it.",
            device.device
        );
        document.blocks.push(Block::Warning(sentence));
    }
    let rows: Vec<_> = devices.iter().flat_map(phase_rows).collect();
    if !rows.is_empty() {
        document.heading("energy_by_phase", "Energy by phase");
        document.table(Table { key: "energy_by_phase", columns: PHASES.to_vec(), rows });
        document.blocks.extend(why_empty(&devices).map(Block::Warning));
    }
}

fn why_empty(devices: &[DevicePower]) -> Option<String> {
    let is_empty = |device: &&DevicePower| device.phases.iter().any(|it| it.energy.is_none());
    let every = devices.iter().find(is_empty)?.every_ns;
    Some(format!(
        "A phase without its energy is shorter than two readings of the sensors, which are {} \
         apart, or was not covered by them.",
        Cell::Nanos(every as f64).words()
    ))
}

fn device_row(device: &DevicePower) -> Vec<Cell> {
    let clock = |pick: fn(&ggprof_analysis::energy::ClockRange) -> u64| {
        Cell::or_nothing(device.clock_hz.as_ref().map(pick), |hertz| Cell::Hertz(hertz as f64))
    };
    vec![
        Cell::text(&device.device),
        clock(|spread| spread.lowest),
        clock(|spread| spread.median),
        clock(|spread| spread.highest),
        Cell::or_nothing(device.watts, Cell::Watts),
        joules(device.energy),
        from(device.energy),
    ]
}

fn phase_rows(device: &DevicePower) -> impl Iterator<Item = Vec<Cell>> + '_ {
    device.phases.iter().map(|phase| {
        vec![
            Cell::text(&device.device),
            Cell::text(kind_name(phase.kind)),
            Cell::Count(phase.tokens.into()),
            Cell::Nanos(phase.wall_ns as f64),
            joules(phase.energy),
            Cell::or_nothing(phase.joules_per_token(), Cell::Joules),
            from(phase.energy),
        ]
    })
}

fn joules(energy: Option<Energy>) -> Cell {
    Cell::or_nothing(energy, |energy| Cell::Joules(energy.joules))
}

fn from(energy: Option<Energy>) -> Cell {
    Cell::or_nothing(energy, |energy| {
        Cell::text(match energy.from {
            EnergyFrom::Counter => "its counter",
            EnergyFrom::Power => "power over time",
        })
    })
}
