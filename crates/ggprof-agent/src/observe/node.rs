//! Describes one node: its digest and, if it is new, everything that ggml knows about it. `graph`
//! decides which nodes need a description.

use ggprof_ggml::{computes, is_marked, is_wanted};
use ggprof_spool::layout::{self, SOURCE_BYTES, Source};

use super::instance::Instance;
use crate::digest::{digest, mix};
use crate::fault::fault_point;
use crate::ffi::api::{Pointer, text};
use crate::ffi::tensor::{Tensor, TensorLayout};
use crate::recorder::lane::HeldLane;

/// What ggml calls the node's op.
pub(crate) fn op_name<'a>(instance: &Instance, op: u32) -> &'a [u8] {
    // SAFETY: an op number read from a live tensor of this instance.
    instance.api.ggml_op_name.map_or(&b""[..], |name| text(unsafe { name(op as i32) }))
}

/// Positions of the nodes for which a backend does anything.
///
/// # Safety
/// The nodes are those of a graph that ggml is computing, of the instance that the
/// layout is of.
pub(crate) unsafe fn working<'n>(
    instance: &'n Instance,
    layout: &'n TensorLayout,
    nodes: &'n [*const u8],
) -> impl Iterator<Item = usize> + 'n {
    // SAFETY: the caller's contract.
    let tensor = |node: &*const u8| unsafe { Tensor::new(*node, layout) };
    let marked = nodes.iter().any(|node| is_marked(tensor(node).flags()));
    let works = move |node: &*const u8| {
        let tensor = tensor(node);
        is_wanted(tensor.flags(), marked) && computes(op_name(instance, tensor.op()))
    };
    nodes.iter().enumerate().filter(move |(_, node)| works(node)).map(|(position, _)| position)
}

/// The node's number, with its description written if it is new.
pub(crate) fn number(
    lane: &HeldLane<'_>,
    instance: &Instance,
    tensor: Tensor<'_>,
    sources: &[(Source, &[u8])],
) -> u32 {
    let op_name = op_name(instance, tensor.op());
    let mut node = layout::Node {
        sources: sources.len() as u8,
        instance: instance.id,
        op: tensor.op(),
        type_id: tensor.type_id(),
        flags: tensor.flags(),
        ne: tensor.ne(),
        nb: tensor.nb(),
        op_params: tensor.op_params(),
        ..Default::default()
    };
    if op_name == b"VIEW" {
        node.op_params = Default::default();
    }
    let mut identity = mix(digest(&node.encode()), digest(tensor.name()));
    for (source, name) in sources {
        identity = mix(mix(identity, digest(&source.encode())), digest(name));
    }
    let mut interner = lane.recorder.interner();
    let (id, new) = interner.node(lane, identity);
    if !new {
        return id;
    }
    fault_point!();
    node.node = id;
    node.op_name = interner.text(lane, op_name);
    let detail = detail(instance, tensor);
    node.op_detail = interner.text(lane, if detail == op_name { b"" } else { detail });
    node.name = interner.text(lane, tensor.name());
    let mut tail = Vec::with_capacity(sources.len() * SOURCE_BYTES);
    for (source, name) in sources {
        let source = Source { name: interner.text(lane, name), ..*source };
        tail.extend_from_slice(&source.encode());
    }
    for type_id in sources.iter().map(|(source, _)| source.type_id).chain([node.type_id]) {
        if interner.is_new_type(instance.id, type_id) {
            let name = interner.text(lane, type_name(instance, type_id));
            write_type(lane, instance, type_id, name);
        }
    }
    fault_point!();
    lane.define_long(&mut node.encode(), &tail);
    id
}

/// What ggml says of it beyond the name of its op: which unary function it is.
fn detail<'a>(instance: &Instance, tensor: Tensor<'a>) -> &'a [u8] {
    let tensor = tensor.address() as Pointer;
    // SAFETY: a live tensor of this instance, which the function only reads.
    instance.api.ggml_op_desc.map_or(b"", |desc| text(unsafe { desc(tensor) }))
}

fn type_name<'a>(instance: &Instance, type_id: u32) -> &'a [u8] {
    // SAFETY: a type number read from a live tensor of this instance.
    instance.api.ggml_type_name.map_or(b"", |name| text(unsafe { name(type_id as i32) }))
}

fn write_type(lane: &HeldLane<'_>, instance: &Instance, type_id: u32, name: u32) {
    let (elements, bytes) = (instance.api.ggml_blck_size, instance.api.ggml_type_size);
    let id = type_id as i32;
    let record = layout::TypeEntry {
        instance: instance.id,
        type_id,
        name,
        // SAFETY: a type number read from a live tensor of this instance.
        block_elements: elements.map_or(0, |elements| unsafe { elements(id) } as u32),
        // SAFETY: as above.
        block_bytes: bytes.map_or(0, |bytes| unsafe { bytes(id) } as u32),
        ..Default::default()
    };
    lane.define(&record.encode());
}
