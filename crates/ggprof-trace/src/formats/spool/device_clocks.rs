//! Ticks of devices to nanoseconds of the host's `CLOCK_MONOTONIC`.

use super::clock::{Clock, interpolate};
use ggprof_spool::layout::DeviceClock;
use hashbrown::HashMap;

/// A tick of a clock that does not state its length.
const NANOSECOND_PS: u32 = 1000;

/// How wrong a measured rate may be. Crystals keep theirs within some ten millionths, so a rate that
/// is known less well than this is not worth measuring.
const WORST_RATE_ERROR: f64 = 1e-4;

/// The clock of each device that gave samples.
#[derive(Debug, Default)]
pub(super) struct DeviceClocks {
    lines: HashMap<u32, Line>,
    error_ns: Option<u64>,
}

#[derive(Debug)]
struct Line {
    /// Sorted pairs of ticks and nanoseconds.
    pairs: Vec<(u64, u64)>,
}

impl DeviceClocks {
    pub(super) fn new(samples: &[DeviceClock]) -> Self {
        let mut clocks = Self::default();
        let mut by_clock: HashMap<u32, Vec<&DeviceClock>> = HashMap::new();
        for sample in samples {
            by_clock.entry(sample.clock).or_default().push(sample);
            let error = Some(u64::from(sample.uncertainty_ns));
            clocks.error_ns = clocks.error_ns.max(error);
        }
        clocks.lines = by_clock.into_iter().map(|(id, samples)| (id, Line::of(&samples))).collect();
        clocks
    }

    /// How far a device's time can be off; `None` without devices.
    pub(super) fn error_ns(&self) -> Option<u64> {
        self.error_ns
    }

    /// `None` for the ticks of a clock that was never paired with the host's.
    pub(super) fn ns(&self, host: &Clock, clock: u32, ticks: u64) -> Option<u64> {
        if clock == 0 {
            return Some(host.ns(ticks));
        }
        Some(self.lines.get(&clock)?.ns(ticks))
    }
}

impl Line {
    fn of(samples: &[&DeviceClock]) -> Self {
        let mut pairs: Vec<(u64, u64)> = far_apart(samples)
            .iter()
            .map(|sample| (sample.device_ticks, sample.monotonic_ns))
            .collect();
        if let [(ticks, ns)] = pairs[..] {
            // The rate the device states, until a second sample measures it.
            let stated = samples.iter().map(|sample| sample.tick_ps).find(|&tick_ps| tick_ps != 0);
            let tick_ps = stated.unwrap_or(NANOSECOND_PS);
            let second =
                (ticks.saturating_add(1_000_000), ns.saturating_add(1000 * u64::from(tick_ps)));
            pairs.push(second);
        }
        Self { pairs }
    }

    fn ns(&self, ticks: u64) -> u64 {
        let after = self.pairs.partition_point(|pair| pair.0 <= ticks);
        let after = after.clamp(1, self.pairs.len() - 1);
        interpolate(self.pairs[after - 1], self.pairs[after], ticks)
    }
}

/// Samples by time, so far apart that their errors do not make a wrong rate; of two that are
/// closer, the more exact one. Both clocks run forwards: a pair that does not is damaged.
fn far_apart<'a>(samples: &[&'a DeviceClock]) -> Vec<&'a DeviceClock> {
    let mut samples = samples.to_vec();
    samples.sort_unstable_by_key(|sample| (sample.device_ticks, sample.monotonic_ns));
    let mut kept: Vec<&DeviceClock> = Vec::new();
    for next in samples {
        while let Some(last) = kept.last().filter(|last| !measures_rate(last, next)) {
            if next.monotonic_ns <= last.monotonic_ns || next.uncertainty_ns >= last.uncertainty_ns
            {
                break;
            }
            kept.pop();
        }
        if kept.last().is_none_or(|last| measures_rate(last, next)) {
            kept.push(next);
        }
    }
    kept
}

/// Whether the time between two samples is long enough for what they may be off.
fn measures_rate(first: &DeviceClock, second: &DeviceClock) -> bool {
    let off = u64::from(first.uncertainty_ns) + u64::from(second.uncertainty_ns);
    let apart = second.monotonic_ns.saturating_sub(first.monotonic_ns);
    let runs_on = apart > 0 && second.device_ticks > first.device_ticks;
    runs_on && off as f64 <= WORST_RATE_ERROR * apart as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(device_ticks: u64, monotonic_ns: u64) -> DeviceClock {
        DeviceClock { clock: 1, device_ticks, monotonic_ns, tick_ps: 32_000, ..Default::default() }
    }

    #[track_caller]
    fn check(samples: &[DeviceClock], ticks: u64, expected: u64) {
        let clocks = DeviceClocks::new(samples);
        assert_eq!(clocks.lines[&1].ns(ticks), expected);
    }

    #[test]
    fn one_sample_and_the_stated_rate() {
        check(&[sample(1000, 5000)], 1010, 5320);
        check(&[sample(1000, 5000)], 990, 4680);
        check(&[DeviceClock { tick_ps: 0, ..sample(1000, 5000) }], 1010, 5010);
    }

    /// Ten microseconds off in a millisecond would be ten milliseconds off in a second.
    #[test]
    fn samples_too_close_for_their_errors_measure_no_rate() {
        let sample = |ticks, ns| DeviceClock { uncertainty_ns: 10_000, ..sample(ticks, ns) };
        let close = [sample(1_000_000, 40_000_000), sample(1_031_250, 41_010_000)];
        check(&close, 2_000_000, 72_000_000);
        let far = sample(11_000_000, 360_003_200);
        check(&[close[0], close[1], far], 6_000_000, 200_001_600);
        // An exact sample makes up for a bad one before it.
        let bad = DeviceClock { uncertainty_ns: 1_000_000, ..sample(0, 8_900_000) };
        check(&[bad, close[0], far], 6_000_000, 200_001_600);
    }

    #[test]
    fn a_measured_rate_wins() {
        let samples = [sample(1000, 5000), sample(2000, 36_000), sample(2000, 1)];
        check(&samples, 1500, 20_500);
        check(&samples, 3000, 67_000);
    }
}
