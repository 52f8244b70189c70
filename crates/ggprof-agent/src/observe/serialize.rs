//! Computes one node at a time, for backends whose ops cannot be seen otherwise.
//!
//! On devices, this happens only on request, with a synchronisation after each node: it shows where
//! the time goes, but there is no fusion and no overlap. Records say `serialized`.
//!
//! On an accelerator of the host, such as BLAS, it always happens. Such a backend has finished a
//! graph when it returns, works in the host's memory, and computes its nodes one after the other.
//! Given one node at a time, it does the same work, and the host's clock times each node.
//!
//! The graphs of one node are made by ggml itself (`ffi/one_node.rs`), as they are when a program has set an
//! eval callback: so no backend sees a graph that the agent made up, whatever the fields of graphs are in this
//! ggml. A backend's own `graph_compute` is not tried out in a child: its threads, its locks and its device are
//! not there, and what it makes of such graphs is what ggml's own calls rely on.

use ggprof_spool::layout::{MEASURED_HOST, MEASURED_SERIALIZED};

use super::adopted::Adopted;
use super::fail_open;
use super::node;
use super::split::Split;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::backend_table::{GraphCompute, More, Synchronize};
use crate::ffi::graph::Graph;
use crate::recorder::fold::op_of_one_thread;

/// Computes the graph node by node; the first failure ends it, as in ggml.
pub(crate) fn compute(
    split: &Split,
    adopted: &Adopted,
    (backend, graph, more): (Pointer, Pointer, More),
    real: GraphCompute,
    synchronize: Option<Synchronize>,
) -> Option<i32> {
    let instance = adopted.instance()?;
    let (tensor_layout, layout) = instance.layouts.as_ref()?;
    // SAFETY: the graph ggml asked this backend to compute; see `split::begin`.
    let nodes = unsafe { Graph::new(graph, layout) }.nodes();
    let working: Vec<usize> = fail_open::guard(Vec::new(), |_| {
        fault_point!();
        // SAFETY: nodes of the graph that ggml is computing, of this instance.
        unsafe { node::working(instance, tensor_layout, nodes) }.collect()
    });
    // A graph without work is left to the backend as it is.
    working.first()?;
    let mut singles = instance.one_node_graphs()?;
    let measured = if adopted.is_host_accelerator() { MEASURED_HOST } else { MEASURED_SERIALIZED };
    for position in working {
        // SAFETY: ggml's own graph, which has this node at this position.
        let single =
            unsafe { singles.graph_of(graph, position, nodes[position].cast_mut().cast()) };
        let start = clock::ticks();
        let [w3, w4, w5, w6] = more;
        // SAFETY: the backend's own functions, on a graph with one of the nodes
        // it was given. May unwind: no guard is around it.
        let status = unsafe { real(backend, single, w3, w4, w5, w6) };
        if let Some(synchronize) = synchronize {
            // SAFETY: as above.
            unsafe { synchronize(backend) };
        }
        let end = clock::ticks();
        fail_open::guard((), |_| put_op(split, measured, position as u32, (start, end)));
        if status != 0 {
            return Some(status);
        }
    }
    Some(0)
}

fn put_op(split: &Split, measured: u8, position: u32, (start, end): (u64, u64)) {
    let Some((id, split_start, lane)) = split.recorded() else { return };
    fault_point!();
    let record = op_of_one_thread(measured, (id, position), start - split_start, end - start);
    lane.put(&record.encode());
}
