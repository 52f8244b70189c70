//! What happened: graph runs, splits, ops, copies.

use super::ReadError;
use super::backends::BackendMap;
use super::clock::Clock;
use super::nodes::{self, Nodes};
use super::tables::{Split as SplitRecords, Tables};
use crate::model::{
    BackendIndex, EventId, EventKind, GraphRun, GraphRunId, LossKind, Measured, NewEvent, NodeId,
    Signature, Source, Split, Tensor, ThreadFold, ThreadShare, Trace,
};
use ggprof_spool::layout::{self, CopyEvent, Covered, CoveredHow};
use ggprof_spool::record::{Op, Share};
use hashbrown::{HashMap, HashSet};

/// The name of an event that stands for all ops of a split that could not be told apart.
const WHOLE_SPLIT: &str = "SPLIT";

pub(super) fn all(
    tables: &Tables,
    clock: &Clock,
    backends: &BackendMap,
    trace: &mut Trace,
) -> Result<(), ReadError> {
    let most = u32::MAX - 1;
    if tables.ops.len() + tables.copies.len() + tables.splits.len() >= most as usize {
        return Err(ReadError::TooManyEvents(most));
    }
    nodes::take_types(tables, trace);
    let mut builder = Builder {
        tables,
        clock,
        backends,
        runs: runs(tables, clock, trace),
        nodes: Nodes::default(),
        ops: HashMap::new(),
    };
    builder.splits(trace);
    builder.copies(trace);
    builder.shares(trace);
    Ok(())
}

/// Completed graph runs by start; those that were never finished are left out.
fn runs(tables: &Tables, clock: &Clock, trace: &mut Trace) -> HashMap<u32, GraphRunId> {
    let mut order: Vec<_> = tables.runs.values().filter(|run| run.end.is_some()).collect();
    order.sort_by_key(|run| run.begin.ticks);
    let mut ids = HashMap::new();
    for run in order {
        let start_ns = clock.ns(run.begin.ticks);
        let end_ns = run.end.map_or(start_ns, |end| clock.ns(end.ticks)).max(start_ns);
        ids.insert(run.begin.run, GraphRunId(trace.graph_runs.len() as u32));
        trace.graph_runs.push(GraphRun { scheduler: run.begin.scheduler, start_ns, end_ns });
    }
    ids
}

struct Builder<'a> {
    tables: &'a Tables,
    clock: &'a Clock,
    backends: &'a BackendMap,
    runs: HashMap<u32, GraphRunId>,
    nodes: Nodes,
    /// The event of each op, for the shares of its threads if there are any.
    ops: HashMap<(u32, u32), EventId>,
}

impl Builder<'_> {
    fn splits(&mut self, trace: &mut Trace) {
        // Where ops are seen, a split without any had nothing to compute.
        let seen = self.tables.coverage.iter().filter(|covered| {
            covered.what == Covered::Ops as u16 && covered.how != CoveredHow::Not as u8
        });
        let seen: HashSet<u32> = seen.map(|covered| covered.backend).collect();
        let mut ops: HashMap<u32, Vec<&Op>> = HashMap::new();
        for op in &self.tables.ops {
            ops.entry(op.split).or_default().push(op);
        }
        let mut order: Vec<&SplitRecords> = self.tables.splits.values().collect();
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
            trace.splits.push(Split { graph_run, index, backend, start_ns, end_ns });
            let place = Place { graph_run, backend, split: index };
            match ops.get(&begin.split) {
                Some(ops) => ops.iter().for_each(|op| self.op(trace, begin, &place, op)),
                None if begin.nodes > 0 && !seen.contains(&begin.backend) => {
                    whole_split(trace, &place, start_ns, end_ns);
                }
                None => {}
            }
        }
    }

    fn op(&mut self, trace: &mut Trace, begin: &layout::SplitBegin, place: &Place, op: &Op) {
        let key = (begin.shape, op.position);
        let Some(node) = self.nodes.at(self.tables, trace, key, op.fused) else {
            trace.lose(LossKind::DamagedRecord, || "an op's description is missing".to_owned());
            return;
        };
        // One at a time, even a node that computes nothing costs a call; that is not an op.
        let measured = measured(op.measured);
        if measured == Measured::Serialized && nodes::IDLE.contains(&trace.op_name(node)) {
            return;
        }
        let start = begin.ticks.saturating_add(op.start);
        let (start_ns, duration_ns) = self.span(start, start.saturating_add(op.duration));
        let output = trace.signature(node).output;
        let (_, busy_sum_ns) = self.span(start, start.saturating_add(op.busy_sum));
        let (_, busy_max_ns) = self.span(start, start.saturating_add(op.busy_max));
        let (_, wait_sum_ns) = self.span(start, start.saturating_add(op.wait_sum));
        let threads = u32::from(op.threads);
        let event = trace.events.push(NewEvent {
            kind: EventKind::Op,
            node,
            backend: place.backend,
            source_backend: None,
            split: place.split,
            graph_run: Some(place.graph_run),
            start_ns,
            duration_ns,
            bytes: trace.types.bytes_of(&output).unwrap_or(0),
            measured,
            threads: Some(ThreadFold { busy_sum_ns, wait_sum_ns, busy_max_ns, threads }),
        });
        if !self.tables.shares.is_empty() {
            self.ops.insert((op.split, op.position), event);
        }
    }

    /// Start and length of a stretch of ticks, in nanoseconds.
    fn span(&self, start: u64, end: u64) -> (u64, u64) {
        let start_ns = self.clock.ns(start);
        (start_ns, self.clock.ns(end).saturating_sub(start_ns))
    }

    fn copies(&mut self, trace: &mut Trace) {
        let shapes = self.tensors_by_name();
        let splits = self.splits_by_run();
        for copy in &self.tables.copies {
            let Some(&backend) = self.backends.get(&copy.target_backend) else { continue };
            let node = self.copied(trace, copy, &shapes);
            let (start_ns, duration_ns) = self.span(copy.start, copy.end.max(copy.start));
            let is_async = copy.flags & layout::COPY_ASYNC != 0;
            trace.events.push(NewEvent {
                kind: EventKind::Copy,
                node,
                backend,
                source_backend: self.backends.get(&copy.source_backend).copied(),
                split: split_after(splits.get(&copy.run), copy.start),
                graph_run: self.runs.get(&copy.run).copied(),
                start_ns,
                duration_ns,
                bytes: copy.bytes,
                measured: if is_async { Measured::HostCall } else { Measured::Host },
                threads: None,
            });
        }
    }

    /// Tensors that nodes make or take, by name; for copies, which give only the name.
    fn tensors_by_name(&self) -> HashMap<u32, Tensor> {
        let mut tensors = HashMap::new();
        for (node, sources) in self.tables.nodes.values() {
            tensors.insert(node.name, Tensor { type_id: node.type_id as i32, ne: node.ne });
            for source in sources {
                let tensor = Tensor { type_id: source.type_id as i32, ne: source.ne };
                tensors.entry(source.name).or_insert(tensor);
            }
        }
        tensors
    }

    /// Starts and indices of each run's splits, in order.
    fn splits_by_run(&self) -> HashMap<u32, Vec<(u64, i32)>> {
        let mut splits: HashMap<u32, Vec<(u64, i32)>> = HashMap::new();
        for split in self.tables.splits.values() {
            let begin = &split.begin;
            splits.entry(begin.run).or_default().push((begin.ticks, begin.index.into()));
        }
        splits.values_mut().for_each(|splits| splits.sort_unstable());
        splits
    }

    fn copied(&self, trace: &mut Trace, copy: &CopyEvent, shapes: &HashMap<u32, Tensor>) -> NodeId {
        let direction = match copy.flags & 3 {
            layout::COPY_HOST_TO_DEVICE => "copy_H2D",
            layout::COPY_DEVICE_TO_HOST => "copy_D2H",
            layout::COPY_DEVICE_TO_DEVICE => "copy_D2D",
            _ => "copy_H2H",
        };
        // A name is the tensor's only if the size agrees, or if just a part was copied.
        let partial = copy.flags & layout::COPY_PARTIAL != 0;
        let named = if copy.source == layout::NONE { copy.target } else { copy.source };
        let tensor = shapes.get(&named).copied();
        let tensor =
            tensor.filter(|tensor| partial || trace.types.bytes_of(tensor) == Some(copy.bytes));
        let name = copied_name(self.tables.text(named));
        let name = (!name.is_empty()).then(|| trace.strings.intern(name));
        let signature = Signature {
            extra: name,
            sources: tensor.map(|tensor| Source { tensor, nb: [0; 4] }).into_iter().collect(),
            ..Signature::of_op(trace.strings.intern(direction))
        };
        trace.nodes.intern(signature, name, &[])
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

/// The scheduler calls its copy of a tensor `BACKEND#TENSOR#NUMBER`.
fn copied_name(name: &str) -> &str {
    let inner = name.split_once('#').and_then(|(_, rest)| rest.rsplit_once('#'));
    inner.map_or(name, |(tensor, _)| tensor)
}

/// What the events of a split have in common.
struct Place {
    graph_run: GraphRunId,
    backend: BackendIndex,
    split: i32,
}

/// One event for a split whose ops were not told apart: the host's time of the call.
fn whole_split(trace: &mut Trace, place: &Place, start_ns: u64, end_ns: u64) {
    let signature = Signature::of_op(trace.strings.intern(WHOLE_SPLIT));
    let node = trace.nodes.intern(signature, None, &[]);
    trace.events.push(NewEvent {
        kind: EventKind::Op,
        node,
        backend: place.backend,
        source_backend: None,
        split: place.split,
        graph_run: Some(place.graph_run),
        start_ns,
        duration_ns: end_ns.saturating_sub(start_ns),
        bytes: 0,
        measured: Measured::HostCall,
        threads: None,
    });
}

/// The split that a copy is made for: the next to start.
fn split_after(splits: Option<&Vec<(u64, i32)>>, ticks: u64) -> i32 {
    let Some(splits) = splits else { return -1 };
    let next = splits.partition_point(|(start, _)| *start < ticks);
    splits.get(next).or(splits.last()).map_or(-1, |(_, index)| *index)
}

fn measured(number: u8) -> Measured {
    match number {
        layout::MEASURED_DEVICE => Measured::Device,
        layout::MEASURED_SERIALIZED => Measured::Serialized,
        layout::MEASURED_MODELLED => Measured::Modelled,
        _ => Measured::Host,
    }
}
