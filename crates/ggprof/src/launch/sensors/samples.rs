//! What the sensors said, for as long as the program runs: more and more, so that readings get
//! rarer when there are many of them.

use super::Described;
use ggprof_analysis::live::Reading;
use ggprof_spool::appendix::Appendix;
use ggprof_spool::layout::{Sample, Sensor};
use std::time::Duration;

/// Readings of all sensors together: an hour and a half of ten a second, and then half of them.
const MOST_ROWS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Samples {
    sensors: Vec<Described>,
    rows: Vec<Row>,
    /// What each sensor said last.
    latest: Vec<Option<u64>>,
    every: Duration,
    is_closed: bool,
}

#[derive(Debug)]
struct Row {
    ns: u64,
    /// One for each sensor that was read.
    values: Box<[Option<u64>]>,
}

impl Samples {
    pub(super) fn begin(&mut self, sensors: Vec<Described>, every: Duration) {
        self.latest = vec![None; sensors.len()];
        (self.sensors, self.every) = (sensors, every);
    }

    /// Adds a reading; how long to wait until the next.
    pub(super) fn add(&mut self, ns: u64, values: Vec<Option<u64>>) -> Duration {
        for (latest, value) in self.latest.iter_mut().zip(&values) {
            *latest = value.or(*latest);
        }
        if !self.is_closed {
            self.rows.push(Row { ns, values: values.into() });
        }
        if self.rows.len() >= MOST_ROWS {
            let mut at = 0;
            self.rows.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
        self.every
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// What each sensor said last.
    pub(crate) fn latest(&self) -> Vec<Reading> {
        let values = self.sensors.iter().zip(&self.latest);
        values
            .filter_map(|(sensor, value)| {
                Some(Reading {
                    quantity: sensor.quantity,
                    device: sensor.device,
                    name: sensor.name.clone(),
                    value: (*value)?,
                })
            })
            .collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sensors.is_empty()
    }

    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Puts them behind a recording that began then: all, or as many as there is room for.
    pub(crate) fn put(&self, start_ns: u64, room: Option<u64>, appendix: &mut Appendix) {
        let first = self.rows.partition_point(|row| row.ns < start_ns);
        let (before, during) = self.rows.split_at(first);
        let mut left = counts(during, self.sensors.len());
        let one_of = one_of(left.iter().sum(), room);
        self.put_sensors(one_of, appendix);
        // With the reading before it, for what happens until the first one of its own.
        for sensor in 0..self.sensors.len() {
            let earlier = before.iter().rev();
            let last = earlier.filter_map(|row| sample(sensor, row)).next();
            last.into_iter().for_each(|sample| appendix.put(&sample.encode()));
        }
        for row in during {
            for (sensor, left) in left.iter_mut().enumerate() {
                let Some(sample) = sample(sensor, row) else { continue };
                *left -= 1;
                // The last one of each is among those that stay: energy is told by it.
                if *left % one_of == 0 {
                    appendix.put(&sample.encode());
                }
            }
        }
    }

    fn put_sensors(&self, one_of: usize, appendix: &mut Appendix) {
        for (number, sensor) in (1..).zip(&self.sensors) {
            let head = Sensor {
                quantity: sensor.quantity.number(),
                sensor: number,
                device: sensor.device,
                flags: sensor.flags(),
                name_bytes: sensor.name.len() as u32,
                every_ns: self.every.as_nanos() as u64 * one_of as u64,
                ..Sensor::default()
            };
            appendix.put(&[&head.encode()[..], sensor.name.as_bytes()].concat());
        }
    }
}

fn sample(sensor: usize, row: &Row) -> Option<Sample> {
    let value = row.values[sensor]?;
    Some(Sample { sensor: sensor as u32 + 1, value, monotonic_ns: row.ns, ..Sample::default() })
}

/// How many values each sensor has in these rows.
fn counts(rows: &[Row], sensors: usize) -> Vec<usize> {
    let count = |sensor: usize| rows.iter().filter(|row| row.values[sensor].is_some()).count();
    (0..sensors).map(count).collect()
}

/// One of how many readings is kept so that so many fit.
fn one_of(readings: usize, room: Option<u64>) -> usize {
    // With its part of a block's head, and some for the descriptions of the sensors.
    const BYTES: u64 = Sample::BYTES as u64 + 1;
    const DESCRIPTIONS: u64 = 1 << 13;
    let Some(room) = room else { return 1 };
    let fitting = room.saturating_sub(DESCRIPTIONS) / BYTES;
    (readings as u64).div_ceil(fitting.max(1)).next_power_of_two() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_spool::layout::HEADER_BYTES;
    use ggprof_trace::Quantity;

    #[test]
    fn of_too_many_every_second_one_stays() {
        let mut samples = Samples::default();
        samples.begin(Vec::new(), Duration::from_millis(100));
        let everys = (0..MOST_ROWS as u64).map(|ns| samples.add(ns, Vec::new()));
        let last = everys.last();
        assert_eq!(last, Some(Duration::from_millis(200)));
        assert_eq!(samples.rows(), MOST_ROWS / 2);
        assert_eq!(samples.rows[1].ns, 2);
    }

    #[test]
    fn what_has_no_room_is_thinned_out_up_to_the_last() {
        let mut samples = Samples::default();
        let sensors = [Quantity::DeviceClock, Quantity::DeviceEnergy];
        let sensors = sensors.map(super::super::Described::of_processors);
        samples.begin(sensors.into(), Duration::from_millis(100));
        for ns in 0..10_000 {
            samples.add(ns, vec![Some(ns), (ns % 10 == 0).then_some(ns)]);
        }
        let kept = |room| {
            let mut appendix = Appendix::behind(0, HEADER_BYTES as u64).unwrap();
            samples.put(0, room, &mut appendix);
            let bytes = appendix.finish();
            assert!(room.is_none_or(|room| bytes.len() as u64 <= room), "{}", bytes.len());
            let records = bytes.chunks_exact(32).filter(|unit| unit[0] == Sample::KIND);
            let of = |number: u32| {
                let of_it =
                    records.clone().filter_map(Sample::decode).filter(|s| s.sensor == number);
                let values: Vec<u64> = of_it.map(|sample| sample.value).collect();
                (values.len(), *values.last().unwrap())
            };
            [of(1), of(2)]
        };
        assert_eq!(kept(None), [(10_000, 9_999), (1_000, 9_990)]);
        assert_eq!(kept(Some(200_000)), [(5_000, 9_999), (500, 9_990)]);
        assert_eq!(kept(Some(20_000)), [(313, 9_999), (32, 9_990)]);
    }

    #[test]
    fn what_comes_too_late_is_not_taken() {
        let mut samples = Samples::default();
        samples.close();
        samples.add(1, vec![Some(1)]);
        assert_eq!(samples.rows(), 0);
    }
}
