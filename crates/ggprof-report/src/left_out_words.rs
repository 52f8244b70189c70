//! Why ops were left out of a file for `test-backend-ops`.

use ggprof_trace::formats::op_lines::Unwritable;
use ggprof_trace::{NodeId, Trace};
use std::collections::BTreeMap;

/// A sentence for each op and reason, with the first tensor that it happened to.
pub fn sentences(trace: &Trace, left_out: &[(NodeId, Unwritable)]) -> Vec<String> {
    let mut groups: BTreeMap<(Unwritable, &str), (usize, &str)> = BTreeMap::new();
    for &(node, why) in left_out {
        let first = trace.tensor_name(node).unwrap_or_default();
        groups.entry((why, name_of(trace, node, why))).or_insert((0, first)).0 += 1;
    }
    let sentence = |((why, op), (count, tensor)): ((Unwritable, &str), (usize, &str))| {
        let times = if count > 1 { format!(" ({count} of them)") } else { String::new() };
        let tensor = if tensor.is_empty() { String::new() } else { format!(" {tensor}") };
        format!("Left out: {op}{tensor}{times}: {}.", reason(why))
    };
    groups.into_iter().map(sentence).collect()
}

fn name_of(trace: &Trace, node: NodeId, why: Unwritable) -> &str {
    let fusion = trace.signature(node).extra.filter(|_| why == Unwritable::UndescribedParts);
    fusion.map_or(trace.op_name(node), |fusion| trace.text(fusion))
}

fn reason(why: Unwritable) -> &'static str {
    match why {
        Unwritable::Undescribed => "the recording does not have all its types and shapes",
        Unwritable::Custom => "it calls a function of the program",
        Unwritable::NoNumber => {
            "the ggml that will read has no such op, type or function, or its number is not known"
        }
        Unwritable::PackedOtherwise => "the ggml that will read packs a type in another way",
        Unwritable::Hole => "a source before others is absent, which a line cannot say",
        Unwritable::TooManySources => "it has more than the ten sources that a line can hold",
        Unwritable::Empty => "it has a tensor without elements",
        Unwritable::Strides => {
            "a source overlaps itself, or its strides are not known, and the reader would end"
        }
        Unwritable::TooLarge => {
            "its tensors are larger than all memory that the recording is known to tell of"
        }
        Unwritable::Misfit => "its shapes, types and parameters do not belong together",
        Unwritable::Unchecked => {
            "the recording is damaged, and ggprof has no rule to check this op by"
        }
        Unwritable::UndescribedParts => {
            "of what was computed together with its first op, the recording has only the names"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn ops_with_one_reason_share_a_sentence() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU SOFT_MAX 0..9 kq-0 f32[8] <- f32[8] f32[2] slot=2
             op CPU SOFT_MAX 9..12 kq-1 f32[9] <- f32[9] f32[2] slot=2
             op CPU RMS_NORM 12..13 norm f32[8] <- f32[8] fused=RMS_NORM+MUL",
        );
        let nodes: Vec<NodeId> = trace.events.iter().map(|event| event.node).collect();
        let left_out = [
            (nodes[0], Unwritable::Hole),
            (nodes[1], Unwritable::Hole),
            (nodes[2], Unwritable::UndescribedParts),
        ];
        assert_eq!(
            sentences(&trace, &left_out),
            [
                "Left out: SOFT_MAX kq-0 (2 of them): a source before others is absent, which a line \
                 cannot say.",
                "Left out: RMS_NORM+MUL norm: of what was computed together with its first op, the \
                 recording has only the names."
            ]
        );
    }
}
