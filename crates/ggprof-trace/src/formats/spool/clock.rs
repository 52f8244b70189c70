//! Ticks to nanoseconds of `CLOCK_MONOTONIC`, by the samples that pair the two.

use crate::divisor::Divisor;
use ggprof_spool::layout::{ClockKind, ClockSample};
use ggprof_spool::reader::Header;

#[derive(Debug)]
pub(super) struct Clock {
    /// Sorted pairs; between two, time runs evenly. Empty if ticks are nanoseconds.
    pairs: Vec<(u64, u64)>,
    error_ns: Option<u64>,
}

impl Clock {
    pub(super) fn new(header: &Header, samples: &[ClockSample]) -> Self {
        if header.clock != Some(ClockKind::CycleCounter) {
            return Self { pairs: Vec::new(), error_ns: header.clock.map(|_| 0) };
        }
        let mut pairs: Vec<(u64, u64)> =
            samples.iter().map(|sample| (sample.ticks, sample.monotonic_ns)).collect();
        pairs.push((header.start_ticks, header.start_monotonic_ns));
        pairs.sort_unstable();
        // Both clocks must run forwards, or the pair is damaged.
        pairs.dedup_by(|next, last| next.0 <= last.0 || next.1 <= last.1);
        let mut clock = Self { pairs, error_ns: None };
        clock.error_ns = clock.worst_error(samples);
        clock
    }

    /// How far a time can be off; `None` if the counter's rate is not known.
    pub(super) fn error_ns(&self) -> Option<u64> {
        self.error_ns
    }

    pub(super) fn ns(&self, ticks: u64) -> u64 {
        if self.pairs.len() < 2 {
            return ticks;
        }
        // The pairs around the ticks; outside of all, the nearest two.
        let after = self.pairs.partition_point(|pair| pair.0 <= ticks);
        let after = after.clamp(1, self.pairs.len() - 1);
        interpolate(self.pairs[after - 1], self.pairs[after], ticks)
    }

    /// How ticks become nanoseconds around a moment.
    pub(super) fn rate_at(&self, ticks: u64) -> Rate {
        if self.pairs.len() < 2 {
            return Rate::none();
        }
        let after = self.pairs.partition_point(|pair| pair.0 <= ticks);
        let after = after.clamp(1, self.pairs.len() - 1);
        // Behind the last pair the line goes on.
        let until = if after + 1 < self.pairs.len() { self.pairs[after].0 } else { u64::MAX };
        Rate::new(self.pairs[after - 1], self.pairs[after], until)
    }

    fn worst_error(&self, samples: &[ClockSample]) -> Option<u64> {
        if self.pairs.len() < 2 {
            return None;
        }
        let (first, last) = (self.pairs[0], self.pairs[self.pairs.len() - 1]);
        let ns_per_tick = (last.1 - first.1) as f64 / (last.0 - first.0) as f64;
        let uncertainty = samples.iter().map(|sample| sample.uncertainty_ticks).max()?;
        Some((f64::from(uncertainty) * ns_per_tick).ceil() as u64)
    }
}

/// The line between two pairs, prepared for many ticks: exactly what [`interpolate`] gives, without a
/// division for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    from: (u64, u64),
    /// The ticks that it is for, and how far from `from` the arithmetic is exact.
    until: u64,
    ticks_apart: Divisor,
    ns_apart: u64,
}

/// A moment on the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) ns: u64,
    /// What is left of it beyond whole nanoseconds, in parts of `ticks_apart`.
    rest: u64,
}

impl Rate {
    /// For no ticks at all.
    fn none() -> Self {
        Self { from: (0, 0), until: 0, ticks_apart: Divisor::new(1), ns_apart: 0 }
    }

    fn new(from: (u64, u64), to: (u64, u64), until: u64) -> Self {
        let (ticks_apart, ns_apart) = (to.0 - from.0, to.1 - from.1);
        if ns_apart >= ticks_apart {
            // What follows would not fit.
            return Self::none();
        }
        // So far the product of ticks and nanoseconds has room, and so have the nanoseconds.
        let exact = from.0.saturating_add((u64::MAX / ns_apart.max(1)).min(u64::MAX - from.1));
        Self { from, until: until.min(exact), ticks_apart: Divisor::new(ticks_apart), ns_apart }
    }

    /// Whether it is for these ticks, and for all between them.
    #[inline]
    pub(super) fn holds(&self, first: u64, last: u64) -> bool {
        self.from.0 <= first && last < self.until
    }

    /// When a tick is that the line holds.
    #[inline]
    pub(super) fn at(&self, ticks: u64) -> Moment {
        let (ns, rest) = self.ticks_apart.divide((ticks - self.from.0) * self.ns_apart);
        Moment { ns: self.from.1 + ns, rest }
    }

    /// The whole nanoseconds that begin in so many ticks from a moment on, if the line holds them.
    #[inline]
    pub(super) fn span(&self, from: &Moment, ticks: u64) -> u64 {
        self.ticks_apart.divide(ticks * self.ns_apart + from.rest).0
    }
}

/// Where the system's clock stood, and again wherever it was set by more than a millisecond.
pub(super) fn anchors(header: &Header, samples: &[ClockSample]) -> Vec<(u64, u64)> {
    const SET_NS: u64 = 1_000_000;
    let mut pairs: Vec<(u64, u64)> = vec![(header.start_monotonic_ns, header.start_realtime_ns)];
    pairs.extend(samples.iter().map(|sample| (sample.monotonic_ns, sample.realtime_ns)));
    pairs.sort_unstable();
    let mut anchors: Vec<(u64, u64)> = Vec::new();
    for pair in pairs {
        let expected = anchors.last().map(|last| last.1.wrapping_add(pair.0 - last.0));
        if expected.is_none_or(|expected| expected.abs_diff(pair.1) > SET_NS) {
            anchors.push(pair);
        }
    }
    anchors
}

/// The line through two pairs at `ticks`. Wide arithmetic, so that nothing overflows; a time
/// before the first clock began is the clock's beginning.
pub(super) fn interpolate(from: (u64, u64), to: (u64, u64), ticks: u64) -> u64 {
    let (ticks_apart, ns_apart) = (i128::from(to.0 - from.0), i128::from(to.1 - from.1));
    let ticks = i128::from(ticks) - i128::from(from.0);
    let ns = ticks.saturating_mul(ns_apart) / ticks_apart.max(1);
    u64::try_from(i128::from(from.1) + ns).unwrap_or(if ns < 0 { 0 } else { u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(pairs: &[(u64, u64)]) -> Clock {
        Clock { pairs: pairs.to_vec(), error_ns: None }
    }

    #[test]
    fn ticks_between_and_beyond_samples() {
        let clock = clock(&[(1000, 50), (3000, 1050), (4000, 2050)]);
        for (ticks, ns) in
            [(1000, 50), (2000, 550), (3000, 1050), (3500, 1550), (5000, 3050), (980, 40), (0, 0)]
        {
            assert_eq!(clock.ns(ticks), ns, "{ticks}");
        }
    }

    #[test]
    fn a_rate_gives_what_the_clock_gives() {
        let (a, b) = (5_000_000_000_000, 2_345_678_901_234);
        let pairs = [(a, b), (a + 1_000_003, b + 333_335), (a + 3_000_000_017, b + 1_000_000_007)];
        for clock in [clock(&pairs), clock(&[(0, 0), (1, u64::MAX)]), clock(&[(10, 5), (11, 900)])]
        {
            for base in [0, 9, a - 50, a, a + 1_000_003, a + 3_000_000_018, u64::MAX / 2] {
                let rate = clock.rate_at(base);
                for more in (0..4_000).map(|it| it * it * 1_237).chain([0, 1, u64::MAX / 3]) {
                    let ticks = base.saturating_add(more);
                    if !rate.holds(base, ticks) {
                        continue;
                    }
                    let moment = rate.at(base);
                    assert_eq!(moment.ns, clock.ns(base), "{base}");
                    assert_eq!(rate.at(ticks).ns, clock.ns(ticks), "{base} {more}");
                    let span = clock.ns(ticks) - clock.ns(base);
                    assert_eq!(rate.span(&moment, more), span, "{base} {more}");
                }
            }
        }
    }

    #[test]
    fn without_a_rate_ticks_stay_ticks() {
        assert_eq!(clock(&[]).ns(77), 77);
        assert_eq!(clock(&[(5, 9)]).ns(77), 77);
        assert_eq!(clock(&[(0, 0), (1, u64::MAX)]).ns(u64::MAX), u64::MAX);
    }
}
