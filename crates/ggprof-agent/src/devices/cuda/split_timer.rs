//! The time of a whole split on its device, by two events on the split's stream: cheap enough for
//! every split, and exact. Events give the time between each other but not the time of day. So now
//! and then the host waits for one and notes the time: these are the samples of the device's clock.

use ggprof_spool::layout::{self, DeviceClock, DeviceWork};

use super::driver::{Driver, Stream, TimedEvent};
use super::work::CLOCK as CUPTI_CLOCK;
use crate::clock;
use crate::fault::fault_point;
use crate::recorder::lane::HeldLane;

/// Splits in flight; with more, the rest is not timed.
const PAIRS: usize = 64;
/// Between samples of the clock: over a second, elapsed times are exact to 0.1 µs.
const ANCHOR_EVERY_NS: u64 = 1_000_000_000;

/// The timer of one backend.
#[derive(Debug)]
pub(crate) struct SplitTimer {
    pub(crate) backend: u32,
    driver: Driver,
    stream: usize,
    pairs: Vec<Pair>,
    /// The oldest pair in flight, and how many there are.
    first: usize,
    in_flight: usize,
    anchor: TimedEvent,
    /// The next anchor: the present one is needed until that is recorded.
    spare: TimedEvent,
    /// Nanoseconds of the device's clock at the anchor, from its first on.
    anchor_ns: u64,
    anchored_at_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    start: TimedEvent,
    end: TimedEvent,
    split: u32,
    ended: bool,
}

impl SplitTimer {
    /// After a split of the backend, when its device is current on this thread.
    pub(crate) fn new(backend: u32, driver: Driver, stream: usize) -> Option<SplitTimer> {
        let pairs = (0..PAIRS).map(|_| {
            let (start, end) = (driver.new_event()?, driver.new_event()?);
            Some(Pair { start, end, split: 0, ended: false })
        });
        Some(SplitTimer {
            backend,
            driver,
            stream,
            pairs: pairs.collect::<Option<_>>()?,
            first: 0,
            in_flight: 0,
            anchor: driver.new_event()?,
            spare: driver.new_event()?,
            anchor_ns: 0,
            anchored_at_ns: 0,
        })
    }

    /// Before a split. `None`: it will not be timed.
    pub(crate) fn begin(&mut self, lane: &HeldLane<'_>, split: u32) -> Option<()> {
        let now_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        if self.anchored_at_ns == 0 || now_ns - self.anchored_at_ns > ANCHOR_EVERY_NS {
            self.drain(lane);
            self.drop_anchor(lane)?;
        }
        if self.in_flight == PAIRS {
            return None;
        }
        let place = (self.first + self.in_flight) % PAIRS;
        let pair = &mut self.pairs[place];
        self.driver.record(pair.start, self.stream as Stream)?;
        fault_point!();
        (pair.split, pair.ended) = (split, false);
        self.in_flight += 1;
        Some(())
    }

    /// After the split: all of its work is in the stream, and the device is busy with
    /// it while we read the times of those before.
    pub(crate) fn end(&mut self, lane: &HeldLane<'_>, split: u32, stream: usize) {
        if stream != 0 && stream != self.stream {
            self.stream = stream;
        }
        let place = (self.first + self.in_flight + PAIRS - 1) % PAIRS;
        let pair = &mut self.pairs[place];
        if self.in_flight > 0 && pair.split == split {
            pair.ended = self.driver.record(pair.end, self.stream as Stream).is_some();
        }
        // The newest split cannot be finished yet, so the driver is not asked about it.
        self.collect_but(1, lane);
    }

    /// Writes the splits that are over, oldest first.
    pub(crate) fn collect(&mut self, lane: &HeldLane<'_>) {
        self.collect_but(0, lane);
    }

    /// The same, except for the newest `kept` splits.
    fn collect_but(&mut self, kept: usize, lane: &HeldLane<'_>) {
        while self.in_flight > kept {
            let pair = self.pairs[self.first];
            if pair.ended && !self.driver.is_over(pair.end) {
                return;
            }
            self.first = (self.first + 1) % PAIRS;
            self.in_flight -= 1;
            fault_point!();
            if pair.ended {
                self.write(lane, pair);
            }
        }
    }

    /// The same for all of them, waiting for the newest.
    pub(crate) fn drain(&mut self, lane: &HeldLane<'_>) {
        if self.in_flight > 0 {
            let newest = self.pairs[(self.first + self.in_flight - 1) % PAIRS];
            if newest.ended {
                let _ = self.driver.wait_for(newest.end);
            }
        }
        self.collect(lane);
    }

    fn write(&self, lane: &HeldLane<'_>, pair: Pair) -> Option<()> {
        let start = self.anchor_ns + self.driver.nanoseconds(self.anchor, pair.start)?;
        let record = DeviceWork {
            flags: layout::WORK_WHOLE_SPLIT,
            split: pair.split,
            position: layout::NO_NODE,
            clock: self.clock(),
            backend: self.backend,
            start,
            end: start + self.driver.nanoseconds(pair.start, pair.end)?,
            ..Default::default()
        };
        lane.put_long(&mut record.encode(), &[]);
        Some(())
    }

    /// Records a moment by both clocks. The device is idle at this time, so the wait is short, and
    /// its length bounds the error.
    fn drop_anchor(&mut self, lane: &HeldLane<'_>) -> Option<()> {
        let before = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        self.driver.record(self.spare, self.stream as Stream)?;
        self.driver.wait_for(self.spare)?;
        fault_point!();
        let after = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        if self.anchored_at_ns != 0 {
            self.anchor_ns += self.driver.nanoseconds(self.anchor, self.spare)?;
        }
        std::mem::swap(&mut self.anchor, &mut self.spare);
        self.anchored_at_ns = after;
        let record = DeviceClock {
            clock: self.clock(),
            uncertainty_ns: u32::try_from((after - before) / 2).unwrap_or(u32::MAX),
            tick_ps: 1000,
            device_ticks: self.anchor_ns,
            monotonic_ns: before + (after - before) / 2,
            ..Default::default()
        };
        lane.put(&record.encode());
        Some(())
    }

    fn clock(&self) -> u32 {
        CUPTI_CLOCK + self.backend
    }
}
