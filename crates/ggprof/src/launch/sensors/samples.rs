//! What the sensors said, for as long as the program runs: more and more, so that readings get
//! rarer when there are many of them.

use super::Described;
use ggprof_analysis::live::Reading;
use ggprof_spool::appendix::Appendix;
use ggprof_spool::layout::{Sample, Sensor};
use ggprof_spool::reader::Header;
use ggprof_trace::Quantity;
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
                    quantity: Quantity::of(sensor.quantity as u8)?,
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

    /// Puts all of them behind a recording of this header.
    pub(crate) fn put(&self, header: &Header, appendix: &mut Appendix) {
        for (number, sensor) in (1..).zip(&self.sensors) {
            let head = Sensor {
                quantity: sensor.quantity as u8,
                sensor: number,
                device: sensor.device,
                flags: sensor.flags(),
                name_bytes: sensor.name.len() as u32,
                every_ns: self.every.as_nanos() as u64,
                ..Sensor::default()
            };
            appendix.put(&[&head.encode()[..], sensor.name.as_bytes()].concat());
        }
        let mut put = |sensor: u32, row: &Row| {
            if let Some(value) = row.values[sensor as usize - 1] {
                let sample = Sample { sensor, value, monotonic_ns: row.ns, ..Sample::default() };
                appendix.put(&sample.encode());
            }
        };
        let first = self.rows.partition_point(|row| row.ns < header.start_monotonic_ns);
        let (before, during) = self.rows.split_at(first);
        let sensors = 1..=self.sensors.len() as u32;
        // With the reading before it, for what happens until the first one of its own.
        for sensor in sensors.clone() {
            let has_it = |row: &&Row| row.values[sensor as usize - 1].is_some();
            before.iter().rfind(has_it).into_iter().for_each(|row| put(sensor, row));
        }
        for row in during {
            sensors.clone().for_each(|sensor| put(sensor, row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_comes_too_late_is_not_taken() {
        let mut samples = Samples::default();
        samples.close();
        samples.add(1, vec![Some(1)]);
        assert_eq!(samples.rows(), 0);
    }
}
