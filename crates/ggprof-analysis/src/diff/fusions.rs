//! Ops that one side computes together and the other one by one: they are compared as what they
//! compute together.

use crate::grouping::fusion_of;
use ggprof_trace::{Event, EventKind, Shape, Signature, Trace};
use hashbrown::HashSet;

/// Which ops a recording computes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fusions(Vec<Fusion>);

/// Its ops in order, and the result of the first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Fusion {
    ops: Vec<String>,
    first: Shape,
}

pub fn fusions(trace: &Trace) -> Fusions {
    let signatures = trace.nodes.signatures().map(|(_, signature)| signature);
    let fused = signatures.filter(|it| fusion_of(it, kind(it)).is_some());
    let found: HashSet<Fusion> = fused
        .map(|signature| Fusion {
            ops: ops(trace, signature).into_iter().map(str::to_owned).collect(),
            first: signature.output.ne,
        })
        .filter(|fusion| fusion.ops.len() > 1)
        .collect();
    let mut found: Vec<Fusion> = found.into_iter().collect();
    // The longest one that fits is meant.
    found.sort_by(|a, b| b.ops.len().cmp(&a.ops.len()).then_with(|| a.cmp(b)));
    Fusions(found)
}

fn kind(signature: &Signature) -> EventKind {
    if signature.copied.is_some() { EventKind::Copy } else { EventKind::Op }
}

/// All ops that a call computes.
fn ops<'t>(trace: &'t Trace, signature: &Signature) -> Vec<&'t str> {
    match fusion_of(signature, kind(signature)) {
        Some(fusion) => trace.text(fusion).split('+').collect(),
        None => vec![trace.text(signature.op)],
    }
}

/// Finds in one recording what the other one computes together.
pub(super) struct Joined<'f> {
    fusions: &'f Fusions,
    /// For each signature the fusions that it may be the first op of.
    begins: Vec<Vec<u32>>,
}

impl<'f> Joined<'f> {
    pub(super) fn new(trace: &Trace, fusions: &'f Fusions) -> Self {
        let begins = |signature: &Signature| -> Vec<u32> {
            let own = ops(trace, signature);
            let fits = |fusion: &Fusion| {
                fusion.ops.len() > own.len()
                    && fusion.first == signature.output.ne
                    && own.iter().zip(&fusion.ops).all(|(one, other)| one == other)
            };
            let all = fusions.0.iter().zip(0..);
            all.filter(|(fusion, _)| fits(fusion)).map(|(_, at)| at).collect()
        };
        let begins = trace.nodes.signatures().map(|(_, it)| begins(it)).collect();
        Self { fusions, begins }
    }

    /// Whether there is nothing to find.
    pub(super) fn is_idle(&self) -> bool {
        self.begins.iter().all(Vec::is_empty)
    }

    pub(super) fn name(&self, fusion: u32) -> String {
        self.fusions.0[fusion as usize].ops.join("+")
    }

    /// The fusion that the first of these events begin, and how many of them it takes: events of one
    /// graph run and backend, in order.
    pub(super) fn at(&self, trace: &Trace, events: &[Event]) -> Option<(u32, usize)> {
        let first = trace.node(events.first()?.node).signature;
        let fits = |fusion: u32| self.length(trace, events, fusion).map(|length| (fusion, length));
        self.begins[first.0 as usize].iter().find_map(|&fusion| fits(fusion))
    }

    fn length(&self, trace: &Trace, events: &[Event], fusion: u32) -> Option<usize> {
        let mut left = &self.fusions.0[fusion as usize].ops[..];
        for (at, event) in events.iter().enumerate() {
            let own = ops(trace, trace.signature(event.node));
            if own.len() > left.len() || own.iter().zip(left).any(|(one, other)| one != other) {
                return None;
            }
            left = &left[own.len()..];
            if left.is_empty() {
                return Some(at + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn what_the_other_side_computes_together() {
        let fused = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU RMS_NORM 0..1 norm-0 f32[8] <- f32[8] fused=RMS_NORM+MUL
             op CPU ADD 1..2 l_out-0 f32[8] <- f32[8] f32[8] fused=ADD+RMS_NORM+MUL",
        );
        let apart = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU RMS_NORM 0..1 norm-0 f32[8] <- f32[8]
             op CPU MUL 1..2 attn_norm-0 f32[8] <- f32[8] f32[8]
             op CPU ADD 2..3 l_out-0 f32[8] <- f32[8] f32[8]
             op CPU RMS_NORM 3..4 norm-1 f32[8] <- f32[8] fused=RMS_NORM+MUL
             op CPU RMS_NORM 4..5 norm-2 f32[9] <- f32[9]
             op CPU MUL 5..6 attn_norm-2 f32[9] <- f32[9] f32[9]",
        );
        let fusions = fusions(&fused);
        let joined = Joined::new(&apart, &fusions);
        let events: Vec<Event> = apart.events.iter().collect();
        let found: Vec<_> = (0..events.len())
            .filter_map(|at| joined.at(&apart, &events[at..]))
            .map(|(fusion, length)| (joined.name(fusion), length))
            .collect();
        let expected = [("RMS_NORM+MUL", 2), ("ADD+RMS_NORM+MUL", 2)];
        assert_eq!(found, expected.map(|(name, length)| (name.to_owned(), length)));
        assert!(!joined.is_idle() && Joined::new(&fused, &fusions).is_idle());
    }
}
