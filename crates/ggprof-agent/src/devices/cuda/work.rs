//! Writes CUPTI's records into the recording: each piece of work with the split and node it belongs
//! to. Work without a node or without times is kept too; its time is not spread over other work.

use ggprof_spool::layout::{self, DeviceClock, DeviceWork, LossCounter, NO_NODE};

use super::clock_bound::ClockBound;
use super::cupti::records::{Activity, HostMemory, What};
use super::graph_nodes::{GraphNodes, Orders};
use super::launches::{self, Launch};
use crate::digest::NumberMap;
use crate::fault::fault_point;
use crate::recorder::lane::HeldLane;

/// CUPTI stamps with the host's monotonic clock; this is its number in the file. Those
/// of Vulkan devices count from 1, those of `split_timer` from the number after this.
pub(super) const CLOCK: u32 = 1 << 16;

/// Writes work as CUPTI delivers it, and keeps what identifies the next.
#[derive(Debug, Default)]
pub(crate) struct WorkWriter {
    pub(crate) nodes: GraphNodes,
    /// How many pieces of work were delivered in this window.
    pub(crate) records: u64,
    /// The backend that last used each device, by the device's number.
    backends: Vec<(u32, u32)>,
    pub(crate) bound: ClockBound,
    /// Executable graphs whose nodes are identified by their order.
    pub(crate) orders: Orders,
    /// Work of such a graph in the order of time, until all of one launch is there.
    waiting: NumberMap<u32, Vec<DeviceWork>>,
}

impl WorkWriter {
    pub(crate) fn take(&mut self, lane: &HeldLane<'_>, activity: &Activity) {
        self.records += 1;
        fault_point!();
        let launch = launches::find(activity.correlation).unwrap_or(Launch::UNKNOWN);
        let timed = activity.has_times();
        if timed {
            self.bound.note(launch.called_ns, activity.start, activity.end);
        }
        let (what, bytes) = describe(activity.what);
        let name = match activity.what {
            What::Kernel(_) => activity.kernel_name(),
            other => name_of(other),
        };
        let mut record = DeviceWork {
            flags: what | if timed { 0 } else { layout::WORK_UNTIMED },
            split: launch.split,
            position: launch.position,
            name: lane.recorder.interner().text(lane, name),
            clock: CLOCK,
            stream: activity.stream,
            backend: self.backend(activity.device, launch.backend),
            start: if timed { activity.start } else { 0 },
            end: if timed { activity.end } else { 0 },
            bytes,
            cause: launch.cause,
            ..Default::default()
        };
        if activity.graph_node == 0 {
            put(lane, &record);
        } else if self.orders.rules(launch.executable) {
            self.wait(lane, activity.correlation, launch.executable, record);
        } else {
            record.position = self.nodes.position(activity.graph_node).unwrap_or(NO_NODE);
            put(lane, &record);
        }
    }

    /// Keeps a graph's work until all of the launch is there, and its order tells
    /// which node each piece belongs to.
    fn wait(&mut self, lane: &HeldLane<'_>, correlation: u32, executable: u64, work: DeviceWork) {
        let order = self.orders.order(executable);
        let waiting = self.waiting.entry(correlation).or_default();
        // In the order of time, as nearly all work arrives.
        let place = waiting.partition_point(|other| other.start <= work.start);
        waiting.insert(place, work);
        if waiting.len() < order.len() {
            return;
        }
        fault_point!();
        for (at, work) in waiting.iter_mut().enumerate() {
            work.position = order.get(at).copied().unwrap_or(NO_NODE);
            put(lane, work);
        }
        self.waiting.remove(&correlation);
    }

    /// Called when everything was delivered. Launches that are still incomplete have no usable
    /// order, so their work is written without nodes.
    pub(crate) fn give_up_waiting(&mut self, lane: &HeldLane<'_>) {
        for work in self.waiting.drain().flat_map(|(_, waiting)| waiting) {
            put(lane, &work);
        }
    }

    /// Work outside any split belongs to the backend that uses the device.
    fn backend(&mut self, device: u32, known: u32) -> u32 {
        let place = self.backends.iter().position(|(number, _)| *number == device);
        match (place, known) {
            (Some(place), layout::NONE) => self.backends[place].1,
            (Some(place), _) => {
                self.backends[place].1 = known;
                known
            }
            (None, layout::NONE) => layout::NONE,
            (None, _) => {
                self.backends.push((device, known));
                known
            }
        }
    }

    /// Writes the bound of the clock's error, when everything was delivered.
    pub(crate) fn write_clock(&mut self, lane: &HeldLane<'_>) {
        if let Some((at_ns, uncertainty_ns)) = self.bound.take() {
            let record = DeviceClock {
                clock: CLOCK,
                uncertainty_ns: u32::try_from(uncertainty_ns).unwrap_or(u32::MAX),
                tick_ps: 1000,
                device_ticks: at_ns,
                monotonic_ns: at_ns,
                ..Default::default()
            };
            lane.put(&record.encode());
        }
    }

    pub(crate) fn note_dropped(lane: &HeldLane<'_>, dropped: u64) {
        if dropped > 0 {
            lane.recorder.lose(LossCounter::DeviceRecords, dropped);
        }
    }
}

fn put(lane: &HeldLane<'_>, work: &DeviceWork) {
    lane.put_long(&mut work.encode(), &[]);
}

/// The flags and bytes of a piece of work.
fn describe(what: What) -> (u8, u64) {
    match what {
        What::Kernel(_) => (layout::WORK_KERNEL, 0),
        What::Fill { bytes } => (layout::WORK_FILL, bytes),
        What::Copy { direction, bytes, .. } => {
            (layout::WORK_COPY | direction << layout::WORK_DIRECTION_BIT, bytes)
        }
    }
}

fn name_of(what: What) -> &'static [u8] {
    match what {
        What::Copy { memory: HostMemory::Pinned, .. } => b"memcpy, pinned",
        What::Copy { memory: HostMemory::Pageable, .. } => b"memcpy, pageable",
        What::Copy { .. } => b"memcpy",
        What::Fill { .. } => b"memset",
        What::Kernel(_) => b"",
    }
}
