//! R16: a clock well below its maximum while there was work. Of processors it is the fastest one's: those
//! that have nothing to do are slow, and some machines have slow ones besides.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::energy::device_name;
use ggprof_trace::{Quantity, Sensor};

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

/// Of the highest clock.
const SLOW: f64 = 0.8;
/// Fewer readings may have come at any moment.
const LEAST_READINGS: usize = 3;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let process = scene.process_of(budget);
    let clocks = scene.trace.sensors.iter().filter(|sensor| {
        matches!(sensor.quantity, Quantity::DeviceClock | Quantity::HighestProcessorClock)
            && scene.trace.uses_machine(process, sensor.machine)
    });
    clocks.filter_map(|sensor| of_clock(scene, place, budget, sensor)).collect()
}

fn of_clock(scene: &Scene<'_>, place: usize, budget: &Budget, sensor: &Sensor) -> Option<Finding> {
    let is_of_devices = sensor.quantity == Quantity::DeviceClock;
    let mut values: Vec<u64> = Vec::new();
    for &phase in &budget.phases {
        let phase = &scene.phases.phases[phase as usize];
        let first = sensor.times_ns.partition_point(|&ns| ns < phase.start_ns);
        let behind = sensor.times_ns.partition_point(|&ns| ns < phase.end_ns).max(first);
        values.extend(sensor.values.get(first..behind)?);
    }
    values.sort_unstable();
    let median_hz = *values.get(values.len() / 2).filter(|_| values.len() >= LEAST_READINGS)?;
    let highest_hz = highest(scene, sensor)?;
    if median_hz as f64 >= SLOW * highest_hz as f64 {
        return None;
    }
    let computing_ns = budget.sum(|spent| match spent {
        Spent::Computing { backend, .. } => scene.is_of_host(backend) != is_of_devices,
        _ => false,
    });
    let cost_ns = (computing_ns as f64 * (1.0 - median_hz as f64 / highest_hz as f64)) as u64;
    let shown = ClockShown { device: device_name(scene.trace, sensor), median_hz, highest_hz };
    let what = What::SlowClock(SlowClock { shown });
    let certainty = Certainty::Possible;
    Some(Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what })
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
    use crate::findings::staged::{found_in, parse, tokens};

    fn sensor(quantity: Quantity, hz: u64) -> Sensor {
        Sensor {
            quantity,
            device: 0,
            machine: 0,
            name: "H200".into(),
            is_forbidden: false,
            every_ns: 1000,
            times_ns: (0..10).map(|at| at * 1000).collect(),
            values: vec![hz; 10],
        }
    }

    #[test]
    fn a_clock_below_its_limit() {
        let text = tokens(10, 1000, 1000, "op GPU MUL_MAT 0..1000 Qcur-0 run=@ measured=device");
        let mut trace = parse(&text);
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
        let text = tokens(10, 1000, 1000, "op CPU MUL_MAT 0..1000 Qcur-0 run=@");
        let mut trace = parse(&text);
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
}
