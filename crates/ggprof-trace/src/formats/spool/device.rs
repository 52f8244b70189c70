//! The work of devices: which op, copy or other event each piece belongs to.

use super::clock::Clock;
use super::device_charges::{Charge, Piece, charges};
use super::device_clocks::DeviceClocks;
use super::kernel_name::KernelNames;
use super::tables::Tables;
use crate::model::{DeviceWork, EventId, LossKind, Trace, WorkKind};
use ggprof_ggml::{Touched, touched};
use ggprof_spool::layout::{self, NO_NODE};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// A piece of work with its times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed<'a> {
    pub(super) record: &'a layout::DeviceWork,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) charge: Charge,
}

impl Timed<'_> {
    fn what(&self) -> u8 {
        what(self.record)
    }

    /// The group it shares with other work.
    fn group(&self) -> Option<Group> {
        let layout::DeviceWork { flags, clock, stream, group, .. } = *self.record;
        (flags & layout::WORK_CONCURRENT != 0).then_some((clock, stream, group))
    }
}

/// Clock of the device, stream, number.
type Group = (u32, u32, u32);

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
        let mut timed = timed(tables, host, clocks, trace);
        charge(tables, trace, &mut timed);
        let mut device = Self::default();
        for work in timed {
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
            Some((start_ns, end_ns)) => {
                timed.push(Timed { record, start_ns, end_ns, charge: Charge::default() });
            }
            None => trace.lose(LossKind::Untimed, || tables.text(record.name).to_owned()),
        }
    }
    timed
}

/// Charges the work of each backend, computing and copying apart: a copy engine works beside
/// the kernels, and what it does is no op's time.
fn charge(tables: &Tables, trace: &Trace, timed: &mut [Timed<'_>]) {
    let mut by_engine: HashMap<(u32, u8), Vec<usize>> = HashMap::new();
    for (at, work) in timed.iter().enumerate() {
        let engine = match work.what() {
            layout::WORK_WHOLE_SPLIT => layout::WORK_WHOLE_SPLIT,
            layout::WORK_COPY if work.record.position == NO_NODE => layout::WORK_COPY,
            _ => layout::WORK_KERNEL,
        };
        by_engine.entry((work.record.backend, engine)).or_default().push(at);
    }
    let shared = shared_groups(timed);
    for members in by_engine.values() {
        let pieces: Vec<Piece> = members
            .iter()
            .map(|&at| Piece {
                start_ns: timed[at].start_ns,
                end_ns: timed[at].end_ns,
                owner: (timed[at].record.split, timed[at].record.position),
                weight: weight(tables, trace, timed[at].record),
                beside: timed[at].group().is_some_and(|group| shared.contains(&group)),
            })
            .collect();
        for (&at, charge) in members.iter().zip(charges(&pieces)) {
            timed[at].charge = charge;
        }
    }
}

/// Groups with work of several ops that nothing kept apart.
fn shared_groups(timed: &[Timed<'_>]) -> HashSet<Group> {
    let mut owners = HashMap::new();
    let mut shared = HashSet::new();
    for work in timed {
        let owner = (work.record.split, work.record.position);
        if let Some(group) = work.group()
            && *owners.entry(group).or_insert(owner) != owner
        {
            shared.insert(group);
        }
    }
    shared
}

/// The bytes of the tensors that the work reads and writes, for sharing out an interval.
fn weight(tables: &Tables, trace: &Trace, record: &layout::DeviceWork) -> u64 {
    let shape = tables.splits.get(&record.split).map(|split| split.begin.shape);
    let node = shape.and_then(|shape| tables.node_at(shape, record.position));
    let Some((node, sources)) = node.and_then(|node| tables.nodes.get(&node)) else {
        return record.bytes;
    };
    let bytes = |type_id: u32, ne| {
        trace.types.bytes_of(&crate::model::Tensor { type_id: type_id as i32, ne }).unwrap_or(0)
    };
    let output = bytes(node.type_id, node.ne);
    let mut read = sources.iter().map(|source| bytes(source.type_id, source.ne));
    match touched(tables.text(node.op_name)) {
        Touched::RowsOfTheOutput => output.saturating_mul(2),
        Touched::RowsOfTheFirstSource => read.next().unwrap_or(0).saturating_mul(2),
        // How many matrices a batch selects is not known, and a weight need not be exact.
        Touched::All | Touched::AllButTheTarget | Touched::SelectedMatrices => {
            read.fold(output, u64::saturating_add)
        }
    }
}

/// First start, last end, and the sum of the charges.
pub(super) fn extent(work: &[Timed<'_>]) -> (u64, u64, u64) {
    let start = work.iter().map(|work| work.start_ns).min().unwrap_or(0);
    let end = work.iter().map(|work| work.end_ns).max().unwrap_or(start);
    (start, end, work.iter().map(|work| work.charge.ns).sum())
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
            duration_ns: piece.end_ns - piece.start_ns,
            charged_ns: piece.charge.ns,
            bytes: record.bytes,
            concurrent: record.flags & layout::WORK_CONCURRENT != 0,
            first_use: record.flags & layout::WORK_FIRST_USE != 0,
        });
    }
}
