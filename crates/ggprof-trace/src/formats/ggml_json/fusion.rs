//! The members of a fusion, in a record's description.
//!
//! They are lists and not objects: the fast path takes the first closing brace for the end of the
//! record (`fast_record.rs`).

use crate::model::{Member, NodeId, Origin, Shape, Signature, Source, StringId, Tensor, Trace};
use serde::{Deserialize, Serialize};

/// A member after the first, which is the record itself: `[op, sub_op_name, tensor_name, ne,
/// out_type, ne_src, nb_src, type_src, src_names, op_params, slot_src]`. The last list is empty if it
/// has no gaps.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MemberEntry(
    String,
    Option<String>,
    Option<String>,
    Shape,
    i32,
    Vec<Shape>,
    Vec<Shape>,
    Vec<i32>,
    Vec<String>,
    Vec<i32>,
    #[serde(default)] Vec<u8>,
);

/// `[origins, is_stored]` of every member. An origin is the number of a tensor from outside, or
/// -1 and less for the result of the first member and of those after it.
pub(super) type LinkEntry = (Vec<i16>, bool);

/// The entries of a node; `None` if it is no fusion.
pub(super) fn entries(trace: &Trace, node: NodeId) -> Option<(Vec<MemberEntry>, Vec<LinkEntry>)> {
    let members = trace.nodes.members(node);
    let links = &trace.signature(node).members;
    let rest = members.get(1..)?.iter().map(|&member| entry(trace, member)).collect();
    let link = |member: &Member| {
        let origin = |origin: &Origin| match *origin {
            Origin::Outside(number) => i16::from(number),
            Origin::Member(place) => -1 - i16::from(place),
        };
        (member.origins.iter().map(origin).collect(), member.is_stored)
    };
    Some((rest, links.iter().map(link).collect()))
}

fn entry(trace: &Trace, node: NodeId) -> MemberEntry {
    let signature = trace.signature(node);
    let text = |id: StringId| trace.text(id).to_owned();
    let sources = || signature.sources.iter();
    let params = &signature.op_params;
    let said = params.iter().rposition(|&param| param != 0).map_or(0, |last| last + 1);
    MemberEntry(
        text(signature.op),
        signature.sub_op_name.map(text),
        trace.tensor_name(node).map(str::to_owned),
        signature.output.ne,
        signature.output.type_id,
        sources().map(|source| source.tensor.ne).collect(),
        sources().map(|source| source.nb).collect(),
        sources().map(|source| source.tensor.type_id).collect(),
        trace.nodes.source_names(node).iter().map(|&name| text(name)).collect(),
        params[..said].to_vec(),
        slots_with_gaps(&signature.sources),
    )
}

/// The places of sources among which some are empty; nothing if none is.
pub(super) fn slots_with_gaps(sources: &[Source]) -> Vec<u8> {
    let has_gaps = sources.iter().enumerate().any(|(at, source)| usize::from(source.slot) != at);
    sources.iter().filter(|_| has_gaps).map(|source| source.slot).collect()
}

/// Adds a node that is the first of a fusion, or stands alone where the entries make no sense.
pub(super) fn intern(
    trace: &mut Trace,
    signature: Signature,
    tensor_name: Option<StringId>,
    source_names: &[StringId],
    (rest, links): (&[MemberEntry], &[LinkEntry]),
) -> NodeId {
    if rest.is_empty() || links.len() != rest.len() + 1 {
        return trace.nodes.intern(signature, tensor_name, source_names);
    }
    let first = Signature { extra: None, ..signature.clone() };
    let mut nodes = vec![trace.nodes.intern(first, tensor_name, source_names)];
    for entry in rest {
        nodes.push(take(trace, entry));
    }
    let member = |(&node, (origins, is_stored)): (&NodeId, &LinkEntry)| {
        let signature = trace.node(node).signature;
        let known = trace.nodes.signature(signature).sources.len();
        let origins = origins.iter().filter_map(|&origin| origin_of(origin)).take(known).collect();
        Member { signature, origins, is_stored: *is_stored }
    };
    let members = nodes.iter().zip(links).map(member).collect();
    let signature = Signature { members, ..signature };
    trace.nodes.intern_fusion(signature, tensor_name, source_names, &nodes)
}

fn origin_of(number: i16) -> Option<Origin> {
    match u8::try_from(number) {
        Ok(number) => Some(Origin::Outside(number)),
        Err(_) => u8::try_from(-1 - i32::from(number)).ok().map(Origin::Member),
    }
}

fn take(trace: &mut Trace, entry: &MemberEntry) -> NodeId {
    let MemberEntry(op, sub_op, name, ne, type_id, ne_src, nb_src, types, names, params, slots) =
        entry;
    let mut op_params = [0; 16];
    op_params.iter_mut().zip(params).for_each(|(param, value)| *param = *value);
    let source = |(at, &ne): (usize, &Shape)| Source {
        tensor: Tensor { type_id: types.get(at).copied().unwrap_or(-1), ne },
        nb: nb_src.get(at).copied().unwrap_or_default(),
        slot: slots.get(at).copied().unwrap_or(at as u8),
    };
    let signature = Signature {
        sub_op_name: sub_op.as_ref().map(|name| trace.strings.intern(name)),
        output: Tensor { type_id: *type_id, ne: *ne },
        sources: ne_src.iter().enumerate().map(source).collect(),
        op_params,
        ..Signature::of_op(trace.strings.intern(op))
    };
    let name = name.as_ref().map(|name| trace.strings.intern(name));
    let names: Vec<StringId> = names.iter().map(|name| trace.strings.intern(name)).collect();
    trace.nodes.intern(signature, name, &names)
}
