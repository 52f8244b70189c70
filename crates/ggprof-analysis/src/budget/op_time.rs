//! What the time of an op went to: a part of the model, and its threads' waiting for each other.

use super::ModelPart;
use crate::layers::Places;
use ggprof_trace::{Divisor, EventId, NodeId, Signature, Trace};

/// Which part of the model ops belong to.
pub(super) struct PartOf<'a> {
    places: &'a Places,
    /// `None` if it depends on the op.
    of_node: Vec<Option<ModelPart>>,
}

impl<'a> PartOf<'a> {
    pub(super) fn new(trace: &Trace, places: &'a Places) -> Self {
        let of_node = |node| match trace.op_name(node) == Signature::WHOLE_SPLIT {
            true => Some(ModelPart::Undivided),
            false => places.of_node(node).map(|place| ModelPart::of(place.module)),
        };
        Self { places, of_node: trace.nodes.ids().map(of_node).collect() }
    }

    #[inline]
    pub(super) fn op(&self, event: EventId, node: NodeId) -> ModelPart {
        self.of_node[node.0 as usize]
            .unwrap_or_else(|| ModelPart::of(self.places.at(event, node).module))
    }
}

/// How long the threads of ops waited for each other.
pub(super) struct Waiting {
    /// How many the op before had.
    by_threads: Divisor,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { by_threads: Divisor::new(1) }
    }
}

impl Waiting {
    /// How much of `ns` of an op its threads waited on average, by how long they worked in all of it; at
    /// most all.
    #[inline]
    pub(super) fn of(&mut self, duration_ns: u64, ns: u64, threads: u32, busy_ns: u64) -> u64 {
        if threads == 0 {
            return 0;
        }
        if u64::from(threads) != self.by_threads.by() {
            self.by_threads = Divisor::new(threads.into());
        }
        // Nearly always all of the op counts, and dividing wide numbers takes much longer.
        match duration_ns.checked_mul(threads.into()).filter(|_| ns == duration_ns) {
            Some(all) => self.by_threads.divide(all.saturating_sub(busy_ns)).0,
            None => {
                let all = u128::from(duration_ns) * u128::from(threads);
                let idle = all.saturating_sub(u128::from(busy_ns));
                (u128::from(ns) * idle / all.max(1)) as u64
            }
        }
    }
}
