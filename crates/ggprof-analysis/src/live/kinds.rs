//! What batches are for, by the numbers of their calls: ops are added up by it.

use crate::step::StepKind;
use crate::steps::is_embedding;
use ggprof_trace::formats::spool::News;
use ggprof_trace::{ContextChangeKind, Trace};
use hashbrown::HashMap;

/// So many are kept: ops that devices tell of come later.
const MOST_CALLS: u32 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Kinds {
    of_call: HashMap<u32, StepKind>,
    /// Whether the last op of a batch so far is an embedding.
    embeds: HashMap<u32, bool>,
}

impl Kinds {
    pub(super) fn insert(&mut self, call: u32, kind: StepKind) {
        self.of_call.insert(call, kind);
    }

    pub(super) fn of(&self, call: u32) -> StepKind {
        self.of_call.get(&call).copied().unwrap_or(StepKind::Graph)
    }

    /// Whether embeddings are what a batch gives, as far as that was seen.
    pub(super) fn embeds(&self, call: u32) -> bool {
        self.embeds.get(&call).copied().unwrap_or(false)
    }

    /// What a batch gives is told by its ops, which may come before its end is known, and by what the
    /// program looks at then.
    pub(super) fn note_embeddings(&mut self, descriptions: &Trace, news: &News) {
        for (call, _, ops) in news.ops.together() {
            let Some(&(last, _)) = ops.last() else { continue };
            let name = descriptions.tensor_name(last);
            self.embeds.insert(call, name.is_some_and(is_embedding));
        }
        for change in &news.changes {
            if let ContextChangeKind::EmbeddingsRead { call } = change.what {
                self.embeds.insert(call, true);
            }
        }
    }

    pub(super) fn forget(&mut self) {
        let newest = self.of_call.keys().max().copied().unwrap_or(0);
        let oldest = newest.saturating_sub(MOST_CALLS);
        self.of_call.retain(|call, _| *call >= oldest);
        self.embeds.retain(|call, _| *call >= oldest);
    }
}
