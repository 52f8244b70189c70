//! Where in a graph the nodes of one op are. Graphs repeat, so that is found out once for each shape.

use super::instance::Instance;
use super::node;
use crate::digest::NumberMap;
use crate::ffi::tensor::{Tensor, TensorLayout};

/// Shapes that a lane remembers.
const MOST_SHAPES: usize = 1 << 12;

/// Positions of the nodes of one op, by shape.
#[derive(Debug, Default)]
pub(super) struct NodesOfOp {
    by_shape: NumberMap<u32, Box<[u32]>>,
    /// The shape that was asked for last, if it has no node of the op.
    without: u32,
}

impl NodesOfOp {
    /// The nodes are those of the shape. The op is the same at every call.
    pub(super) fn of(
        &mut self,
        op: &[u8],
        shape: u32,
        instance: &Instance,
        layout: &TensorLayout,
        nodes: &[*const u8],
    ) -> &[u32] {
        if self.without == shape {
            return &[];
        }
        if self.by_shape.len() >= MOST_SHAPES {
            self.by_shape.clear();
        }
        let positions = self.by_shape.entry(shape).or_insert_with(|| {
            let is_of_op = |node: *const u8| {
                // SAFETY: a node of the graph that ggml is about to compute, of this instance.
                let tensor = unsafe { Tensor::new(node, layout) };
                node::op_name(instance, tensor.op()) == op
            };
            let positions = (0..).zip(nodes).filter(|(_, node)| is_of_op(**node));
            positions.map(|(position, _)| position).collect()
        });
        if positions.is_empty() {
            self.without = shape;
        }
        positions
    }
}
