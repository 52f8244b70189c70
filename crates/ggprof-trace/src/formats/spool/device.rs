//! The work of devices: which op, copy or other event each piece belongs to.

use super::clock::Clock;
use super::device_clocks::DeviceClocks;
use super::kernel_name::KernelNames;
use super::tables::Tables;
use crate::model::{DeviceWork, EventId, LossKind, Trace, WorkKind, WorkOrigin};
use ggprof_spool::layout::{self, NO_NODE};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A piece of work with its times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed<'a> {
    pub(super) record: &'a layout::DeviceWork,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Timed<'_> {
    fn what(&self) -> u8 {
        what(self.record)
    }

    fn is_concurrent(&self) -> bool {
        self.record.flags & layout::WORK_CONCURRENT != 0
    }

    fn origin(&self) -> WorkOrigin {
        let layout::DeviceWork { backend, split, position, clock, group, .. } = *self.record;
        WorkOrigin {
            backend,
            split,
            position: (position != NO_NODE).then_some(position),
            group: self.is_concurrent().then_some((clock, group)),
        }
    }
}

/// All timed work, by what it was done for.
#[derive(Debug, Default)]
pub(super) struct Device<'a> {
    /// By split, then by the position of the node.
    pub(super) nodes: HashMap<u32, BTreeMap<u32, Vec<Timed<'a>>>>,
    /// All work of a split together, where its parts were not recorded.
    pub(super) whole_splits: HashMap<u32, Vec<Timed<'a>>>,
    /// By the start of the copy that caused it.
    pub(super) copies: HashMap<u64, Vec<Timed<'a>>>,
    /// What belongs to neither.
    pub(super) stray: Vec<Timed<'a>>,
}

impl<'a> Device<'a> {
    pub(super) fn gather(
        tables: &'a Tables,
        host: &Clock,
        clocks: &DeviceClocks,
        trace: &mut Trace,
    ) -> Self {
        let mut device = Self::default();
        for work in timed(tables, host, clocks, trace) {
            let record = work.record;
            if work.what() == layout::WORK_WHOLE_SPLIT {
                device.whole_splits.entry(record.split).or_default().push(work);
            } else if record.position != NO_NODE && record.split != layout::NONE {
                let nodes = device.nodes.entry(record.split).or_default();
                nodes.entry(record.position).or_default().push(work);
            } else if record.cause != 0 {
                device.copies.entry(record.cause).or_default().push(work);
            } else {
                device.stray.push(work);
            }
        }
        device
    }
}

pub(super) fn what(record: &layout::DeviceWork) -> u8 {
    record.flags & 3
}

fn timed<'a>(
    tables: &'a Tables,
    host: &Clock,
    clocks: &DeviceClocks,
    trace: &mut Trace,
) -> Vec<Timed<'a>> {
    let mut timed = Vec::with_capacity(tables.device_work.len());
    for record in &tables.device_work {
        let times = clocks
            .ns(host, record.clock, record.start)
            .zip(clocks.ns(host, record.clock, record.end))
            .filter(|(start, end)| record.flags & layout::WORK_UNTIMED == 0 && start <= end);
        match times {
            Some((start_ns, end_ns)) => timed.push(Timed { record, start_ns, end_ns }),
            None => trace.lose(LossKind::Untimed, || tables.text(record.name).to_owned()),
        }
    }
    timed
}

/// First start and last end.
pub(super) fn extent(work: &[Timed<'_>]) -> (u64, u64) {
    let start = work.iter().map(|work| work.start_ns).min().unwrap_or(0);
    let end = work.iter().map(|work| work.end_ns).max().unwrap_or(start);
    (start, end)
}

/// Adds the pieces to the trace. Events must come in their order.
pub(super) fn attach(
    (tables, names): (&Tables, &mut KernelNames),
    trace: &mut Trace,
    event: EventId,
    work: &[Timed<'_>],
) {
    for piece in work {
        let record = piece.record;
        let name = names.of(tables, trace, record.name);
        let duration_ns = piece.end_ns - piece.start_ns;
        trace.device_work.push(DeviceWork {
            event,
            kind: match piece.what() {
                layout::WORK_COPY => WorkKind::Copy,
                layout::WORK_FILL => WorkKind::Fill,
                _ => WorkKind::Kernel,
            },
            name,
            stream: record.stream,
            start_ns: piece.start_ns,
            duration_ns,
            charged_ns: duration_ns,
            bytes: record.bytes,
            concurrent: piece.is_concurrent(),
            first_use: record.flags & layout::WORK_FIRST_USE != 0,
        });
        trace.work_origins.push(piece.origin());
    }
}
