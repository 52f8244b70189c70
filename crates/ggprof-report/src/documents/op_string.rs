//! Ops as `test-backend-ops --test-file` prints them for the lines of `ggprof export ops`, without the names of
//! tensors, so that a maintainer finds the same one again.

use ggprof_analysis::grouping::fusion_of;
use ggprof_trace::formats::op_lines;
use ggprof_trace::{EventKind, NodeId, Shape, Signature, Source, Tensor, Trace, TypeInfo};

/// What a call computed: of a fusion all nodes, or its name where the recording does not have them.
pub(super) fn op_strings(trace: &Trace, node: NodeId) -> String {
    let signature = trace.signature(node);
    match (fusion_of(signature, EventKind::Op), trace.nodes.members(node)) {
        (_, members @ [_, ..]) => {
            let strings = members.iter().map(|&node| op_string(trace, trace.signature(node)));
            strings.collect::<Vec<_>>().join(" + ")
        }
        (Some(fusion), []) => {
            format!("{} of {}", op_string(trace, signature), trace.text(fusion))
        }
        (None, []) => op_string(trace, signature),
    }
}

/// `MUL_MAT(type=f32,ne=[4096,1,1,1],op_params=[],sources=q4_0[14336,4096,1,1],f32[14336,1,1,1])`; of ops
/// that a line of that file could not tell, what is known of the result.
fn op_string(trace: &Trace, signature: &Signature) -> String {
    let name = trace.text(signature.op);
    let output = &signature.output;
    let result = match output.is_known() {
        true => format!("type={},ne={}", trace.types.name(output.type_id), list(&output.ne)),
        false => String::new(),
    };
    // The parameters of functions of the program are addresses.
    let is_custom = name.contains("CUSTOM");
    let is_known = output.is_known() && signature.sources.iter().all(|it| it.tensor.is_known());
    let is_whole = is_known && !is_custom;
    let arguments = match is_whole {
        true => {
            let sources = signature.sources.iter().map(|it| source(trace, name, it));
            let sources = sources.collect::<Vec<_>>().join(",");
            format!("{result},op_params={},sources={sources}", parameters(&signature.op_params))
        }
        false => result,
    };
    let name = signature.sub_op_name.map_or(name, |sub_op| trace.text(sub_op));
    format!("{name}({arguments})")
}

fn list(numbers: &[i64]) -> String {
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", texts.join(","))
}

/// Those that are not 0, with their places.
fn parameters(all: &[i32]) -> String {
    let set = all.iter().enumerate().filter(|(_, parameter)| **parameter != 0);
    let texts: Vec<String> = set.map(|(at, parameter)| format!("{at}:{parameter}")).collect();
    format!("[{}]", texts.join(","))
}

/// With its strides, where it is not packed.
fn source(trace: &Trace, op: &str, source: &Source) -> String {
    let Tensor { type_id, ne, .. } = source.tensor;
    let strides = op_lines::written_strides(op, source);
    let packed = trace.types.get(type_id).map(|kind| packed_strides(kind, &ne));
    // Recordings of ggml's first profilers have none.
    let is_packed = strides[0] == 0 || packed.is_none_or(|packed| packed == strides);
    let strides = if is_packed { String::new() } else { format!("nb{}", list(&strides)) };
    format!("{}{}{strides}", trace.types.name(type_id), list(&ne))
}

fn packed_strides(kind: &TypeInfo, ne: &Shape) -> Shape {
    let (block, bytes) = (i64::from(kind.block_elements), i64::from(kind.block_bytes));
    let row = ne[0].checked_div(block).unwrap_or(0).saturating_mul(bytes);
    let plane = row.saturating_mul(ne[1]);
    [bytes, row, plane, plane.saturating_mul(ne[2])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn strings() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU MUL_MAT 0..1 a f32[4096,2,8] <- q4_0[14336,4096,4] f32[14336,2,8] params=10,0,-1
             op CPU ADD 1..2 b f32[8,2] <- f32[8,2] nb=4,64,128,128 f32[8] nb=4,32,32,32
             op CPU GET_ROWS 2..3 c f32[8,2] <- f32[8,9] nb=4,32,288,288 i32[2] nb=8,16,16,16
             op CPU GLU 3..4 d f32[128,2] <- f32[128,2] sub=SWIGLU
             op CPU MAP_CUSTOM1 4..5 e f32[3] <- f32[3] params=4711
             op CPU CUSTOM 5..6 e",
        );
        let strings: Vec<String> =
            trace.nodes.signatures().map(|(_, it)| op_string(&trace, it)).collect();
        assert_eq!(
            strings,
            [
                "MUL_MAT(type=f32,ne=[4096,2,8,1],op_params=[0:10,2:-1],\
                 sources=q4_0[14336,4096,4,1],f32[14336,2,8,1])",
                "ADD(type=f32,ne=[8,2,1,1],op_params=[],\
                 sources=f32[8,2,1,1]nb[4,64,128,128],f32[8,1,1,1])",
                "GET_ROWS(type=f32,ne=[8,2,1,1],op_params=[],sources=f32[8,9,1,1],i32[2,1,1,1])",
                "SWIGLU(type=f32,ne=[128,2,1,1],op_params=[],sources=f32[128,2,1,1])",
                "MAP_CUSTOM1(type=f32,ne=[3,1,1,1])",
                "CUSTOM()",
            ]
        );
    }

    /// A damaged recording may say that there is nothing to compute.
    #[test]
    fn of_nothing() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU MUL_MAT 0..1 a f32[8] <- f32[8,8,0] f32[8]
             op CPU FLASH_ATTN_EXT 2..3 c f32[8] <- f32[8] f16[8,8,0] f16[8,8,0]",
        );
        for (_, signature) in trace.nodes.signatures() {
            assert!(op_string(&trace, signature).contains("8,8,0,1]"));
        }
    }

    #[test]
    fn fusions_are_all_their_nodes() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             op GPU RMS_NORM 0..1 norm-0 f32[8] <- f32[8]
             with MUL attn_norm-0 f32[8] <- f32[8]@0 f32[8]#1
             op GPU ROPE 1..2 Kcur-0 f32[8] <- f32[8] fused=ROPE+SET_ROWS",
        );
        let strings: Vec<String> =
            trace.events.iter().map(|event| op_strings(&trace, event.node)).collect();
        let expected = [
            "RMS_NORM(type=f32,ne=[8,1,1,1],op_params=[],sources=f32[8,1,1,1]) + \
             MUL(type=f32,ne=[8,1,1,1],op_params=[],sources=f32[8,1,1,1],f32[8,1,1,1])",
            "ROPE(type=f32,ne=[8,1,1,1],op_params=[],sources=f32[8,1,1,1]) of ROPE+SET_ROWS",
        ];
        assert_eq!(strings, expected);
    }
}
