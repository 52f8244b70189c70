//! Writes work with its times into the recording, samples of the device's clock, and the coverage
//! of a backend's kernels.

use std::sync::atomic::Ordering;

use ggprof_spool::layout::{
    self, CoveredHow, CoveredWhy, DeviceWork, NONE, WORK_CONCURRENT, WORK_FIRST_USE,
    WORK_SERIALIZED, Why,
};

use super::clock::ClockBounds;
use super::device::Device;
use super::in_flight::Finished;
use super::recording::{self, CommandWork, Name};
use crate::fault::fault_point;
use crate::observe::coverage;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

pub(crate) fn finished(
    lane: &HeldLane<'_>,
    device: &Device,
    finished: Vec<Finished>,
    seen_ns: u64,
) {
    let mut clock = device.clock.state();
    for mut done in finished {
        fault_point!();
        let batch = &mut done.batch;
        recording::mark_concurrent(&mut batch.works, batch.groups, batch.joins, batch.goes_on);
        let mask = device.mask(done.family);
        let ticks: Vec<u64> = done.values.iter().map(|&raw| clock.extend(raw, mask)).collect();
        if let (Some(&first), Some(&last)) = (ticks.first(), ticks.last()) {
            device.clock.note_bounds(&mut clock, (first, last), (batch.submitted_ns, seen_ns));
        }
        for work in &batch.works {
            let group = batch.first_group.wrapping_add(work.group);
            let record = record(lane, device, work, &ticks);
            let record = DeviceWork { stream: batch.stream, group, ..record };
            lane.put_long(&mut record.encode(), &[]);
        }
        if let Some(backend) = batch.works.iter().map(|work| work.place.backend).find(|&b| b != 0) {
            device.backend.store(backend, Ordering::Relaxed);
            cover(lane, device, backend);
        }
    }
    sample_clock(lane, device, &mut clock);
}

pub(crate) fn sample_clock(lane: &HeldLane<'_>, device: &Device, clock: &mut ClockBounds) {
    if device.is_lost() || !lane.writes() {
        return;
    }
    if let Some(sample) = device.clock.sample_if_due(clock, device.handle) {
        lane.put(&sample.encode());
    }
}

fn record(lane: &HeldLane<'_>, device: &Device, work: &CommandWork, ticks: &[u64]) -> DeviceWork {
    let times = work.times(ticks);
    let mut flags = work.flags_with(times.is_some());
    if flags & WORK_SERIALIZED != 0 {
        flags &= !WORK_CONCURRENT;
    }
    if let Some(kernel) = work.kernel().filter(|kernel| kernel.is_first_use()) {
        flags |= WORK_FIRST_USE;
        kernel.write_compiled(lane);
    }
    let name = match &work.name {
        Name::Kernel(pipeline) => pipeline.text(lane),
        Name::Text(text) => lane.recorder.interner().text(lane, text.as_bytes()),
    };
    let backend = match work.place.backend {
        NONE => device.backend.load(Ordering::Relaxed),
        backend => backend,
    };
    let (start, end) = times.unwrap_or_default();
    DeviceWork {
        flags,
        split: work.place.split,
        position: work.place.position,
        name,
        clock: device.clock.id,
        backend,
        start,
        end,
        bytes: work.bytes,
        cause: work.place.cause,
        ..Default::default()
    }
}

/// Says once per backend how its kernels are seen, and once more if the device is lost.
fn cover(lane: &HeldLane<'_>, device: &Device, backend: u32) {
    let mut covered = device.covered.lock();
    let lost = device.is_lost();
    // A loss has a mark of its own: no backend has a number as high.
    let mark = if lost { !backend } else { backend };
    if covered.contains(&mark) {
        return;
    }
    covered.push(mark);
    fault_point!();
    let told = match device.untimed {
        _ if lost => (CoveredHow::Not, Why::plain(CoveredWhy::DeviceLost)),
        "" => (CoveredHow::DeviceTimestamps, Why::UNTOLD),
        detail => (CoveredHow::Not, Why { code: CoveredWhy::DeviceWithoutTimes, detail }),
    };
    coverage::say_of_kernels(lane, backend, told);
    let driver = layout::Driver { backend, version: device.driver_version, ..Default::default() };
    lane.define_lasting(Owner::Backend(backend), &driver.encode());
}
