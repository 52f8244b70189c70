//! One node at a time with a synchronise after it, for backends whose ops are
//! not seen otherwise, and only when asked for: it shows where the time goes,
//! but fusion and overlap are gone. Records say `serialized`.

use ggprof_spool::layout::MEASURED_SERIALIZED;

use super::backends::Adopted;
use super::split::Split;
use crate::clock;
use crate::fail_open;
use crate::ffi::api::Pointer;
use crate::ffi::graph::{Graph, GraphHead};
use crate::hooks::backend_table::{GraphCompute, Synchronize};
use crate::recorder::fold::op_of_one_thread;

/// Computes the graph node by node; the first failure ends it, as in ggml.
pub(crate) fn compute(
    split: &Split,
    adopted: &Adopted,
    backend: Pointer,
    graph: Pointer,
    real: GraphCompute,
    synchronize: Option<Synchronize>,
) -> Option<i32> {
    let (_, layout) = adopted.instance()?.layouts.as_ref()?;
    if layout.bytes > size_of::<GraphHead>() {
        return None;
    }
    // SAFETY: the graph ggml asked this backend to compute; see `split::begin`.
    let graph = unsafe { Graph::new(graph, layout) };
    let mut single = GraphHead([0; 64]);
    for position in 0..graph.nodes().len() {
        graph.single_node(position, &mut single);
        let start = clock::ticks();
        // SAFETY: the backend's own functions, on a graph with one of the nodes
        // it was given. May unwind: no guard is around it.
        let status = unsafe { real(backend, (&raw mut single).cast()) };
        if let Some(synchronize) = synchronize {
            // SAFETY: as above.
            unsafe { synchronize(backend) };
        }
        let end = clock::ticks();
        fail_open::guard((), |_| put_op(split, position as u32, start, end));
        if status != 0 {
            return Some(status);
        }
    }
    Some(0)
}

fn put_op(split: &Split, position: u32, start: u64, end: u64) {
    let Some(lane) = split.lane() else { return };
    let place = (split.id, position);
    let record = op_of_one_thread(MEASURED_SERIALIZED, place, start - split.start, end - start);
    lane.put(&record.encode());
}
