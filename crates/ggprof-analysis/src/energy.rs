//! At which clocks devices ran, and what energy they used: in all, and for a token of the prompt and
//! of what was generated. Sensors are of whole devices, so that others who use one are counted, too.

use crate::gaps::Gaps;
use crate::phases::{Phase, PhaseKind};
use ggprof_trace::{Gap, Process, Quantity, Sensor, Trace};

/// A time of fewer readings than this tells nothing of its energy.
const LEAST_READINGS: usize = 2;

#[derive(Debug)]
pub struct DevicePower {
    pub device: String,
    pub clock_hz: Option<Spread>,
    /// From the first event to the last, without what was not recorded or not asked about.
    pub energy: Option<Energy>,
    pub watts: Option<f64>,
    /// Its energy could be read by others than the user.
    pub is_forbidden: bool,
    /// How far readings are apart.
    pub every_ns: u64,
    pub phases: Vec<PhaseEnergy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    pub lowest: u64,
    pub median: u64,
    pub highest: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    pub joules: f64,
    pub from: EnergyFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyFrom {
    /// The device counts it.
    Counter,
    /// Power over time, between readings.
    Power,
}

#[derive(Debug)]
pub struct PhaseEnergy {
    pub kind: PhaseKind,
    pub tokens: u64,
    pub wall_ns: u64,
    /// `None` where it was too short for the readings.
    pub energy: Option<Energy>,
}

impl PhaseEnergy {
    pub fn joules_per_token(&self) -> Option<f64> {
        self.energy.filter(|_| self.tokens > 0).map(|energy| energy.joules / self.tokens as f64)
    }
}

/// What there is of each device that has a sensor.
pub fn energy(trace: &Trace, phases: &[Phase]) -> Vec<DevicePower> {
    let Some(span) = trace.span_ns() else { return Vec::new() };
    let gaps = Gaps::of(trace);
    let mut devices: Vec<((u16, Kind), Vec<&Sensor>)> = Vec::new();
    for sensor in trace.sensors.iter().filter(|sensor| is_of_energy(sensor.quantity)) {
        let kind = (sensor.machine, Kind::of(sensor));
        match devices.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sensors)) => sensors.push(sensor),
            None => devices.push((kind, vec![sensor])),
        }
    }
    let device = |((machine, kind), sensors): &((u16, Kind), Vec<&Sensor>)| {
        let uses = |phase: &&Phase| trace.uses_machine(phase.process, *machine);
        let phases: Vec<&Phase> = phases.iter().filter(uses).collect();
        let name = device_name(trace, sensors[0]);
        device_power(name, *kind, sensors, &phases, span, &gaps)
    };
    devices.iter().map(device).collect()
}

/// Whether a quantity is a clock, or has to do with energy.
fn is_of_energy(quantity: Quantity) -> bool {
    !matches!(
        quantity,
        Quantity::UsableProcessors
            | Quantity::MachineTime
            | Quantity::ProgramTime
            | Quantity::StolenTime
            | Quantity::ThrottledTime
    )
}

/// Which sensors belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Device(u32),
    Processors,
    Package(u32),
}

impl Kind {
    fn of(sensor: &Sensor) -> Kind {
        match sensor.quantity {
            Quantity::PackageEnergy => Kind::Package(sensor.device),
            Quantity::ProcessorClock
            | Quantity::LowestProcessorClock
            | Quantity::HighestProcessorClock
            | Quantity::ProcessorClockLimit => Kind::Processors,
            _ => Kind::Device(sensor.device),
        }
    }
}

/// What people call the device of a sensor.
pub fn device_name(trace: &Trace, sensor: &Sensor) -> String {
    let name = match Kind::of(sensor) {
        Kind::Device(number) => format!("GPU {number} {}", sensor.name).trim_end().to_owned(),
        Kind::Processors => "CPU".to_owned(),
        Kind::Package(number) if sensor.name.is_empty() => format!("package-{number}"),
        Kind::Package(_) => sensor.name.clone(),
    };
    on_machine(trace, sensor.machine, name)
}

/// A device's name, with its machine where there are several. Machines have no names, so one is called
/// after the first process that ran there.
pub fn on_machine(trace: &Trace, machine: u16, name: String) -> String {
    let is_on_it = |process: &&Process| process.machine == machine;
    match trace.processes.iter().find(is_on_it).filter(|_| trace.has_machines()) {
        Some(process) => format!("{name}, machine of {}", process.label()),
        None => name,
    }
}

fn device_power(
    device: String,
    kind: Kind,
    sensors: &[&Sensor],
    phases: &[&Phase],
    span: (u64, u64),
    gaps: &Gaps,
) -> DevicePower {
    let find = |quantity: Quantity| sensors.iter().copied().find(|one| one.quantity == quantity);
    let meters = Meters {
        counter: find(Quantity::DeviceEnergy).or(find(Quantity::PackageEnergy)),
        power: find(Quantity::DevicePower),
    };
    let times = outside(&gaps.common, vec![span]);
    let energy = meters.over(&times);
    let seconds = length(&times) as f64 / 1e9;
    DevicePower {
        device,
        clock_hz: match kind {
            Kind::Processors => processor_clock(find, span),
            _ => find(Quantity::DeviceClock).and_then(|sensor| spread(sensor, span)),
        },
        energy,
        watts: energy.filter(|_| seconds > 0.0).map(|energy| energy.joules / seconds),
        is_forbidden: sensors.iter().any(|sensor| sensor.is_forbidden),
        every_ns: sensors[0].every_ns,
        phases: match meters.any() {
            true => by_kind(&meters, phases, gaps),
            false => Vec::new(),
        },
    }
}

fn by_kind(meters: &Meters<'_>, phases: &[&Phase], gaps: &Gaps) -> Vec<PhaseEnergy> {
    let kinds = [PhaseKind::Prompt, PhaseKind::Generation, PhaseKind::Mixed, PhaseKind::Encoding];
    let of_kind = kinds.into_iter().map(|kind| {
        let of_kind = || phases.iter().filter(move |phase| phase.kind == kind);
        let recorded = |phase: &&Phase| {
            outside(gaps.of_process(phase.process), vec![(phase.start_ns, phase.end_ns)])
        };
        let times = merged(of_kind().flat_map(recorded).collect());
        PhaseEnergy {
            kind,
            tokens: of_kind().fold(0, |sum: u64, phase| sum.saturating_add(phase.tokens)),
            wall_ns: length(&times),
            energy: meters.over(&times),
        }
    });
    of_kind.filter(|phase| phase.wall_ns > 0).collect()
}

/// What tells the energy of a device.
struct Meters<'t> {
    counter: Option<&'t Sensor>,
    power: Option<&'t Sensor>,
}

impl Meters<'_> {
    fn any(&self) -> bool {
        let has_any = |sensor: Option<&Sensor>| sensor.is_some_and(|one| !one.times_ns.is_empty());
        has_any(self.counter) || has_any(self.power)
    }

    /// By the counter, which may stand still over short times, or else by power.
    fn over(&self, times: &[(u64, u64)]) -> Option<Energy> {
        let counted = self.counter.and_then(|sensor| sum(sensor, times, counted));
        let from_power = || {
            let joules = self.power.and_then(|sensor| sum(sensor, times, integrated))?;
            Some(Energy { joules, from: EnergyFrom::Power })
        };
        let counted = counted.filter(|&joules| joules > 0.0);
        counted.map(|joules| Energy { joules, from: EnergyFrom::Counter }).or_else(from_power)
    }
}

/// `None` where the readings do not cover the times, or there are too few in them.
fn sum(sensor: &Sensor, times: &[(u64, u64)], over: fn(&Sensor, (u64, u64)) -> f64) -> Option<f64> {
    let (first, last) = (*sensor.times_ns.first()?, *sensor.times_ns.last()?);
    let covers = |&(start, end): &(u64, u64)| {
        first <= start.saturating_add(sensor.every_ns)
            && end <= last.saturating_add(sensor.every_ns)
    };
    let inside = |&(start, end): &(u64, u64)| {
        let before = sensor.times_ns.partition_point(|&ns| ns < start);
        sensor.times_ns.partition_point(|&ns| ns <= end).saturating_sub(before)
    };
    let readings: usize = times.iter().map(inside).sum();
    let enough = readings >= LEAST_READINGS && times.iter().all(covers);
    enough.then(|| times.iter().map(|&time| over(sensor, time)).sum::<f64>() / 1e6)
}

/// In µJ, of a counter.
fn counted(sensor: &Sensor, (start, end): (u64, u64)) -> f64 {
    (count_at(sensor, end) - count_at(sensor, start)).max(0.0)
}

/// On the line through the readings around a moment, or through the nearest two: work may go on
/// for a while after the last reading. With one reading nothing was counted.
fn count_at(sensor: &Sensor, ns: u64) -> f64 {
    let after = sensor.times_ns.partition_point(|&time| time <= ns);
    let after = after.min(sensor.times_ns.len().saturating_sub(1)).max(1);
    let (Some(times), Some(values)) =
        (sensor.times_ns.get(after - 1..=after), sensor.values.get(after - 1..=after))
    else {
        return 0.0;
    };
    let part = (ns as f64 - times[0] as f64) / (times[1] - times[0]).max(1) as f64;
    values[0] as f64 + (values[1] as f64 - values[0] as f64) * part
}

/// In µJ, of power that goes evenly from one reading to the next.
fn integrated(sensor: &Sensor, (start, end): (u64, u64)) -> f64 {
    let first = sensor.times_ns.partition_point(|&ns| ns <= start);
    let behind = sensor.times_ns.partition_point(|&ns| ns < end);
    let inside = sensor.times_ns.get(first..behind).unwrap_or_default().iter().copied();
    let mut energy = 0.0;
    let mut from = start;
    for to in inside.chain([end]) {
        let mean = (value_at(sensor, from) + value_at(sensor, to)) / 2.0;
        energy += mean * (to - from) as f64 / 1e9;
        from = to;
    }
    energy
}

/// Between two readings on the line through them; outside of all, the nearest.
fn value_at(sensor: &Sensor, ns: u64) -> f64 {
    let after = sensor.times_ns.partition_point(|&time| time <= ns);
    let value = |at: usize| sensor.values.get(at).map_or(0.0, |&value| value as f64);
    let (Some(before), Some(&next_ns)) = (after.checked_sub(1), sensor.times_ns.get(after)) else {
        return value(after.saturating_sub(1));
    };
    let before_ns = sensor.times_ns[before];
    let part = (ns - before_ns) as f64 / (next_ns - before_ns).max(1) as f64;
    value(before) + (value(after) - value(before)) * part
}

fn processor_clock<'t>(
    find: impl Fn(Quantity) -> Option<&'t Sensor>,
    span: (u64, u64),
) -> Option<Spread> {
    let of = |quantity| find(quantity).and_then(|sensor| spread(sensor, span));
    Some(Spread {
        lowest: of(Quantity::LowestProcessorClock)?.lowest,
        median: of(Quantity::ProcessorClock)?.median,
        highest: of(Quantity::HighestProcessorClock)?.highest,
    })
}

/// Of the readings within a time, or of the one before it.
fn spread(sensor: &Sensor, (start, end): (u64, u64)) -> Option<Spread> {
    let first = sensor.times_ns.partition_point(|&ns| ns <= start).saturating_sub(1);
    let behind = sensor.times_ns.partition_point(|&ns| ns <= end);
    let mut values = sensor.values.get(first..behind)?.to_vec();
    values.sort_unstable();
    let median = *values.get(values.len() / 2)?;
    Some(Spread { lowest: *values.first()?, median, highest: *values.last()? })
}

/// Times without what is in them twice.
fn merged(mut times: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    times.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in times {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end.max(start))),
        }
    }
    merged
}

/// What is left of times without gaps, which come by time.
fn outside(gaps: &[Gap], times: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for (start, end) in times {
        let mut from = start;
        let first = gaps.partition_point(|gap| gap.end_ns <= start);
        for gap in gaps[first..].iter().take_while(|gap| gap.start_ns < end) {
            left.push((from, gap.start_ns.max(from)));
            from = gap.end_ns.max(from);
        }
        left.push((from.min(end), end));
    }
    left.retain(|(start, end)| start < end);
    left
}

fn length(times: &[(u64, u64)]) -> u64 {
    times.iter().map(|(start, end)| end - start).sum()
}

/// A counter of energy as power, in watts: from each moment on.
pub fn watts_of_counter(sensor: &Sensor) -> Vec<(u64, f64)> {
    let readings = || sensor.times_ns.iter().zip(&sensor.values);
    let watts = readings().zip(readings().skip(1)).map(|((&from, before), (&to, after))| {
        // Microjoules per nanosecond are thousands of watts.
        (from, after.saturating_sub(*before) as f64 * 1e3 / (to - from).max(1) as f64)
    });
    watts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Stream;
    use ggprof_trace::{ProcessIndex, text_fixture};

    const SECOND: u64 = 1_000_000_000;

    /// Read once a second, from the second on that is given.
    fn sensor(quantity: Quantity, first: u64, values: &[u64]) -> Sensor {
        Sensor {
            quantity,
            device: 0,
            machine: 0,
            process: None,
            name: "H200".into(),
            is_forbidden: false,
            every_ns: SECOND,
            times_ns: (first..).take(values.len()).map(|second| second * SECOND).collect(),
            values: values.to_vec(),
        }
    }

    /// Ten seconds, of which two are a prompt and six generation.
    fn trace(sensors: Vec<Sensor>) -> (Trace, Vec<Phase>) {
        let end = 10 * SECOND;
        let mut trace = text_fixture::parse(&format!("backend 0 CUDA0 gpu\nop CUDA0 ADD 0..{end}"));
        trace.sensors = sensors;
        let phase = |kind, tokens, start: u64, end: u64| Phase {
            kind,
            is_guess: false,
            stream: Stream::Scheduler(0),
            process: None,
            steps: 1,
            runs: 1,
            tokens,
            sequences: 1,
            start_ns: start * SECOND,
            end_ns: end * SECOND,
            depth: None,
            unrecorded_ns: 0,
        };
        let phases = vec![
            phase(PhaseKind::Prompt, 100, 0, 2),
            phase(PhaseKind::Generation, 5, 2, 6),
            // Another scheduler at the same time, and one after it.
            phase(PhaseKind::Generation, 5, 4, 8),
        ];
        (trace, phases)
    }

    /// 100 W for two seconds, then 50 W.
    const COUNTER: [u64; 11] = [0, 100, 200, 250, 300, 350, 400, 450, 500, 550, 600];

    #[test]
    fn energy_is_what_the_device_counts() {
        let counter = COUNTER.map(|joules| joules * 1_000_000);
        let (trace, phases) = trace(vec![
            sensor(Quantity::DeviceEnergy, 0, &counter),
            sensor(Quantity::DevicePower, 0, &[1; 11]),
            sensor(Quantity::DeviceClock, 0, &[1980, 1200, 1980, 1700, 1900]),
        ]);
        let device = &energy(&trace, &phases)[0];
        assert_eq!(device.device, "GPU 0 H200");
        assert_eq!(device.energy, Some(Energy { joules: 600.0, from: EnergyFrom::Counter }));
        assert_eq!(device.watts, Some(60.0));
        assert_eq!(device.clock_hz, Some(Spread { lowest: 1200, median: 1900, highest: 1980 }));
        let phases: Vec<_> = device
            .phases
            .iter()
            .map(|one| (one.wall_ns / SECOND, one.joules_per_token()))
            .collect();
        assert_eq!(phases, [(2, Some(2.0)), (6, Some(30.0))]);
    }

    #[test]
    fn mixed_batches_have_a_row_of_their_own() {
        let counter = COUNTER.map(|joules| joules * 1_000_000);
        let (trace, mut phases) = trace(vec![sensor(Quantity::DeviceEnergy, 0, &counter)]);
        phases[2] =
            Phase { kind: PhaseKind::Mixed, tokens: 20, start_ns: 6 * SECOND, ..phases[2].clone() };
        let rows = &energy(&trace, &phases)[0].phases;
        let rows: Vec<_> = rows.iter().map(|it| (it.kind, it.joules_per_token())).collect();
        let of = |kind, joules| (kind, Some(joules));
        let (prompt, generation) = (of(PhaseKind::Prompt, 2.0), of(PhaseKind::Generation, 40.0));
        assert_eq!(rows, [prompt, generation, of(PhaseKind::Mixed, 5.0)]);
    }

    /// Two seconds of prompt and then two minutes of which nothing is known, or nothing was asked.
    #[test]
    fn what_was_not_recorded_uses_no_energy() {
        let counter = COUNTER.map(|joules| joules * 1_000_000);
        let (whole, mut phases) = trace(vec![sensor(Quantity::DeviceEnergy, 0, &counter)]);
        let [a, b, c] = [2, 8, 10].map(|second| second * SECOND);
        let mut trace = text_fixture::parse(&format!(
            "backend 0 CUDA0 gpu
             run 0..{a} number=1
             run {b}..{c} number=5
             op CUDA0 ADD 0..{a} x run=0
             op CUDA0 ADD {b}..{c} x run=1"
        ));
        trace.sensors = whole.sensors;
        phases.truncate(2);
        let device = &energy(&trace, &phases)[0];
        // 100 W for two seconds, 50 W for the last two.
        assert_eq!(device.energy.map(|energy| energy.joules), Some(300.0));
        assert_eq!(device.watts, Some(75.0));
        let kinds: Vec<_> = device.phases.iter().map(|one| one.wall_ns / SECOND).collect();
        assert_eq!(kinds, [2]);
    }

    #[test]
    fn where_it_does_not_count_energy_is_power_over_time() {
        let watts = [100, 100, 50, 50, 50, 50, 50, 50, 50, 50, 50].map(|watts| watts * 1_000_000);
        for counter in [None, Some([7; 11])] {
            let counter = counter.map(|values| sensor(Quantity::DeviceEnergy, 0, &values));
            let power = sensor(Quantity::DevicePower, 0, &watts);
            let (trace, phases) = trace(counter.into_iter().chain([power]).collect());
            let device = &energy(&trace, &phases)[0];
            // From one reading to the next it goes evenly: 75 W in the second between.
            let expected = Energy { joules: 100.0 + 75.0 + 400.0, from: EnergyFrom::Power };
            assert_eq!(device.energy, Some(expected));
        }
    }

    /// Of a program that still runs, the last events are newer than the last reading.
    #[test]
    fn what_came_after_the_last_reading_goes_on_like_before_it() {
        let counter = COUNTER.map(|joules| joules * 1_000_000);
        for (first, readings, joules) in [(0, &counter[..10], 600.0), (1, &counter[1..10], 600.0)] {
            let (trace, phases) = trace(vec![sensor(Quantity::DeviceEnergy, first, readings)]);
            let found = energy(&trace, &phases)[0].energy.map(|energy| energy.joules);
            assert_eq!(found, Some(joules));
        }
        let (trace, phases) = trace(vec![sensor(Quantity::DeviceEnergy, 9, &[7])]);
        assert_eq!(energy(&trace, &phases)[0].energy, None);
    }

    #[test]
    fn what_readings_do_not_cover_stays_empty() {
        let (late, phases) = trace(vec![sensor(Quantity::DeviceEnergy, 3, &COUNTER)]);
        let device = &energy(&late, &phases)[0];
        assert_eq!(device.energy, None);
        let joules: Vec<_> = device.phases.iter().map(|phase| phase.energy.is_some()).collect();
        assert_eq!(joules, [false, true]);
        // Too few readings in two seconds.
        let mut rare = sensor(Quantity::DeviceEnergy, 0, &[0, 600_000_000]);
        (rare.every_ns, rare.times_ns) = (5 * SECOND, vec![0, 10 * SECOND]);
        let (rare, phases) = trace(vec![rare]);
        let device = &energy(&rare, &phases)[0];
        assert_eq!(device.watts, Some(60.0));
        assert!(device.phases.iter().all(|phase| phase.energy.is_none()));
    }

    #[test]
    fn the_clock_of_processors_has_its_own_ends() {
        let (trace, phases) = trace(vec![
            sensor(Quantity::ProcessorClock, 0, &[20, 30]),
            sensor(Quantity::LowestProcessorClock, 0, &[8, 9]),
            sensor(Quantity::HighestProcessorClock, 0, &[40, 50]),
        ]);
        let device = &energy(&trace, &phases)[0];
        assert_eq!(device.clock_hz, Some(Spread { lowest: 8, median: 30, highest: 50 }));
        assert_eq!((device.device.as_str(), device.energy, device.phases.len()), ("CPU", None, 0));
    }

    #[test]
    fn a_counter_as_power() {
        let watts = watts_of_counter(&sensor(Quantity::PackageEnergy, 2, &[5, 15_000_005, 0]));
        assert_eq!(watts, [(2 * SECOND, 15.0), (3 * SECOND, 0.0)]);
    }

    #[test]
    fn each_machine_has_its_own_phases() {
        let watts = |machine, watts: u64| Sensor {
            machine,
            ..sensor(Quantity::DevicePower, 0, &[watts * 1_000_000; 11])
        };
        let (mut trace, mut phases) = trace(vec![watts(0, 100), watts(1, 700)]);
        let process = |pid, machine| Process { pid, machine, ..Process::default() };
        trace.processes = vec![process(1, 0), process(2, 1)];
        for (at, phase) in phases.iter_mut().enumerate() {
            phase.process = Some(ProcessIndex(if at == 0 { 0 } else { 1 }));
        }
        let devices = energy(&trace, &phases);
        let joules = |device: &DevicePower| {
            let phase = &device.phases[0];
            (device.phases.len(), phase.kind, phase.joules_per_token())
        };
        let shown: Vec<_> = devices.iter().map(joules).collect();
        assert_eq!(
            shown,
            [(1, PhaseKind::Prompt, Some(2.0)), (1, PhaseKind::Generation, Some(420.0))]
        );
        assert_eq!(devices[1].device, "GPU 0 H200, machine of  2");
    }
}
