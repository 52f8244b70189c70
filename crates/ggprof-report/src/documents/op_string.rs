//! Ops as `test-backend-ops` writes them, so that a maintainer can run the same one: its option `-p`
//! takes a part of such a string.

use ggprof_analysis::grouping::fusion_of;
use ggprof_trace::{EventKind, NodeId, Signature, Source, Tensor, Trace, TypeTable};

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

/// `MUL_MAT(type_a=q4_0,type_b=f32,m=4096,n=1,k=14336,bs=[1,1],nr=[1,1])`; of ops without words of
/// their own there, the type and the dimensions of the result.
fn op_string(trace: &Trace, signature: &Signature) -> String {
    let name = trace.text(signature.op);
    let known = |at: usize| signature.sources.get(at).map(tensor).filter(Tensor::is_known);
    let types = &trace.types;
    let arguments = match (name, known(0), known(1), known(2)) {
        ("MUL_MAT", Some(a), Some(b), _) => product(types, &a, &b),
        ("MUL_MAT_ID", Some(a), Some(b), Some(ids)) => selected(types, &a, &b, &ids),
        ("FLASH_ATTN_EXT", Some(q), Some(k), Some(v)) => attention(&q, &k, &v),
        _ => result(types, &signature.output),
    };
    let name = signature.sub_op_name.map_or(name, |sub_op| trace.text(sub_op));
    format!("{name}({arguments})")
}

fn tensor(source: &Source) -> Tensor {
    source.tensor
}

fn product(types: &TypeTable, a: &Tensor, b: &Tensor) -> String {
    format!(
        "type_a={},type_b={},m={},n={},k={},bs=[{},{}],nr=[{},{}]",
        types.name(a.type_id),
        types.name(b.type_id),
        a.ne[1],
        b.ne[1],
        a.ne[0],
        a.ne[2],
        a.ne[3],
        times(b.ne[2], a.ne[2]),
        times(b.ne[3], a.ne[3]),
    )
}

/// How often one dimension repeats another, which a damaged recording may call nothing.
fn times(all: i64, each: i64) -> i64 {
    all.checked_div(each).unwrap_or(0)
}

fn selected(types: &TypeTable, a: &Tensor, b: &Tensor, ids: &Tensor) -> String {
    format!(
        "type_a={},type_b={},n_mats={},n_used={},b={},m={},n={},k={}",
        types.name(a.type_id),
        types.name(b.type_id),
        a.ne[2],
        ids.ne[0],
        // One row for all experts that are used.
        u8::from(b.ne[1] == 1 && ids.ne[0] > 1),
        a.ne[1],
        ids.ne[1],
        a.ne[0],
    )
}

fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> String {
    format!(
        "hsk={},hsv={},nh={},nr23=[{},{}],kv={},nb={}",
        q.ne[0],
        v.ne[0],
        k.ne[2],
        times(q.ne[2], k.ne[2]),
        times(q.ne[3], k.ne[3]),
        k.ne[1],
        q.ne[1],
    )
}

fn result(types: &TypeTable, output: &Tensor) -> String {
    match output.is_known() {
        true => {
            let [a, b, c, d] = output.ne;
            format!("type={},ne=[{a},{b},{c},{d}]", types.name(output.type_id))
        }
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn strings() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU MUL_MAT 0..1 a f32[4096,2,8] <- q4_0[14336,4096,4] f32[14336,2,8]
             op CPU MUL_MAT_ID 1..2 b f32[64,2,5] <- q8_0[32,64,16] f32[32,1,5] i32[2,5]
             op CPU FLASH_ATTN_EXT 2..3 c f32[64,32,3] <- f32[64,3,32] f16[64,256,8] f16[64,256,8]
             op CPU GLU 3..4 d f32[128,2] <- f32[128,2] sub=SWIGLU
             op CPU CUSTOM 4..5 e",
        );
        let strings: Vec<String> =
            trace.nodes.signatures().map(|(_, it)| op_string(&trace, it)).collect();
        assert_eq!(
            strings,
            [
                "MUL_MAT(type_a=q4_0,type_b=f32,m=4096,n=2,k=14336,bs=[4,1],nr=[2,1])",
                "MUL_MAT_ID(type_a=q8_0,type_b=f32,n_mats=16,n_used=2,b=1,m=64,n=5,k=32)",
                "FLASH_ATTN_EXT(hsk=64,hsv=64,nh=8,nr23=[4,1],kv=256,nb=3)",
                "SWIGLU(type=f32,ne=[128,2,1,1])",
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
            assert!(op_string(&trace, signature).contains("nr"));
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
            "RMS_NORM(type=f32,ne=[8,1,1,1]) + MUL(type=f32,ne=[8,1,1,1])",
            "ROPE(type=f32,ne=[8,1,1,1]) of ROPE+SET_ROWS",
        ];
        assert_eq!(strings, expected);
    }
}
