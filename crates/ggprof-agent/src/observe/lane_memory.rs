//! What a thread remembers of nodes and copies that repeat. It is kept by the lane with which the
//! thread writes (`recorder::lane`), as long as the numbers in it are valid.

use super::graph::KnownNodes;
use super::known_copies::KnownCopies;
use super::nodes_of_op::NodesOfOp;
use super::placement::KnownPlacements;

#[derive(Debug, Default)]
pub(super) struct LaneMemory {
    pub(super) nodes: KnownNodes,
    pub(super) copies: KnownCopies,
    pub(super) placements: KnownPlacements,
    /// Which nodes use experts, and which positions.
    pub(super) choosers: NodesOfOp,
    pub(super) ropes: NodesOfOp,
}
