//! What a thread knows of nodes and copies that come again. It is kept by the lane that the thread
//! writes with (`recorder::lane`), as long as the numbers in it are valid.

use super::graph::KnownNodes;
use super::known_copies::KnownCopies;

#[derive(Debug, Default)]
pub(super) struct LaneMemory {
    pub(super) nodes: KnownNodes,
    pub(super) copies: KnownCopies,
}
