//! One backend's part of a graph run: described before it is computed, folded
//! and written when it has been.

use ggprof_spool::layout::{self, LossKind, SplitBegin, SplitEnd};

use super::backends::Adopted;
use super::run::{Run, UNWOUND};
use crate::ffi::api::Pointer;
use crate::ffi::graph::Graph;
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
    lane: Option<HeldLane<'static>>,
    /// The run made for a graph that came without one.
    own_run: Option<Run>,
}

impl Split {
    pub(crate) fn begin(this: &ThisThread, adopted: &Adopted, graph: Pointer) -> Option<Split> {
        let entered = clock::ticks();
        let recorder = lifecycle::recording()?;
        let lane = recorder.lane(this.preferred_lane.get())?;
        this.preferred_lane.set(lane.number);
        let own_run = Run::begin_in(this, &lane, std::ptr::null_mut());
        let (shape, nodes) = describe(&lane, adopted, graph);
        let id = recorder.next_split();
        let index = this.splits_in_run.get();
        this.splits_in_run.set(index + 1);
        lane.slot().begin(nodes);
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
        Some(Split { id, start, shape, begin_cost: start - entered, lane: Some(lane), own_run })
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
        let mut known = lane.take_known();
        let written = known.fusions_are_written(self.shape);
        let folded = fold::write_ops(&lane, folded, |position, fused| {
            if !written {
                known.note_fusion(&lane, self.shape, position, fused);
            }
        });
        known.set_fusions_written(self.shape);
        lane.return_known(known);
        lane.slot().end();
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
    let Some((tensor_layout, graph_layout)) = &instance.layouts else { return (layout::NONE, 0) };
    // SAFETY: ggml hands the graph to the backend and keeps it, unchanged, until
    // `graph_compute` returns; the layout is of the same copy of ggml.
    let nodes = unsafe { Graph::new(graph, graph_layout) }.nodes();
    if nodes.len() > MAX_NODES {
        lane.recorder.lose(LossKind::GraphTooLarge, (nodes.len() - MAX_NODES) as u64);
    }
    let nodes = &nodes[..nodes.len().min(MAX_NODES)];
    let Some(table) = lane.slot().node_table() else { return (layout::NONE, 0) };
    for (place, &node) in table.iter().zip(nodes) {
        place.store(node as usize, std::sync::atomic::Ordering::Relaxed);
    }
    let mut known = lane.take_known();
    let shape = known.shape_of(lane, instance, tensor_layout, nodes);
    lane.return_known(known);
    (shape, nodes.len())
}
