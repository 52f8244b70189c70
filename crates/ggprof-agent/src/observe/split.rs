//! One backend's part of a graph run: described before it is computed, folded and written
//! afterwards.

use ggprof_spool::layout::{self, LossCounter, SplitBegin, SplitEnd};

use super::adopted::Adopted;
use super::begun::{Begun, CanBeLeft, Frame};
use super::device_api::{self, DeviceSplit};
use super::experts::Choosing;
use super::fail_open;
use super::instance::Instance;
use super::lane_memory::LaneMemory;
use super::node;
use super::placement;
use super::positions;
use super::run::{Run, UNWOUND};
use super::this_thread::ThisThread;
use super::ticking::Ticking;
use super::ticks;
use super::unseen_waits;
use super::visits::{Visiting, Visits};
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::graph::Graph;
use crate::ffi::tensor::Tensor;
use crate::recorder::current;
use crate::recorder::fold::{self, Folded, FoldedSplit};
use crate::recorder::lane::{HeldLane, RunningGraph};
use crate::recorder::run_slot::MAX_NODES;
use crate::recorder::thread_log::ThreadLog;

/// A split being computed. If an exception drops it, its end is still written.
#[derive(Debug)]
pub(crate) struct Split {
    /// `None` where the split is not recorded.
    recorded: Option<Begun<RecordedSplit>>,
    /// The run made for a graph that is computed outside any run.
    own_run: Option<Run>,
}

/// What is known of a split while it is computed.
#[derive(Debug)]
struct RecordedSplit {
    id: u32,
    start: u64,
    shape: u32,
    begin_cost: u64,
    graph: Pointer,
    adopted: &'static Adopted,
    instance: Option<&'static Instance>,
    under_way: UnderWay,
}

/// What was set and taken for the length of a split. Whenever this is dropped, it is undone
/// and given back, in this order.
#[derive(Debug)]
struct UnderWay {
    /// Where ops are seen by ticks only.
    ticking: Option<Ticking>,
    /// Where a device's library tells which node it works on.
    visiting: Option<Visiting>,
    /// Where the device's API watches it.
    device: Option<DeviceSplit>,
    /// Where the processor uses experts.
    choosing: Choosing,
    _running: RunningGraph<'static>,
    lane: HeldLane<'static>,
}

impl Split {
    pub(crate) fn begin(
        this: &ThisThread,
        frame: Frame,
        adopted: &'static Adopted,
        (backend, graph): (Pointer, Pointer),
    ) -> Option<Split> {
        let entered = clock::ticks();
        let Some(recorder) = current::recording_or_forked() else {
            note_unrecorded();
            return None;
        };
        if this.is_in_op() {
            // An op of the program's own computes another graph. Its time is that of the op; the
            // thread has one log, so its ops count as lost.
            return None;
        }
        let own_run = Run::begin(this, frame, std::ptr::null_mut());
        fault_point!();
        let lane = match this.lane(recorder) {
            Some(lane) if lane.writes() => lane,
            // Nothing is written; the run is only kept until it ends.
            _ => {
                note_unrecorded();
                return own_run.map(|run| Split { recorded: None, own_run: Some(run) });
            }
        };
        this.preferred_lane.set(lane.number);
        let recorded = RecordedSplit::begin(this, lane, adopted, (backend, graph), entered);
        fault_point!();
        Some(Split { recorded: Some(Begun::new(this, frame, recorded)), own_run })
    }

    /// Its number, start and lane, where it is recorded.
    pub(crate) fn recorded(&self) -> Option<(u32, u64, &HeldLane<'static>)> {
        let recorded = self.recorded.as_ref()?.get()?;
        Some((recorded.id, recorded.start, &recorded.under_way.lane))
    }

    /// After the real function, outside any guard.
    pub(crate) fn finish(mut self, status: i32) {
        self.end(status);
    }

    fn end(&mut self, status: i32) {
        let end = clock::ticks();
        let recorded = self.recorded.as_mut().and_then(Begun::take);
        let own_run = &mut self.own_run;
        fail_open::guard((), move |this| {
            let Some(mut recorded) = recorded else { return };
            if recorded.under_way.lane.recorder.is_in_child() {
                // Forked in the middle of the graph: the file is the parent's.
                return;
            }
            recorded.write_end(status, end);
            this.last_seen.set(end);
            if let Some(run) = own_run.take() {
                run.finish_in(this, &recorded.under_way.lane, status);
            }
        });
        // One that was not recorded, or whose split could not be written.
        self.own_run.take().into_iter().for_each(|run| run.finish(status));
    }
}

impl Drop for Split {
    fn drop(&mut self) {
        self.end(UNWOUND);
    }
}

impl CanBeLeft for RecordedSplit {
    /// The graph and its backend may be gone: only what was noted of them is looked at.
    fn left(mut self) {
        let ticks = self.under_way.ticking.take().map(Ticking::leave);
        fail_open::guard((), move |this| {
            let lane = &self.under_way.lane;
            if lane.recorder.is_in_child() {
                return;
            }
            if let Some(ticks) = ticks {
                lane.recorder.lose(LossCounter::UnclearTicks, ticks as u64);
            }
            fault_point!();
            let seen = lane.slot().logs().map(ThreadLog::last_seen);
            let end = seen.fold(self.start, u64::max);
            this.last_seen.set(end);
            let folded = fold::write_ops(lane, self.folded(UNWOUND, end), &mut |_, _| {});
            fault_point!();
            self.put_end(UNWOUND, end, folded, self.begin_cost);
        });
    }
}

impl RecordedSplit {
    fn begin(
        this: &ThisThread,
        lane: HeldLane<'static>,
        adopted: &'static Adopted,
        (backend, graph): (Pointer, Pointer),
        entered: u64,
    ) -> RecordedSplit {
        let (shape, nodes) = describe(this, &lane, adopted, graph);
        fault_point!();
        let id = lane.recorder.next_split();
        let index = this.splits_in_run.get();
        this.splits_in_run.set(index + 1);
        let instance = adopted.instance();
        let asks = adopted.asks_about_nodes();
        let running = lane.begin_run(if asks { 0 } else { nodes });
        fault_point!();
        let device = DeviceSplit::begin(this, &lane, adopted, id);
        fault_point!();
        let visiting = instance.filter(|_| asks).map(|instance| {
            // SAFETY: the graph stays as it is until `graph_compute` returns, and
            // the visits are removed from the thread right afterwards.
            let visits =
                unsafe { Visits::new((id, shape, adopted.id()), nodes_of(instance, graph).0) };
            Visiting::begin(this, visits)
        });
        fault_point!();
        let ticking = adopted.tick_setter().map(|setter| {
            // SAFETY: ggml called us with this live backend, whose library gave
            // the setter when it was adopted.
            unsafe { Ticking::begin(this, setter, backend, nodes + 1) }
        });
        fault_point!();
        let choosing = choose(this, &lane, adopted, (graph, shape));
        fault_point!();
        let under_way = UnderWay { ticking, visiting, device, choosing, _running: running, lane };
        let start = clock::ticks();
        let begin = SplitBegin {
            index: u16::try_from(index).unwrap_or(u16::MAX),
            split: id,
            run: this.run.get(),
            backend: adopted.id(),
            ticks: start,
            shape,
            nodes: nodes as u32,
            ..Default::default()
        };
        under_way.lane.put(&begin.encode());
        let begin_cost = start - entered;
        RecordedSplit { id, start, shape, begin_cost, graph, adopted, instance, under_way }
    }

    fn write_end(&mut self, status: i32, end: u64) {
        let UnderWay { device, visiting, lane, .. } = &mut self.under_way;
        if let Some(device) = device.take().filter(|_| status != UNWOUND) {
            let visits = visiting.as_ref().map(Visiting::visits);
            device.end(lane, visits.map_or(0, Visits::stream));
        }
        fault_point!();
        let folded = self.write_ops(status, end);
        if let Some(ticking) = self.under_way.ticking.take().filter(|_| status == UNWOUND) {
            ticking.end_unwound();
        }
        fault_point!();
        if status == 0 {
            self.under_way.choosing.write(&self.under_way.lane, self.id);
        }
        fault_point!();
        self.put_end(status, end, folded, self.begin_cost + (clock::ticks() - end));
    }

    fn put_end(&self, status: i32, ticks: u64, folded: Folded, agent_ticks: u64) {
        let record = SplitEnd {
            threads: folded.threads,
            split: self.id,
            status,
            ops: folded.ops,
            ticks,
            agent_ticks,
            ..Default::default()
        };
        self.under_way.lane.put(&record.encode());
    }

    fn folded(&self, status: i32, end: u64) -> FoldedSplit {
        FoldedSplit {
            split: self.id,
            start: self.start,
            end,
            status,
            waits_unseen: unseen_waits::is_noted(self.adopted),
        }
    }

    /// One record per op, and which of them ran together where that is new.
    fn write_ops(&self, status: i32, end: u64) -> Folded {
        let UnderWay { ticking, visiting, lane, .. } = &self.under_way;
        let mut memory = lane.take_memory::<LaneMemory>();
        let known = &mut memory.nodes;
        let written = known.fusions_are_written(self.shape);
        let mut on_fused = |position, fused| {
            let fused = if written { 0 } else { self.working(position, fused) };
            if fused != 0 {
                known.note_fusion(lane, self.shape, position, fused);
            }
        };
        if let Some(visiting) = visiting.as_ref().filter(|_| status == 0) {
            visiting.visits().fusions(&mut on_fused);
        }
        let split = self.folded(status, end);
        let folded = match (ticking, self.instance) {
            (Some(ticking), Some(instance)) => {
                let (nodes, _) = nodes_of(instance, self.graph);
                ticks::write_ops(lane, split, ticking.ticks(), instance, nodes, &mut on_fused)
            }
            _ => fold::write_ops(lane, split, &mut on_fused),
        };
        fault_point!();
        if status == 0 {
            // One that was broken off may not have come to all of them.
            known.set_fusions_written(self.shape);
        }
        lane.return_memory(memory);
        if folded.waits_unseen {
            unseen_waits::note(lane, self.adopted);
        }
        folded
    }
}

/// A split is not recorded.
fn note_unrecorded() {
    device_api::all().iter().for_each(|api| api.note_unrecorded_split());
}

impl RecordedSplit {
    /// Which of the nodes after a position compute something, as bits.
    fn working(&self, position: u32, fused: u32) -> u32 {
        let Some(instance) = self.instance else { return fused };
        let Some((layout, _)) = &instance.layouts else { return fused };
        let (nodes, _) = nodes_of(instance, self.graph);
        let works = |distance: u32| {
            nodes.get((position + distance) as usize).is_some_and(|&node| {
                // SAFETY: a node of the graph that ggml has just computed and still holds.
                let tensor = unsafe { Tensor::new(node, layout) };
                ggprof_ggml::computes(node::op_name(instance, tensor.op()))
            })
        };
        (0..u32::BITS)
            .filter(|&distance| fused >> distance & 1 == 1 && works(distance))
            .fold(0, |bits, distance| bits | 1 << distance)
    }
}

/// The graph's shape and how many of its nodes were taken up.
fn describe(
    this: &ThisThread,
    lane: &HeldLane<'_>,
    adopted: &Adopted,
    graph: Pointer,
) -> (u32, usize) {
    let Some(instance) = adopted.instance() else { return (layout::NONE, 0) };
    let Some((tensor_layout, _)) = &instance.layouts else { return (layout::NONE, 0) };
    let (nodes, uid) = nodes_of(instance, graph);
    if nodes.len() > MAX_NODES {
        lane.recorder.lose(LossCounter::GraphTooLarge, (nodes.len() - MAX_NODES) as u64);
    }
    let nodes = &nodes[..nodes.len().min(MAX_NODES)];
    // Threads of the CPU look their nodes up; a device's library tells them itself.
    if !adopted.asks_about_nodes() && !lane.slot().set_nodes(graph as usize, nodes) {
        return (layout::NONE, 0);
    }
    let mut memory = lane.take_memory::<LaneMemory>();
    fault_point!();
    let shape = memory.nodes.shape_of(lane, instance, tensor_layout, nodes, uid);
    fault_point!();
    if adopted.is_cpu() && this.scheduler.get() != 0 {
        placement::note(this, lane, adopted, (shape, nodes), &mut memory);
    }
    fault_point!();
    positions::note(this, lane, instance, (nodes, shape), &mut memory.ropes);
    fault_point!();
    lane.return_memory(memory);
    (shape, nodes.len())
}

/// Prepares to read which experts the processor uses.
fn choose(
    this: &ThisThread,
    lane: &HeldLane<'_>,
    adopted: &Adopted,
    (graph, shape): (Pointer, u32),
) -> Choosing {
    let instance = adopted.instance().filter(|_| adopted.is_cpu() && shape != layout::NONE);
    let Some((instance, (tensor_layout, _))) =
        instance.and_then(|instance| Some((instance, instance.layouts.as_ref()?)))
    else {
        return Choosing::nothing(this);
    };
    let (nodes, _) = nodes_of(instance, graph);
    let mut memory = lane.take_memory::<LaneMemory>();
    fault_point!();
    let choosers = memory.choosers.of(b"MUL_MAT_ID", shape, instance, tensor_layout, nodes);
    let choosing = Choosing::begin(this, lane, adopted, nodes, choosers);
    fault_point!();
    lane.return_memory(memory);
    choosing
}

/// The graph's nodes, and ggml's number for it.
fn nodes_of(instance: &Instance, graph: Pointer) -> (&[*const u8], u64) {
    let Some((_, graph_layout)) = &instance.layouts else { return (&[], 0) };
    // SAFETY: ggml hands the graph to the backend and keeps it, unchanged, until
    // `graph_compute` has returned to it; the layout is of the same copy of ggml.
    let graph = unsafe { Graph::new(graph, graph_layout) };
    (graph.nodes(), graph.uid())
}
