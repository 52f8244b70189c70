//! One backend's part of a graph run: described before it is computed, folded
//! and written when it has been.

use ggprof_spool::layout::{self, LossKind, SplitBegin, SplitEnd};

use super::backends::Adopted;
use super::cuda::{self, CudaSplit};
use super::instance::Instance;
use super::run::{Run, UNWOUND};
use super::ticks;
use super::visits::Visits;
use crate::ffi::api::Pointer;
use crate::ffi::graph::Graph;
use crate::hooks::abort_callback::Ticking;
use crate::recorder::fold::{self, FoldedSplit};
use crate::recorder::lane::HeldLane;
use crate::recorder::run_slot::MAX_NODES;
use crate::recorder::this_thread::ThisThread;
use crate::{clock, fail_open, lifecycle};

/// A split being computed. Dropped by a passing exception it still ends.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) id: u32,
    pub(crate) start: u64,
    shape: u32,
    begin_cost: u64,
    graph: Pointer,
    instance: Option<&'static Instance>,
    /// Where ops are seen by ticks only.
    ticking: Option<Ticking>,
    /// Where a device's library tells which node it works on; on the heap, as hooks
    /// are given its address.
    visits: Option<Box<Visits>>,
    /// Where the device is one of CUDA's.
    cuda: Option<CudaSplit>,
    lane: Option<HeldLane<'static>>,
    /// The run made for a graph that came without one.
    own_run: Option<Run>,
}

impl Split {
    pub(crate) fn begin(
        this: &ThisThread,
        adopted: &Adopted,
        backend: Pointer,
        graph: Pointer,
    ) -> Option<Split> {
        let entered = clock::ticks();
        let recorder = lifecycle::recording()?;
        let own_run = Run::begin(this, std::ptr::null_mut());
        let lane = match recorder.lane(this.preferred_lane.get()) {
            Some(lane) if lane.writes() => lane,
            // Of the run only its length is kept in mind.
            _ => {
                cuda::rest();
                return own_run.map(Split::unrecorded);
            }
        };
        this.preferred_lane.set(lane.number);
        let (shape, nodes) = describe(&lane, adopted, graph);
        let id = recorder.next_split();
        let index = this.splits_in_run.get();
        this.splits_in_run.set(index + 1);
        let ticking = adopted.tick_setter().map(|setter| {
            // SAFETY: ggml called us with this live backend, whose library gave
            // the setter when it was adopted.
            unsafe { Ticking::begin(this, setter, backend, nodes + 1) }
        });
        let instance = adopted.instance();
        let mut visits = instance.filter(|_| adopted.asks_about_nodes()).map(|instance| {
            // SAFETY: the graph stays as it is until `graph_compute` returns, and
            // the visits are taken off the thread right behind that.
            unsafe { Visits::new((id, shape, adopted.id()), nodes_of(instance, graph).0) }
        });
        if let Some(visits) = &mut visits {
            this.visits.set(&raw mut **visits);
        }
        lane.begin_run(if adopted.asks_about_nodes() { 0 } else { nodes });
        let cuda = cuda::begin_split(this, &lane, adopted, id);
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
        lane.put(&begin.encode());
        let begin_cost = start - entered;
        Some(Split {
            id,
            start,
            shape,
            begin_cost,
            graph,
            instance,
            ticking,
            visits,
            cuda,
            lane: Some(lane),
            own_run,
        })
    }

    fn unrecorded(own_run: Run) -> Split {
        Split {
            id: layout::NONE,
            start: 0,
            shape: layout::NONE,
            begin_cost: 0,
            graph: std::ptr::null_mut(),
            instance: None,
            ticking: None,
            visits: None,
            cuda: None,
            lane: None,
            own_run: Some(own_run),
        }
    }

    pub(crate) fn lane(&self) -> Option<&HeldLane<'static>> {
        self.lane.as_ref()
    }

    /// After the real function, outside any guard.
    pub(crate) fn finish(mut self, status: i32) {
        self.end(status);
    }

    fn end(&mut self, status: i32) {
        let end = clock::ticks();
        fail_open::guard((), |this| self.write_end(this, status, end));
    }

    fn write_end(&mut self, this: &ThisThread, status: i32, end: u64) {
        let Some(lane) = self.lane.take() else { return };
        let folded = FoldedSplit { split: self.id, start: self.start, end };
        this.visits.set(std::ptr::null_mut());
        if let Some(cuda) = self.cuda.take().filter(|_| status != UNWOUND) {
            cuda.end(&lane, self.visits.as_ref().map_or(0, |visits| visits.stream()));
        }
        let mut known = lane.take_known();
        let written = known.fusions_are_written(self.shape);
        let mut on_fused = |position, fused| {
            if !written {
                known.note_fusion(&lane, self.shape, position, fused);
            }
        };
        if let Some(visits) = self.visits.take().filter(|_| status == 0) {
            visits.fusions(&mut on_fused);
        }
        let folded = match (&self.ticking, self.instance) {
            (Some(ticking), Some(instance)) => {
                let (nodes, _) = nodes_of(instance, self.graph);
                ticks::write_ops(&lane, folded, ticking.ticks(), instance, nodes, on_fused)
            }
            _ => fold::write_ops(&lane, folded, on_fused),
        };
        if let Some(ticking) = self.ticking.take().filter(|_| status == UNWOUND) {
            ticking.end_unwound();
        }
        known.set_fusions_written(self.shape);
        lane.return_known(known);
        lane.end_run();
        let record = SplitEnd {
            threads: folded.threads,
            split: self.id,
            status,
            ops: folded.ops,
            ticks: end,
            agent_ticks: self.begin_cost + (clock::ticks() - end),
            ..Default::default()
        };
        lane.put(&record.encode());
        if let Some(run) = self.own_run.take() {
            run.finish_in(this, &lane, status);
        }
    }
}

impl Drop for Split {
    fn drop(&mut self) {
        if self.lane.is_some() {
            self.end(UNWOUND);
        }
    }
}

/// The graph's shape and how many of its nodes were taken up.
fn describe(lane: &HeldLane<'_>, adopted: &Adopted, graph: Pointer) -> (u32, usize) {
    let Some(instance) = adopted.instance() else { return (layout::NONE, 0) };
    let Some((tensor_layout, _)) = &instance.layouts else { return (layout::NONE, 0) };
    let (nodes, uid) = nodes_of(instance, graph);
    if nodes.len() > MAX_NODES {
        lane.recorder.lose(LossKind::GraphTooLarge, (nodes.len() - MAX_NODES) as u64);
    }
    let nodes = &nodes[..nodes.len().min(MAX_NODES)];
    // Threads of the CPU look their nodes up; a device's library tells them itself.
    if !adopted.asks_about_nodes() {
        let Some(table) = lane.slot().node_table() else { return (layout::NONE, 0) };
        for (place, &node) in table.iter().zip(nodes) {
            place.store(node as usize, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let mut known = lane.take_known();
    let shape = known.shape_of(lane, instance, tensor_layout, nodes, uid);
    lane.return_known(known);
    (shape, nodes.len())
}

/// The graph's nodes, and ggml's number for it.
fn nodes_of(instance: &Instance, graph: Pointer) -> (&[*const u8], u64) {
    let Some((_, graph_layout)) = &instance.layouts else { return (&[], 0) };
    // SAFETY: ggml hands the graph to the backend and keeps it, unchanged, until
    // `graph_compute` has returned to it; the layout is of the same copy of ggml.
    let graph = unsafe { Graph::new(graph, graph_layout) };
    (graph.nodes(), graph.uid())
}
