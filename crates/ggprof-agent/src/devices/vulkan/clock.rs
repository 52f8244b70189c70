//! The device's clock and the host's. A driver with calibrated timestamps reads both at once.
//! Without them, the work itself bounds the difference: it began after it was submitted, and had
//! ended when the host saw its end.

use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use ggprof_spool::layout;

use super::ranks;
use crate::clock;
use crate::fault::fault_point;
use crate::lock::{Locked, Ranked};

/// The time between samples doubles up to this.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;
const FIRST_DISTANCE_NS: u64 = 1_000_000;

static CLOCKS: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(crate) struct DeviceClock {
    pub(crate) id: u32,
    /// Nanoseconds of a tick, as the driver rounds it: for differences only.
    period: f64,
    /// The bits that count.
    mask: u64,
    calibrated: Option<vk::PFN_vkGetCalibratedTimestampsKHR>,
    state: Ranked<{ ranks::DEVICE_CLOCK }, ClockBounds>,
}

#[derive(Debug, Default)]
pub(crate) struct ClockBounds {
    /// The last tick, with the bits that the device does not count.
    last: u64,
    sampled_ns: u64,
    wait_ns: u64,
    tightest: Option<layout::DeviceClock>,
}

impl DeviceClock {
    pub(crate) fn new(
        period: f32,
        mask: u64,
        calibrated: Option<vk::PFN_vkGetCalibratedTimestampsKHR>,
    ) -> DeviceClock {
        let id = CLOCKS.fetch_add(1, Ordering::Relaxed) + 1;
        let state = Ranked::default();
        DeviceClock { id, period: f64::from(period), mask, calibrated, state }
    }

    pub(crate) fn state(&self) -> Locked<'_, { ranks::DEVICE_CLOCK }, ClockBounds> {
        self.state.lock()
    }

    /// Work between these ticks was submitted at one moment and seen to have ended at
    /// another, both in nanoseconds of the host.
    pub(crate) fn note_bounds(&self, state: &mut ClockBounds, ticks: (u64, u64), host: (u64, u64)) {
        if self.calibrated.is_some() {
            return;
        }
        let took = (ticks.1.saturating_sub(ticks.0) as f64 * self.period) as u64;
        let earliest = host.0 + took;
        let slack = host.1.saturating_sub(earliest);
        let sample = layout::DeviceClock {
            clock: self.id,
            uncertainty_ns: u32::try_from(slack.div_ceil(2)).unwrap_or(u32::MAX),
            tick_ps: self.tick_ps(),
            device_ticks: ticks.1,
            monotonic_ns: earliest + slack / 2,
            ..Default::default()
        };
        if state.tightest.is_none_or(|best| sample.uncertainty_ns < best.uncertainty_ns) {
            state.tightest = Some(sample);
        }
    }

    /// A sample, if the last one is long enough ago.
    pub(crate) fn sample_if_due(
        &self,
        state: &mut ClockBounds,
        device: vk::Device,
    ) -> Option<layout::DeviceClock> {
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        if now.saturating_sub(state.sampled_ns) < state.wait_ns {
            return None;
        }
        let sample = match self.calibrated {
            Some(ask) => self.calibrate(state, device, ask),
            None => state.tightest.take(),
        }?;
        fault_point!();
        state.sampled_ns = now;
        state.wait_ns = (2 * state.wait_ns).clamp(FIRST_DISTANCE_NS, SAMPLE_EVERY_NS);
        Some(sample)
    }

    fn tick_ps(&self) -> u32 {
        (self.period * 1000.0) as u32
    }

    fn calibrate(
        &self,
        state: &mut ClockBounds,
        device: vk::Device,
        ask: vk::PFN_vkGetCalibratedTimestampsKHR,
    ) -> Option<layout::DeviceClock> {
        let domains = [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC]
            .map(|domain| vk::CalibratedTimestampInfoKHR::default().time_domain(domain));
        let (mut times, mut deviation) = ([0_u64; 2], 0);
        // SAFETY: both arrays hold two; the device offers these domains, and its
        // extension is switched on.
        let result =
            unsafe { ask(device, 2, domains.as_ptr(), times.as_mut_ptr(), &mut deviation) };
        (result == vk::Result::SUCCESS).then(|| layout::DeviceClock {
            clock: self.id,
            uncertainty_ns: u32::try_from(deviation).unwrap_or(u32::MAX),
            tick_ps: self.tick_ps(),
            device_ticks: state.extend(times[0], self.mask),
            monotonic_ns: times[1],
            ..Default::default()
        })
    }
}

impl ClockBounds {
    /// A counter of fewer than 64 bits starts again from zero now and then. Whatever is
    /// read lies within half a round of what was read last.
    pub(crate) fn extend(&mut self, raw: u64, mask: u64) -> u64 {
        if mask == u64::MAX || self.last == 0 {
            self.last = raw & mask;
            return self.last;
        }
        let ahead = raw.wrapping_sub(self.last) & mask;
        let half = mask / 2 + 1;
        if ahead < half {
            self.last = self.last.wrapping_add(ahead);
            self.last
        } else {
            self.last.saturating_sub(mask - ahead + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS_36: u64 = (1 << 36) - 1;

    #[test]
    fn a_short_counter_goes_on_after_its_end() {
        let mut state = ClockBounds::default();
        assert_eq!(state.extend(BITS_36 - 10, BITS_36), BITS_36 - 10);
        assert_eq!(state.extend(5, BITS_36), BITS_36 + 6);
        assert_eq!(state.extend(BITS_36 - 3, BITS_36), BITS_36 - 3, "read late");
        assert_eq!(state.extend(7, BITS_36), BITS_36 + 8);
        assert_eq!(state.extend(BITS_36, BITS_36), BITS_36, "still the round before");
    }

    #[test]
    fn bits_that_do_not_count_are_left_out() {
        let mut state = ClockBounds::default();
        assert_eq!(state.extend(!BITS_36 | 42, BITS_36), 42);
    }

    #[test]
    fn work_bounds_the_clock_from_both_sides() {
        let clock = DeviceClock::new(2.0, u64::MAX, None);
        let mut state = clock.state();
        // 100 ticks of 2 ns, submitted at 1000, seen at 1400: it ended from 1200 to 1400.
        clock.note_bounds(&mut state, (500, 600), (1000, 1400));
        clock.note_bounds(&mut state, (900, 950), (5000, 9000));
        let sample = state.tightest.expect("one was made");
        assert_eq!((sample.device_ticks, sample.monotonic_ns), (600, 1300));
        assert_eq!(sample.uncertainty_ns, 100);
    }
}
