//! R16: a clock well below its maximum while there was work. Of processors it is the fastest one's: those
//! that have nothing to do are slow, and some machines have slow ones besides.

use super::limit;
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent, is_of_host};
use crate::energy::device_name;
use ggprof_trace::{Backend, BackendIndex, Quantity, Sensor};

#[derive(Debug, Clone, PartialEq)]
pub struct SlowClock {
    pub shown: ClockShown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClockShown {
    pub device: String,
    pub median_hz: u64,
    pub highest_hz: u64,
}

pub(super) const RULE: Rule = Rule(16);

/// Of the clock that is to be expected.
const SLOW: f64 = 0.8;
/// Fewer readings may have come at any moment.
const LEAST_READINGS: usize = 3;
/// The highest clock of processors is that of so many at work. Nothing says which one all together have:
/// it differs by model and cooling, and is about half of the highest in the worst case.
const ALONE: u32 = 2;
const OF_ALL: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let process = scene.process_of(budget);
    let clocks = scene.trace.sensors.iter().filter(|sensor| {
        matches!(sensor.quantity, Quantity::DeviceClock | Quantity::HighestProcessorClock)
            && scene.trace.uses_machine(process, sensor.machine)
    });
    clocks.filter_map(|sensor| of_clock(scene, place, budget, sensor)).collect()
}

fn of_clock(scene: &Scene<'_>, place: usize, budget: &Budget, sensor: &Sensor) -> Option<Finding> {
    let mut values = readings(scene, budget, sensor);
    values.sort_unstable();
    let median_hz = *values.get(values.len() / 2).filter(|_| values.len() >= LEAST_READINGS)?;
    let highest_hz = highest(scene, sensor)?;
    let is_of_devices = sensor.quantity == Quantity::DeviceClock;
    let are_many = !is_of_devices && scene.tallies[place].threads > ALONE;
    let expected_hz = highest_hz as f64 * if are_many { OF_ALL } else { 1.0 };
    if median_hz as f64 >= SLOW * expected_hz {
        return None;
    }
    let driven = |backend: BackendIndex| drives(scene, budget, sensor, backend);
    let computing_ns = budget.sum(|spent| match spent {
        Spent::Computing { backend, .. } => driven(backend),
        _ => false,
    });
    // What reading the memory takes is no shorter at a higher clock.
    let reading_ns = reading_ns(scene, place, budget, driven);
    let left_ns = (computing_ns as f64 * median_hz as f64 / expected_hz).max(reading_ns);
    if left_ns >= SLOW * computing_ns as f64 {
        return None;
    }
    let cost_ns = computing_ns - left_ns as u64;
    let shown = ClockShown { device: device_name(scene.trace, sensor), median_hz, highest_hz };
    let what = What::SlowClock(SlowClock { shown });
    let certainty = Certainty::Possible;
    Some(Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what })
}

/// What a sensor said in a group of phases.
fn readings(scene: &Scene<'_>, budget: &Budget, sensor: &Sensor) -> Vec<u64> {
    let mut values: Vec<u64> = Vec::new();
    for &phase in &budget.phases {
        let phase = &scene.phases.phases[phase as usize];
        let first = sensor.times_ns.partition_point(|&ns| ns < phase.start_ns);
        let behind = sensor.times_ns.partition_point(|&ns| ns < phase.end_ns).max(first);
        values.extend(sensor.values.get(first..behind).unwrap_or_default());
    }
    values
}

/// Whether the clock of a sensor is that of a backend, as far as names and numbers tell. Drivers know all
/// cards of a machine, and a program uses some of them.
fn drives(scene: &Scene<'_>, budget: &Budget, sensor: &Sensor, backend: BackendIndex) -> bool {
    let trace = scene.trace;
    let of = trace.backend(backend);
    let is_on_machine = trace.machine_of(of.process) == sensor.machine;
    if sensor.quantity != Quantity::DeviceClock {
        return is_on_machine && is_of_host(trace, backend);
    }
    let clocks = trace.sensors.iter().filter(|it| {
        (it.quantity, it.machine) == (Quantity::DeviceClock, sensor.machine)
            && it.name == of.description
    });
    is_on_machine
        && sensor.name == of.description
        && (number_of(of) == Some(sensor.device) || clocks.count() == 1)
        && !is_unused(scene, budget, sensor)
}

/// ggml numbers the devices of an API: `CUDA1`.
fn number_of(backend: &Backend) -> Option<u32> {
    let label = backend.device_label();
    let name = label.trim_end_matches(|letter: char| letter.is_ascii_digit());
    label[name.len()..].parse().ok()
}

/// Where variables of the environment hide cards from a program, its numbers are not those of the driver.
fn is_unused(scene: &Scene<'_>, budget: &Budget, clock: &Sensor) -> bool {
    let is_it = |it: &&Sensor| {
        let whose = |it: &Sensor| (it.machine, it.device);
        it.quantity == Quantity::DeviceUtilisation && whose(it) == whose(clock)
    };
    let used = scene.trace.sensors.iter().find(is_it).map(|it| readings(scene, budget, it));
    used.is_some_and(|used| used.len() >= LEAST_READINGS && used.iter().all(|&it| it == 0))
}

/// What a phase that reads all weights for each token would take if nothing but the memory counted; 0 where
/// that is not known.
fn reading_ns(
    scene: &Scene<'_>,
    place: usize,
    budget: &Budget,
    is_it: impl Fn(BackendIndex) -> bool,
) -> f64 {
    let rate = scene.peaks.and_then(|_| limit::rate(scene, place, budget));
    let of_roof = rate.filter(|rate| is_it(rate.backend)).and_then(|rate| rate.of_roof());
    of_roof.map_or(0.0, |share| share * budget.wall_ns as f64)
}

/// The highest that the device can be set to, or that was read of it.
fn highest(scene: &Scene<'_>, sensor: &Sensor) -> Option<u64> {
    let limit = match sensor.quantity {
        Quantity::DeviceClock => Quantity::DeviceClockLimit,
        _ => Quantity::ProcessorClockLimit,
    };
    let of_device = |it: &&Sensor| (it.machine, it.device) == (sensor.machine, sensor.device);
    let is_it = |it: &&Sensor| it.quantity == limit || it.quantity == sensor.quantity;
    let all = scene.trace.sensors.iter().filter(is_it);
    all.filter(of_device).filter_map(|it| it.values.iter().copied().max()).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{explain_on, found_in, parse, tokens};
    use crate::peaks::{CpuPeaks, Peaks, ReadRate};
    use ggprof_trace::{Trace, text_fixture};

    fn sensor(quantity: Quantity, hz: u64) -> Sensor {
        of_device(0, quantity, hz)
    }

    fn of_device(device: u32, quantity: Quantity, hz: u64) -> Sensor {
        Sensor {
            quantity,
            device,
            machine: 0,
            process: None,
            name: "H200".into(),
            is_forbidden: false,
            every_ns: 1000,
            times_ns: (0..10).map(|at| at * 1000).collect(),
            values: vec![hz; 10],
        }
    }

    /// A program whose device is one of this name.
    fn cards(text: &str) -> Trace {
        text_fixture::parse(&format!("backend 0 GPU0 gpu H200\n{}", text.replace("GPU", "GPU0")))
    }

    #[test]
    fn a_clock_below_its_limit() {
        let text = tokens(10, 1000, 1000, "op GPU MUL_MAT 0..1000 Qcur-0 run=@ measured=device");
        let mut trace = cards(&text);
        trace.sensors = vec![
            sensor(Quantity::DeviceClock, 1_000_000_000),
            sensor(Quantity::DeviceClockLimit, 2_000_000_000),
        ];
        let found = found_in(&trace);
        assert_eq!((found[0].rule, found[0].cost_ns), (RULE, 5_000));
        trace.sensors[0].values = vec![1_900_000_000; 10];
        assert!(found_in(&trace).is_empty());
    }

    /// Most processors of a machine are idle beside a program of a few threads.
    #[test]
    fn processors_are_held_down_if_the_fastest_one_is() {
        let ops = "op CPU MUL_MAT 0..1000 Qcur-0 run=@ threads=1:1000:1000:0";
        let mut trace = parse(&tokens(10, 1000, 1000, ops));
        trace.sensors = vec![
            sensor(Quantity::ProcessorClock, 1_200_000_000),
            sensor(Quantity::LowestProcessorClock, 800_000_000),
            sensor(Quantity::HighestProcessorClock, 3_900_000_000),
            sensor(Quantity::ProcessorClockLimit, 4_000_000_000),
        ];
        assert!(found_in(&trace).is_empty());
        trace.sensors[2].values = vec![2_000_000_000; 10];
        let found = found_in(&trace);
        assert_eq!((found[0].rule, found[0].cost_ns), (RULE, 5_000));
    }

    /// The second card is there for somebody else, or has another name.
    #[test]
    fn cards_that_the_program_does_not_use_are_idle() {
        let text = tokens(10, 1000, 1000, "op GPU MUL_MAT 0..1000 Qcur-0 run=@ measured=device");
        let mut trace = cards(&text);
        let idle = |device| {
            [(Quantity::DeviceClock, 210_000_000), (Quantity::DeviceClockLimit, 1_980_000_000)]
                .map(|(quantity, hz)| of_device(device, quantity, hz))
        };
        trace.sensors = idle(1).to_vec();
        trace.sensors.push(sensor(Quantity::DeviceClock, 1_980_000_000));
        assert_eq!(found_in(&trace), []);
        // Drivers and programs may count them differently, but what computes is in use.
        trace.sensors = idle(0).to_vec();
        assert_eq!(found_in(&trace).len(), 1);
        trace.sensors.push(sensor(Quantity::DeviceUtilisation, 0));
        assert_eq!(found_in(&trace), []);
        trace.sensors = idle(0).to_vec();
        trace.sensors.iter_mut().for_each(|sensor| sensor.name = "L4".into());
        assert_eq!(found_in(&trace), []);
    }

    /// Of two cards of a program, one is slow.
    #[test]
    fn a_slow_card_costs_what_it_computes() {
        let ops = "op GPU MUL_MAT 0..400 Qcur-0 run=@ measured=device
                   op OTHER MUL_MAT 400..1000 Qcur-1 run=@ measured=device";
        let text = tokens(10, 1000, 1000, ops).replace("OTHER", "CUDA1").replace("GPU", "CUDA0");
        let mut trace = text_fixture::parse(&format!(
            "backend 0 CUDA0 gpu H200\nbackend 1 CUDA1 gpu H200\n{text}"
        ));
        trace.sensors = vec![
            of_device(0, Quantity::DeviceClock, 2_000_000_000),
            of_device(0, Quantity::DeviceClockLimit, 2_000_000_000),
            of_device(1, Quantity::DeviceClock, 1_000_000_000),
            of_device(1, Quantity::DeviceClockLimit, 2_000_000_000),
        ];
        let costs = found_in(&trace).into_iter().filter(|it| it.rule == RULE);
        assert_eq!(costs.map(|it| it.cost_ns).collect::<Vec<_>>(), [3_000]);
    }

    /// No processor has its highest clock while all of them work.
    #[test]
    fn many_threads_run_below_the_highest_clock() {
        let clock = |hz| {
            let ops = "op CPU MUL_MAT 0..1000 Qcur-0 run=@ threads=8:8000:1000:0";
            let mut trace = parse(&tokens(10, 1000, 1000, ops));
            trace.sensors = vec![
                sensor(Quantity::HighestProcessorClock, hz),
                sensor(Quantity::ProcessorClockLimit, 4_000_000_000),
            ];
            found_in(&trace).into_iter().map(|it| (it.rule, it.cost_ns)).collect::<Vec<_>>()
        };
        assert_eq!(clock(2_600_000_000), []);
        // Of the 2 GHz that they might have.
        assert_eq!(clock(1_000_000_000), [(RULE, 5_000)]);
    }

    /// 64 x 64 and 2 x 64 numbers of four bytes in a microsecond are 16.9 GB/s.
    #[test]
    fn memory_is_no_faster_with_a_higher_clock() {
        let ops = "op CPU MUL_MAT 0..1000 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@ threads=1:1000:1000:0";
        let mut trace = parse(&tokens(10, 1000, 1000, ops));
        trace.sensors = vec![
            sensor(Quantity::HighestProcessorClock, 1_000_000_000),
            sensor(Quantity::ProcessorClockLimit, 4_000_000_000),
        ];
        let cost = |bytes_per_s: f64| {
            let read = vec![ReadRate { threads: 1, bytes_per_s }];
            let cpu = CpuPeaks { name: String::new(), processors: 1, read, compute: Vec::new() };
            let peaks = Peaks { version: 1, measured_at_unix_s: 0, cpu, devices: Vec::new() };
            let explained = explain_on(&trace, Some(&peaks));
            explained.findings.iter().find(|it| it.rule == RULE).map(|it| it.cost_ns)
        };
        assert_eq!(cost(16.896e9 / 0.9), None);
        assert_eq!(cost(16.896e9 * 2.0), Some(5_000));
        assert_eq!(cost(16.896e9 * 100.0), Some(7_500));
    }
}
