//! How long devices take for copies, by those that they timed.

use super::Samples;
use ggprof_trace::{BackendIndex, CopyDirection, Event, EventKind, Measured, MemoryIndex, Trace};
use hashbrown::{HashMap, HashSet};

/// Which copies a device timed, and how long they took.
#[derive(Debug, Default)]
pub struct CopyTimes {
    pub(super) kinds: HashMap<CopyKind, Samples>,
    /// Devices that timed copies, and those that timed copies to them: the host may write straight into
    /// the memory of a device, which makes only the other copies itself.
    devices: HashSet<BackendIndex>,
    written: HashSet<BackendIndex>,
}

/// Copies that take about the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CopyKind {
    backend: BackendIndex,
    direction: CopyDirection,
    /// The kinds of memory at both ends, of which pinned memory is several times as fast; `None` for
    /// whatever memory.
    memory: Option<[Option<MemoryIndex>; 2]>,
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Size {
    Exactly(u64),
    /// About the same, known by the number of its bits.
    Bits(u32),
}

impl CopyTimes {
    pub fn of(trace: &Trace) -> Self {
        let mut times = Self::default();
        let elsewhere = trace.elsewhere.iter().copied().filter(|event| !event.is_op());
        let timed = |event: &Event| event.measured == Measured::Device;
        for event in trace.events.copies().chain(elsewhere).filter(timed) {
            times.devices.insert(event.backend);
            if is_written(trace, &event) {
                times.written.insert(event.backend);
            }
            for kind in CopyKind::from_near_to_far(trace, &event).into_iter().take(OF_SAMPLES) {
                times.kinds.entry(kind).or_default().add(event.charged_ns as f64);
            }
        }
        times
    }

    /// Whether only a call is known of a copy. A call that waits for the copy has it in its time, but where
    /// the device times such copies itself, it takes much less than the call. One that reads also waits for
    /// what was computed before.
    pub fn is_untimed(&self, trace: &Trace, event: &Event) -> bool {
        event.kind == EventKind::Copy
            && match event.measured {
                Measured::HostCall => true,
                Measured::Host if is_written(trace, event) => self.written.contains(&event.backend),
                Measured::Host => self.devices.contains(&event.backend),
                _ => false,
            }
    }

    /// How long a device takes for a copy like this one, if it timed others.
    pub fn mean_ns(&self, trace: &Trace, event: &Event) -> Option<f64> {
        Some(self.kinds[&self.nearest(trace, event)?].mean())
    }

    /// The kind that is most like a copy and has samples.
    pub(super) fn nearest(&self, trace: &Trace, event: &Event) -> Option<CopyKind> {
        if self.kinds.is_empty() {
            return None;
        }
        let kinds = CopyKind::from_near_to_far(trace, event);
        kinds.into_iter().find(|kind| self.kinds.contains_key(kind))
    }
}

fn is_written(trace: &Trace, copy: &Event) -> bool {
    trace.direction(copy.node) == CopyDirection::HostToDevice
}

/// So many kinds a copy is a sample of; the others are of copies that are a little smaller or larger.
const OF_SAMPLES: usize = 4;

impl CopyKind {
    /// Kinds that are like a copy: of the same size between the same memory, then of about the same size,
    /// then between whatever memory, then of the next smaller or larger size.
    fn from_near_to_far(trace: &Trace, event: &Event) -> [Self; 6] {
        let ends = trace.ends_of(event.id);
        let memory = ends.map_or([None; 2], |ends| [ends.source, ends.target]);
        let bits = u64::BITS - event.bytes.leading_zeros();
        let exactly = Size::Exactly(event.bytes);
        let kind = |memory, size| Self {
            backend: event.backend,
            direction: trace.direction(event.node),
            memory,
            size,
        };
        [
            kind(Some(memory), exactly),
            kind(Some(memory), Size::Bits(bits)),
            kind(None, exactly),
            kind(None, Size::Bits(bits)),
            kind(None, Size::Bits(bits.saturating_sub(1))),
            kind(None, Size::Bits(bits + 1)),
        ]
    }
}
