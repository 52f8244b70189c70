//! A recorded op, or the nodes of a fusion, as they are run alone.

use ggprof_analysis::DistinctOp;
use ggprof_ops::{From, Node, Shape, Source};
use ggprof_trace::{Member, Origin, Signature, Tensor, Trace};

/// The nodes, or why they cannot be run.
pub(super) fn of(trace: &Trace, op: &DistinctOp) -> Result<Vec<Node>, String> {
    let signature = trace.nodes.signature(op.signature);
    if signature.members.is_empty() {
        if signature.extra.is_some() {
            return Err("the recording does not describe what was computed with it".to_owned());
        }
        let origins = (0..signature.sources.len() as u8).map(From::Outside).collect();
        return Ok(vec![node(trace, signature, origins, op.depth)?]);
    }
    let member = |member: &Member| {
        let origin = |origin: &Origin| match *origin {
            Origin::Outside(number) => From::Outside(number),
            Origin::Member(place) => From::Node(place),
        };
        let origins: Vec<From> = member.origins.iter().map(origin).collect();
        node(trace, trace.nodes.signature(member.signature), origins, op.depth)
    };
    signature.members.iter().map(member).collect()
}

fn node(
    trace: &Trace,
    signature: &Signature,
    origins: Vec<From>,
    depth: Option<u64>,
) -> Result<Node, String> {
    let op = trace.text(signature.op);
    if op.contains("CUSTOM") {
        return Err("it calls a function of the program".to_owned());
    }
    if origins.len() != signature.sources.len() {
        return Err("the recording does not say where all its sources come from".to_owned());
    }
    let source = |(source, from): (&ggprof_trace::Source, From)| {
        let shape = shape(trace, &source.tensor)?;
        Ok(Source { slot: source.slot, shape, nb: source.nb, from })
    };
    let sources =
        signature.sources.iter().zip(origins).map(source).collect::<Result<_, String>>()?;
    Ok(Node {
        op: op.to_owned(),
        function: signature.sub_op_name.map(|name| trace.text(name).to_owned()),
        params: signature.op_params,
        output: shape(trace, &signature.output)?,
        sources,
        attended: depth,
    })
}

fn shape(trace: &Trace, tensor: &Tensor) -> Result<Shape, String> {
    let elements = tensor.elements().filter(|_| tensor.type_id >= 0);
    match elements {
        None => Err("the recording does not have all its types and shapes".to_owned()),
        Some(0) => Err("it has a tensor without elements".to_owned()),
        Some(_) => Ok(Shape {
            type_id: tensor.type_id,
            type_name: trace.types.name(tensor.type_id),
            ne: tensor.ne,
        }),
    }
}
