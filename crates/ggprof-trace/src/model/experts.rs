//! Which experts of a model were used.

use super::graph_run::GraphRunId;
use super::node::NodeId;

/// The experts that a node chose from in one graph run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertUse {
    /// The first node of the split that multiplies by the chosen experts.
    pub node: NodeId,
    pub graph_run: GraphRunId,
    /// How many experts there are.
    pub experts: u32,
    /// Tokens in the batch, and for how many of them, evenly spread, the choice was read.
    pub tokens: u32,
    pub tokens_read: u32,
    first: u32,
    count: u32,
}

/// All of them, in the order of the recording.
#[derive(Debug, Default)]
pub struct ExpertUses {
    uses: Vec<ExpertUse>,
    /// Expert and how often it was chosen, use after use.
    counts: Vec<(u16, u16)>,
}

impl ExpertUses {
    /// Adds a use. `tokens` are those in the batch and those that were read.
    pub fn push(
        &mut self,
        node: NodeId,
        graph_run: GraphRunId,
        experts: u32,
        (tokens, tokens_read): (u32, u32),
        counts: impl IntoIterator<Item = (u16, u16)>,
    ) {
        let first = self.counts.len() as u32;
        self.counts.extend(counts);
        let count = self.counts.len() as u32 - first;
        self.uses.push(ExpertUse { node, graph_run, experts, tokens, tokens_read, first, count });
    }

    pub fn is_empty(&self) -> bool {
        self.uses.is_empty()
    }

    /// Each with its experts and how often each was chosen.
    pub fn iter(&self) -> impl Iterator<Item = (&ExpertUse, &[(u16, u16)])> {
        self.uses.iter().map(|of| (of, &self.counts[of.first as usize..][..of.count as usize]))
    }

    /// Leaves the uses in graph runs that have a new place.
    pub(crate) fn select(&mut self, place: impl Fn(GraphRunId) -> Option<GraphRunId>) {
        self.uses.retain_mut(|of| match place(of.graph_run) {
            Some(run) => {
                of.graph_run = run;
                true
            }
            None => false,
        });
    }
}
