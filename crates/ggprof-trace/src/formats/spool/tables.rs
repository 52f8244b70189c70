//! All records of a file, sorted into tables.

use super::Selection;
use super::coverage::LastWords;
use super::op_runs::OpRuns;
use crate::model::{LossKind, Trace};
use ggprof_spool::bytes::Bytes;
use ggprof_spool::layout::{self, ClockSample, CopyEvent};
use ggprof_spool::reader::DamageReason;
use ggprof_spool::record::Share;
use ggprof_spool::scan::{Found, Scan};
use ggprof_spool::{Damage, Record};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::io;

/// Ids of the file are keys here; nothing is resolved yet.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) texts: HashMap<u32, String>,
    pub(super) types: Vec<layout::TypeEntry>,
    pub(super) nodes: HashMap<u32, (layout::Node, Vec<layout::Source>)>,
    /// Node numbers by shape.
    pub(super) shapes: HashMap<u32, Vec<u32>>,
    /// Positions of the nodes that ran as one, by shape and first position.
    pub(super) fusions: HashMap<(u32, u32), Vec<u32>>,
    pub(super) backends: BTreeMap<u32, layout::Backend>,
    /// Which backend has which place in which scheduler.
    pub(super) members: Vec<layout::SchedulerBackend>,
    pub(super) instances: Vec<layout::Instance>,
    pub(super) coverage: LastWords,
    pub(super) clock_samples: Vec<ClockSample>,
    pub(super) runs: BTreeMap<u32, Run>,
    pub(super) splits: BTreeMap<u32, Split>,
    /// Of a recording that is complete, where the ops are.
    pub(super) op_runs: OpRuns,
    pub(super) shares: Vec<Share>,
    pub(super) copies: Vec<CopyEvent>,
    pub(super) device_clocks: Vec<layout::DeviceClock>,
    pub(super) device_work: Vec<layout::DeviceWork>,
    pub(super) host_tasks: Vec<layout::HostTask>,
    pub(super) waits: Vec<layout::Synchronize>,
    pub(super) batches: BTreeMap<u32, BatchCall>,
    pub(super) context_changes: Vec<layout::ContextChange>,
    /// The last that was said of each, with the name of its first tensor.
    pub(super) buffers: BTreeMap<u32, (layout::Buffer, String)>,
    /// Each with its device's name.
    pub(super) sensors: BTreeMap<u32, (layout::Sensor, String)>,
    pub(super) samples: Vec<layout::Sample>,
    /// By device, the last of each.
    pub(super) device_memory: BTreeMap<u32, layout::DeviceMemory>,
    /// By backend.
    pub(super) drivers: BTreeMap<u32, layout::Driver>,
    /// What it is, and its text.
    pub(super) machine: Vec<(u8, String)>,
    pub(super) transfers: Vec<layout::Transfer>,
    pub(super) memory_kinds: BTreeMap<u32, layout::MemoryKind>,
    /// By node and by the backend that computed it.
    pub(super) placements: HashMap<(u32, u32), Placed>,
    pub(super) expert_uses: Vec<(layout::ExpertUse, Vec<layout::ExpertCount>)>,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) begin: layout::GraphRunBegin,
    pub(super) end: Option<layout::GraphRunEnd>,
}

#[derive(Debug)]
pub(super) struct Split {
    pub(super) begin: layout::SplitBegin,
    pub(super) end: Option<layout::SplitEnd>,
}

/// Where a node's tensors are, and what devices say of it.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) record: layout::Placement,
    pub(super) sources: Vec<u32>,
    pub(super) answers: Vec<layout::Answer>,
}

#[derive(Debug)]
pub(super) struct BatchCall {
    pub(super) begin: layout::BatchBegin,
    pub(super) sequences: Vec<layout::BatchSequence>,
    pub(super) end: Option<layout::BatchEnd>,
}

/// Whether nobody asks about it while the program runs.
pub(super) fn is_for_reports_only(record: &Record) -> bool {
    matches!(
        record,
        Record::Buffer { .. }
            | Record::Coverage(_)
            | Record::DeviceMemory(_)
            | Record::Driver(_)
            | Record::ExpertUse { .. }
            | Record::HostTask(_)
            | Record::Instance(_)
            | Record::Machine { .. }
            | Record::MemoryKind(_)
            | Record::Placement { .. }
            | Record::Sample(_)
            | Record::Sensor { .. }
            | Record::ThreadShare(_)
            | Record::Transfer(_)
    )
}

impl Tables {
    /// Reads all records but ops, which it notes the places of; damage becomes losses of `trace`.
    pub(super) fn gather<S: Bytes + ?Sized>(
        scan: &Scan<'_, S>,
        trace: &mut Trace,
    ) -> io::Result<Self> {
        let ended = scan.header().end_ticks != 0;
        let mut tables = Self::default();
        // An end may stand in another thread's block, before its begin.
        let mut ends = Vec::new();
        scan.all(|found| match found {
            Found::Ops(run) => tables.op_runs.push(run),
            Found::Record(
                end @ (Record::GraphRunEnd(_) | Record::SplitEnd(_) | Record::BatchEnd(_)),
            ) => ends.push(end),
            Found::Record(record) => tables.take(record),
            // What a program leaves that is ended in the middle of a record.
            Found::Damage(Damage { reason: DamageReason::Uncommitted, .. }) if !ended => {}
            Found::Damage(damage) if damage.reason == DamageReason::FileCut => {
                trace.lose(LossKind::Truncated, || format!("it ends at byte {}", damage.offset));
            }
            Found::Damage(damage) => trace.lose(LossKind::DamagedRecord, || damage.to_string()),
        })?;
        for end in ends {
            tables.take(end);
        }
        tables.op_runs.sort();
        Ok(tables)
    }

    /// Leaves what belongs to some runs of one scheduler.
    pub(super) fn select(&mut self, selection: &Selection) {
        self.runs.retain(|&run, records| selection.holds(run, records.begin.scheduler));
        self.splits.retain(|_, split| self.runs.contains_key(&split.begin.run));
        self.op_runs.retain(|split| self.splits.contains_key(&split));
        self.expert_uses.retain(|(of, _)| self.splits.contains_key(&of.split));
        self.shares.retain(|share| self.splits.contains_key(&share.split));
        self.device_work.retain(|work| self.splits.contains_key(&work.split));
        self.host_tasks.retain(|task| self.splits.contains_key(&task.split));
        self.waits.retain(|wait| wait.scheduler == selection.scheduler);
        self.copies.retain(|copy| self.runs.contains_key(&copy.run));
        self.members.retain(|member| member.scheduler == selection.scheduler);
        let members = &self.members;
        let is_member = |backend: u32| members.iter().any(|member| member.backend == backend);
        if !members.is_empty() {
            self.backends.retain(|&backend, _| is_member(backend));
            self.coverage.retain(is_member);
        }
    }

    /// The place of a backend in the first scheduler that has it.
    pub(super) fn place_of(&self, backend: u32) -> Option<u16> {
        self.members.iter().find(|member| member.backend == backend).map(|member| member.index)
    }

    pub(super) fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", String::as_str)
    }

    /// The node at a position of a split's graph.
    pub(super) fn node_at(&self, shape: u32, position: u32) -> Option<u32> {
        self.shapes
            .get(&shape)?
            .get(position as usize)
            .copied()
            .filter(|&node| node != layout::NONE)
    }

    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Text { id, text } => _ = self.texts.insert(id, text),
            Record::Type(entry) => self.types.push(entry),
            Record::Node { node, sources } => _ = self.nodes.insert(node.node, (node, sources)),
            Record::GraphShape { shape, first, nodes } => self.take_shape(shape, first, &nodes),
            Record::Fusion { shape, position, members } => {
                self.fusions.insert((shape, position), members);
            }
            Record::Backend(backend) => _ = self.backends.insert(backend.backend, backend),
            Record::SchedulerBackend(member) => self.members.push(member),
            Record::Instance(instance) => self.instances.push(instance),
            Record::Coverage(coverage) => self.coverage.take(coverage),
            Record::Clock(sample) => self.clock_samples.push(sample),
            Record::GraphRunBegin(begin) => {
                self.runs.insert(begin.run, Run { begin, end: None });
            }
            end @ (Record::GraphRunEnd(_) | Record::SplitEnd(_) | Record::BatchEnd(_)) => {
                self.take_end(end);
            }
            Record::SplitBegin(begin) => {
                self.splits.insert(begin.split, Split { begin, end: None });
            }
            // A scan tells where they are; who follows a recording takes them.
            Record::Op(_) => {}
            Record::ThreadShare(share) => self.shares.push(share),
            Record::Copy(copy) => self.copies.push(copy),
            Record::DeviceClock(sample) => self.device_clocks.push(sample),
            Record::DeviceWork(work) => self.device_work.push(work),
            Record::HostTask(task) => self.host_tasks.push(task),
            Record::Synchronize(wait) => self.waits.push(wait),
            Record::BatchBegin { batch: begin, sequences } => {
                self.batches.insert(begin.call, BatchCall { begin, sequences, end: None });
            }
            Record::MemoryKind(kind) => _ = self.memory_kinds.insert(kind.memory, kind),
            Record::Placement { placement: record, sources, answers } => {
                let key = (record.node, record.backend);
                self.placements.insert(key, Placed { record, sources, answers });
            }
            Record::ExpertUse { of, counts } => self.expert_uses.push((of, counts)),
            Record::ContextChange(change) => self.context_changes.push(change),
            Record::Buffer { buffer, tensor } => {
                self.buffers.insert(buffer.buffer, (buffer, tensor));
            }
            Record::Sensor { sensor, name } => {
                self.sensors.insert(sensor.sensor, (sensor, name));
            }
            Record::Sample(sample) => self.samples.push(sample),
            Record::Driver(driver) => _ = self.drivers.insert(driver.backend, driver),
            Record::DeviceMemory(memory) => {
                self.device_memory.insert(memory.device, memory);
            }
            Record::Machine { machine, text } => self.machine.push((machine.what, text)),
            Record::Transfer(transfer) => self.transfers.push(transfer),
            Record::Unknown { .. } => {}
        }
    }

    /// Of what has begun; any other end is of a part that was not kept.
    fn take_end(&mut self, end: Record) {
        match end {
            Record::GraphRunEnd(end) => {
                self.runs.entry(end.run).and_modify(|run| run.end = Some(end));
            }
            Record::SplitEnd(end) => {
                self.splits.entry(end.split).and_modify(|split| split.end = Some(end));
            }
            Record::BatchEnd(end) => {
                self.batches.entry(end.call).and_modify(|call| call.end = Some(end));
            }
            _ => {}
        }
    }

    /// Joins the parts of a large graph, which may come in any order.
    fn take_shape(&mut self, shape: u32, first: u32, nodes: &[u32]) {
        /// Far more nodes than a graph has; a damaged number must not fill the memory.
        const MOST_NODES: usize = 1 << 24;
        let whole = self.shapes.entry(shape).or_default();
        let (start, end) = (first as usize, first as usize + nodes.len());
        if end > MOST_NODES {
            return;
        }
        if whole.len() < end {
            whole.resize(end, layout::NONE);
        }
        whole[start..end].copy_from_slice(nodes);
    }
}
