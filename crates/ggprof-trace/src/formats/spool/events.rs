//! What happened: graph runs, splits, ops, copies.

use super::ReadError;
use super::backends::BackendMap;
use super::batches::Batches;
use super::clock::{Clock, Rate};
use super::device::{self, Device};
use super::device_clocks::DeviceClocks;
use super::kernel_name::KernelNames;
use super::nodes::{self, Nodes};
use super::placement::{self, Memories};
use super::tables::{Split, Tables};
use super::unseen;
use crate::model::{
    Backend, BackendIndex, DeviceType, EventId, EventKind, GraphRun, GraphRunId, LossKind,
    Measured, NewEvent, NewInStretch, Signature, Source, Stretch, Tensor, ThreadFold, ThreadShare,
    Trace,
};
use ggprof_ggml::computes;
use ggprof_spool::bytes::Bytes;
use ggprof_spool::layout::{self, Covered, CoveredHow};
use ggprof_spool::record::{Op, Share};
use ggprof_spool::scan::{OpReader, OpRun};
use hashbrown::HashMap;

/// Nodes back from the last one that a fusion with it may begin at.
const LONGEST_FUSION: usize = 32;

pub(super) fn all<S: Bytes + ?Sized>(
    tables: &Tables,
    mut reader: OpReader<'_, S>,
    clock: &Clock,
    device_clocks: &DeviceClocks,
    backends: &BackendMap,
    trace: &mut Trace,
) -> Result<(), ReadError> {
    let most = u32::MAX - 1;
    let ops = tables.op_runs.count() as usize;
    let events = ops + tables.copies.len() + tables.device_work.len();
    if events + tables.splits.len() >= most as usize {
        return Err(ReadError::TooManyEvents(most));
    }
    trace.events.reserve(ops + tables.copies.len());
    nodes::take_types(tables, trace);
    let device = Device::gather(tables, clock, device_clocks, trace);
    let mut builder = Builder {
        tables,
        clock,
        backends,
        runs: runs(tables, clock, trace),
        nodes: Nodes::default(),
        kernel_names: KernelNames::default(),
        ops: HashMap::new(),
        taken: Vec::new(),
        device,
        memories: Memories::take(tables, trace),
    };
    unseen::count(tables, &mut reader, trace)?;
    builder.splits(&mut reader, trace)?;
    builder.copies(trace);
    builder.stray_work(trace);
    builder.host_tasks(trace);
    builder.waits(trace);
    builder.shares(trace);
    builder.experts(trace);
    builder.graph_calls(trace);
    placement::take(tables, backends, &builder.memories, &builder.nodes, trace);
    Ok(())
}

/// Completed graph runs by start; those that were never finished are left out.
fn runs(tables: &Tables, clock: &Clock, trace: &mut Trace) -> HashMap<u32, GraphRunId> {
    let mut order: Vec<_> = tables.runs.values().filter(|run| run.end.is_some()).collect();
    order.sort_by_key(|run| run.begin.ticks);
    let batches = Batches::take(tables, clock, trace);
    let mut ids = HashMap::new();
    for run in order {
        let start_ns = clock.ns(run.begin.ticks);
        let end_ns = run.end.map_or(start_ns, |end| clock.ns(end.ticks)).max(start_ns);
        ids.insert(run.begin.run, GraphRunId(trace.graph_runs.len() as u32));
        trace.graph_runs.push(GraphRun {
            scheduler: run.begin.scheduler,
            start_ns,
            end_ns,
            number: Some(run.begin.number).filter(|&number| number > 0),
            batch: batches.of(run),
            process: None,
        });
    }
    ids
}

pub(super) struct Builder<'a> {
    pub(super) tables: &'a Tables,
    pub(super) clock: &'a Clock,
    pub(super) backends: &'a BackendMap,
    pub(super) runs: HashMap<u32, GraphRunId>,
    pub(super) nodes: Nodes,
    pub(super) kernel_names: KernelNames,
    /// The event of each op, for the shares of its threads if there are any.
    ops: HashMap<(u32, u32), EventId>,
    /// The ops of a split on their way to the events; between splits, room for the next.
    taken: Vec<NewInStretch>,
    pub(super) device: Device<'a>,
    pub(super) memories: Memories,
}

impl Builder<'_> {
    fn splits<S: Bytes + ?Sized>(
        &mut self,
        reader: &mut OpReader<'_, S>,
        trace: &mut Trace,
    ) -> Result<(), ReadError> {
        let mut order: Vec<&Split> = self.tables.splits.values().collect();
        order.sort_by_key(|split| split.begin.ticks);
        for split in order {
            let begin = &split.begin;
            let (Some(end), Some(&graph_run), Some(&backend)) =
                (split.end, self.runs.get(&begin.run), self.backends.get(&begin.backend))
            else {
                continue;
            };
            let (start_ns, end_ns) = (self.clock.ns(begin.ticks), self.clock.ns(end.ticks));
            let index = i32::from(begin.index);
            let place = Place { graph_run: Some(graph_run), backend, split: index };
            if let Some(nodes) = self.device.nodes.remove(&begin.split) {
                for (position, work) in nodes {
                    self.device_op(trace, (begin.shape, position), &place, &work);
                }
            } else if let runs @ [_, ..] = self.tables.op_runs.of(begin.split) {
                let ops = SplitOps::new(self, begin, place);
                ops.take(self, reader, runs, trace)?;
            } else if let Some(whole) = self.device.whole_splits.get(&begin.split) {
                let times = device::extent(whole);
                whole_split(trace, self.kind_of(begin), &place, times, Measured::Device);
            } else if begin.nodes > 0 && !self.sees_all_ops(begin) {
                let measured = measured_by_host(trace.backend(backend));
                whole_split(trace, self.kind_of(begin), &place, (start_ns, end_ns), measured);
            }
        }
        Ok(())
    }

    /// Where all ops are seen, a split without any had nothing to compute. Which ops ticked may be
    /// unknown.
    fn sees_all_ops(&self, begin: &layout::SplitBegin) -> bool {
        match self.tables.coverage.how(begin.backend, Covered::Ops) {
            Some(CoveredHow::AbortCallback) => self.kind_of(begin).is_none(),
            how => how.is_some_and(CoveredHow::sees_every_op),
        }
    }

    /// Whether its threads were seen to wait. Otherwise it is not known how long they worked.
    fn sees_waits(&self, backend: u32) -> bool {
        let how = self.tables.coverage.how(backend, Covered::BarrierWaits);
        how.is_some_and(|how| how != CoveredHow::Not)
    }

    /// What a split computes, as far as its first and last op tell: from a tensor like the
    /// first one's to one like the last one's. This tells a prompt from a token.
    fn kind_of(&self, begin: &layout::SplitBegin) -> Option<(Tensor, Tensor)> {
        let op_at = |&position: &u32| {
            let (node, _) = self.tables.nodes.get(&self.tables.node_at(begin.shape, position)?)?;
            let computes = computes(self.tables.text(node.op_name));
            computes.then_some(Tensor { type_id: node.type_id as i32, ne: node.ne })
        };
        let first = (0..begin.nodes).find_map(|position| op_at(&position))?;
        let last = (0..begin.nodes).rev().find(|position| op_at(position).is_some())?;
        // A fused op stands where its first node does.
        let heads = |position: &u32| {
            let members = self.tables.fusions.get(&(begin.shape, *position));
            members.is_some_and(|members| members.contains(&last))
        };
        let head = (0..=last).rev().take(LONGEST_FUSION).find(heads).unwrap_or(last);
        Some((first, op_at(&head)?))
    }

    fn experts(&mut self, trace: &mut Trace) {
        for (of, counts) in &self.tables.expert_uses {
            let Some(begin) = self.tables.splits.get(&of.split).map(|split| &split.begin) else {
                continue;
            };
            let Some(&run) = self.runs.get(&begin.run) else { continue };
            let key = (begin.shape, of.position);
            let Some(node) = self.nodes.at(self.tables, trace, key, false) else { continue };
            let counts = counts.iter().map(|count| (count.expert, count.uses));
            trace.expert_uses.push(node, run, of.experts, (of.tokens, of.tokens_read), counts);
        }
    }

    /// Start and length of a span of ticks, in nanoseconds.
    pub(super) fn span(&self, start: u64, end: u64) -> (u64, u64) {
        let start_ns = self.clock.ns(start);
        (start_ns, self.clock.ns(end).saturating_sub(start_ns))
    }

    fn shares(&mut self, trace: &mut Trace) {
        let mut shares: Vec<(EventId, &Share)> = self
            .tables
            .shares
            .iter()
            .filter_map(|share| Some((*self.ops.get(&(share.split, share.position))?, share)))
            .collect();
        shares.sort_by_key(|(event, share)| (*event, share.thread));
        for (event, share) in shares {
            let Some(split) = self.tables.splits.get(&share.split) else { continue };
            let start = split.begin.ticks.saturating_add(share.start);
            let (start_ns, duration_ns) = self.span(start, start.saturating_add(share.duration));
            let waited = share.inner_wait.saturating_add(share.after_wait);
            let (_, wait_ns) = self.span(start, start.saturating_add(waited));
            let thread = share.thread.into();
            let share = ThreadShare { event, thread, start_ns, duration_ns, wait_ns };
            trace.events.thread_shares.push(share);
        }
    }
}

/// The ops of a split on their way from the file to the events.
struct SplitOps<'a> {
    begin: &'a layout::SplitBegin,
    place: Place,
    rate: Rate,
    waits_seen: bool,
    keeps_events: bool,
}

impl<'a> SplitOps<'a> {
    fn new(builder: &Builder<'_>, begin: &'a layout::SplitBegin, place: Place) -> Self {
        Self {
            begin,
            place,
            rate: builder.clock.rate_at(begin.ticks),
            waits_seen: builder.sees_waits(begin.backend),
            keeps_events: !builder.tables.shares.is_empty(),
        }
    }

    fn take<S: Bytes + ?Sized>(
        &self,
        builder: &mut Builder<'_>,
        reader: &mut OpReader<'_, S>,
        runs: &[OpRun],
        trace: &mut Trace,
    ) -> Result<(), ReadError> {
        let mut taken = std::mem::take(&mut builder.taken);
        for run in runs {
            reader.each(run, |op| match op {
                Some(op) => {
                    let event = EventId((trace.events.len() + taken.len()) as u32);
                    if let Some(new) = self.op(builder, trace, &op) {
                        taken.push(new);
                        if self.keeps_events {
                            builder.ops.insert((op.split, op.position), event);
                        }
                    }
                }
                // The program went on writing while it was read.
                None => trace.lose(LossKind::DamagedRecord, || "an op was overwritten".to_owned()),
            })?;
        }
        trace.events.extend(self.place.of_ops(), &taken);
        taken.clear();
        builder.taken = taken;
        Ok(())
    }

    #[inline]
    fn op(&self, builder: &mut Builder<'_>, trace: &mut Trace, op: &Op) -> Option<NewInStretch> {
        let key = (self.begin.shape, op.position);
        let Some(node) = builder.nodes.at(builder.tables, trace, key, op.fused) else {
            trace.lose(LossKind::DamagedRecord, || "an op's description is missing".to_owned());
            return None;
        };
        // One at a time, even a node that computes nothing costs a call; that is not an op.
        let measured = measured(op.measured);
        if measured == Measured::Serialized && !computes(trace.op_name(node)) {
            return None;
        }
        let start = self.begin.ticks.saturating_add(op.start);
        let longest = op.duration.max(op.busy_sum).max(op.busy_max).max(op.wait_sum);
        let times = match self.rate.holds(start, start.saturating_add(longest)) {
            true => {
                let moment = self.rate.at(start);
                OpTimes::of(op, moment.ns, |ticks| self.rate.span(&moment, ticks))
            }
            false => {
                let start_ns = builder.clock.ns(start);
                let end_ns = |ticks| builder.clock.ns(start.saturating_add(ticks));
                OpTimes::of(op, start_ns, |ticks| end_ns(ticks).saturating_sub(start_ns))
            }
        };
        Some(NewInStretch {
            node,
            start_ns: times.start_ns,
            duration_ns: times.duration_ns,
            bytes: builder.nodes.output_bytes(trace, node),
            measured,
            threads: self.waits_seen.then_some(times.threads),
        })
    }
}

/// An op's ticks as nanoseconds.
struct OpTimes {
    start_ns: u64,
    duration_ns: u64,
    threads: ThreadFold,
}

impl OpTimes {
    #[inline(always)]
    fn of(op: &Op, start_ns: u64, span: impl Fn(u64) -> u64) -> Self {
        Self {
            start_ns,
            duration_ns: span(op.duration),
            threads: ThreadFold {
                busy_sum_ns: span(op.busy_sum),
                wait_sum_ns: span(op.wait_sum),
                busy_max_ns: span(op.busy_max),
                threads: op.threads.into(),
            },
        }
    }
}

/// What the events of a split have in common.
pub(super) struct Place {
    pub(super) graph_run: Option<GraphRunId>,
    pub(super) backend: BackendIndex,
    pub(super) split: i32,
}

impl Place {
    fn of_ops(&self) -> Stretch {
        Stretch {
            kind: EventKind::Op,
            backend: self.backend,
            source_backend: None,
            split: self.split,
            graph_run: self.graph_run,
        }
    }
}

/// The processor has computed when it returns; devices may only have begun.
fn measured_by_host(backend: &Backend) -> Measured {
    match backend.device_type {
        DeviceType::Cpu => Measured::Host,
        _ => Measured::HostCall,
    }
}

/// One event for a split whose ops were not told apart.
fn whole_split(
    trace: &mut Trace,
    kind: Option<(Tensor, Tensor)>,
    place: &Place,
    (start_ns, end_ns): (u64, u64),
    measured: Measured,
) {
    let mut signature = Signature::of_op(trace.strings.intern(Signature::WHOLE_SPLIT));
    if let Some((first, last)) = kind {
        signature.output = last;
        signature.sources = [Source { tensor: first, nb: [0; 4], slot: 0 }].into_iter().collect();
    }
    let node = trace.nodes.intern(signature, None, &[]);
    trace.events.push(NewEvent {
        split: place.split,
        graph_run: place.graph_run,
        start_ns,
        duration_ns: end_ns.saturating_sub(start_ns),
        measured,
        ..NewEvent::of(EventKind::Op, node, place.backend)
    });
}

#[inline]
fn measured(number: u8) -> Measured {
    match number {
        layout::MEASURED_DEVICE => Measured::Device,
        layout::MEASURED_SERIALIZED => Measured::Serialized,
        layout::MEASURED_MODELLED => Measured::Modelled,
        _ => Measured::Host,
    }
}
