//! The processors of the machine: how many the program may use, and what others used meanwhile.

use ggprof_trace::{ProcessIndex, Quantity, Sensor, Trace};

/// How many processors the program, or one of several, could use at once in some spans of time; `None`
/// where nobody looked. Whoever looked just before it saw the same.
pub fn usable_processors(
    trace: &Trace,
    process: Option<ProcessIndex>,
    spans: &[(u64, u64)],
) -> Option<u32> {
    let sensor = sensor(trace, Quantity::UsableProcessors, process)?;
    let readings = spans.iter().flat_map(|&(start_ns, end_ns)| {
        let behind = sensor.times_ns.partition_point(|&time| time <= end_ns).max(1);
        let first = sensor.times_ns.partition_point(|&time| time < start_ns).min(behind - 1);
        &sensor.values[first..behind]
    });
    // What was started before the program may have been kept to fewer, so most of the time counts.
    let mut readings: Vec<u64> = readings.copied().collect();
    readings.sort_unstable();
    readings.get(readings.len() / 2).and_then(|&count| u32::try_from(count).ok())
}

/// How many processors other programs, or other machines on the same hardware, used on average in
/// some spans of time; `None` where the readings are too far apart to tell.
pub fn processors_of_others(
    trace: &Trace,
    process: Option<ProcessIndex>,
    spans: &[(u64, u64)],
) -> Option<f64> {
    let of = |quantity| used(sensor(trace, quantity, process)?, spans);
    let (machine, program) = (of(Quantity::MachineTime)?, of(Quantity::ProgramTime)?);
    let stolen = of(Quantity::StolenTime);
    Some((machine - program).max(0.0) + stolen.unwrap_or(0.0))
}

/// On how many processors on average the program was not let run in some spans of time, because its
/// control group had used up its limit; `None` where it has none, or the readings are too far apart.
pub fn throttled_processors(
    trace: &Trace,
    process: Option<ProcessIndex>,
    spans: &[(u64, u64)],
) -> Option<f64> {
    used(sensor(trace, Quantity::ThrottledTime, process)?, spans)
}

/// Of a process, or of the machine that it ran on.
fn sensor(trace: &Trace, quantity: Quantity, process: Option<ProcessIndex>) -> Option<&Sensor> {
    let described = process.and_then(|process| trace.processes.get(usize::from(process.0)));
    let is_there = |sensor: &Sensor| {
        let is_of_others =
            sensor.process.is_some() && process.is_some() && sensor.process != process;
        !is_of_others && described.is_none_or(|it| it.machine == sensor.machine)
    };
    let is_it =
        |sensor: &&Sensor| sensor.quantity == quantity && sensor.is_whole() && is_there(sensor);
    trace.sensors.iter().find(is_it).filter(|sensor| !sensor.values.is_empty())
}

/// Processors in use, from a counter of microseconds: between the first and the last reading of each
/// span.
fn used(sensor: &Sensor, spans: &[(u64, u64)]) -> Option<f64> {
    let (mut used_us, mut ns) = (0, 0);
    for &(start_ns, end_ns) in spans {
        let first = sensor.times_ns.partition_point(|&time| time < start_ns);
        let behind = sensor.times_ns.partition_point(|&time| time <= end_ns);
        if behind > first + 1 {
            used_us += sensor.values[behind - 1].saturating_sub(sensor.values[first]);
            ns += sensor.times_ns[behind - 1] - sensor.times_ns[first];
        }
    }
    (ns > 0).then(|| used_us as f64 * 1e3 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Process, text_fixture};

    fn counter(quantity: Quantity, values: &[u64]) -> Sensor {
        text_fixture::sensor(quantity, 0, 1_000_000, values)
    }

    #[test]
    fn what_the_program_did_not_use_others_did() {
        let mut trace = Trace::default();
        assert_eq!(
            (
                usable_processors(&trace, None, &[(0, 1)]),
                processors_of_others(&trace, None, &[(0, 1)])
            ),
            (None, None)
        );
        trace.sensors = vec![
            counter(Quantity::UsableProcessors, &[4, 2, 2, 3]),
            counter(Quantity::MachineTime, &[0, 2000, 4000, 5000]),
            counter(Quantity::ProgramTime, &[0, 1500, 3000, 4000]),
        ];
        let usable = |spans: &[(u64, u64)]| usable_processors(&trace, None, spans);
        assert_eq!(usable(&[(0, 2_100_000)]), Some(2));
        // The last reading before it.
        assert_eq!(usable(&[(2_100_000, 2_200_000)]), Some(2));
        assert_eq!(usable(&[(0, 1)]), Some(4));
        assert_eq!(usable(&[(5_000_000, 6_000_000)]), Some(3));
        assert_eq!(processors_of_others(&trace, None, &[(0, 2_100_000)]), Some(0.5));
        // No two readings in it.
        assert_eq!(processors_of_others(&trace, None, &[(100, 200)]), None);
        trace.sensors.push(counter(Quantity::StolenTime, &[0, 250, 500, 700]));
        assert_eq!(processors_of_others(&trace, None, &[(0, 2_100_000)]), Some(0.75));
    }

    /// Two containers of one machine, of which one has a limit.
    #[test]
    fn each_process_has_its_own_limits() {
        let of = |process, values: &[u64]| {
            let process = Some(ProcessIndex(process));
            Sensor { process, ..counter(Quantity::ThrottledTime, values) }
        };
        let trace = Trace {
            processes: vec![Process::default(); 2],
            sensors: vec![of(0, &[0, 1000]), of(1, &[0, 0])],
            ..Trace::default()
        };
        let throttled =
            |at| throttled_processors(&trace, Some(ProcessIndex(at)), &[(0, 1_000_000)]);
        assert_eq!([throttled(0), throttled(1)], [Some(1.0), Some(0.0)]);
    }

    /// A client on one machine, and its server on another one.
    #[test]
    fn each_process_has_the_sensors_of_its_machine() {
        let process = |machine| Process { machine, ..Process::default() };
        let of_machine =
            |machine, quantity, values: &[u64]| Sensor { machine, ..counter(quantity, values) };
        let trace = Trace {
            processes: vec![process(0), process(1)],
            sensors: vec![
                of_machine(0, Quantity::ThrottledTime, &[0, 1000]),
                of_machine(1, Quantity::ThrottledTime, &[0, 0]),
                of_machine(0, Quantity::MachineTime, &[0, 2000]),
                of_machine(0, Quantity::ProgramTime, &[0, 1000]),
            ],
            ..Trace::default()
        };
        let of = |process| {
            let (process, span) = (Some(ProcessIndex(process)), [(0, 1_000_000)]);
            let throttled = throttled_processors(&trace, process, &span);
            (throttled, processors_of_others(&trace, process, &span))
        };
        assert_eq!(of(0), (Some(1.0), Some(1.0)));
        assert_eq!(of(1), (Some(0.0), None));
    }
}
