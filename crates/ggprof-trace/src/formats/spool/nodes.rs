//! Turns the file's descriptions of nodes into the trace's, each once.

use super::fusions::{Fusions, Part};
use super::tables::Tables;
use crate::model::{Member, NodeId, Signature, Source, Tensor, Trace, TypeInfo};
use ggprof_spool::layout;
use hashbrown::HashMap;

/// The trace's node for each node of the file, or each fusion that one begins.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    alone: HashMap<u32, NodeId>,
    fused: HashMap<(u32, u32), NodeId>,
    fusions: Fusions,
}

impl Nodes {
    /// The node at a position of a shape, with all it was fused with.
    pub(super) fn at(
        &mut self,
        tables: &Tables,
        trace: &mut Trace,
        (shape, position): (u32, u32),
        fused: bool,
    ) -> Option<NodeId> {
        let number = tables.node_at(shape, position)?;
        let members = tables.fusions.get(&(shape, position)).filter(|_| fused);
        let Some(members) = members else { return self.alone(tables, trace, number) };
        if let Some(&node) = self.fused.get(&(shape, position)) {
            return Some(node);
        }
        let parts = self.fusions.parts(tables, shape, members);
        let node = match parts.filter(|parts| parts.len() > 1) {
            Some(parts) => self.fusion(tables, trace, shape, &parts)?,
            // With nothing but views it computes what it computes alone.
            None => self.alone(tables, trace, number)?,
        };
        self.fused.insert((shape, position), node);
        Some(node)
    }

    fn alone(&mut self, tables: &Tables, trace: &mut Trace, number: u32) -> Option<NodeId> {
        if let Some(&node) = self.alone.get(&number) {
            return Some(node);
        }
        let node = describe(tables, trace, number)?;
        self.alone.insert(number, node);
        Some(node)
    }

    fn fusion(
        &mut self,
        tables: &Tables,
        trace: &mut Trace,
        shape: u32,
        parts: &[Part],
    ) -> Option<NodeId> {
        let mut nodes = Vec::with_capacity(parts.len());
        for part in parts {
            nodes.push(self.alone(tables, trace, tables.node_at(shape, part.position)?)?);
        }
        let names: Vec<&str> = nodes.iter().map(|&node| trace.op_name(node)).collect();
        let extra = trace.strings.intern(&names.join("+"));
        let member = |(part, &node): (&Part, &NodeId)| Member {
            signature: trace.node(node).signature,
            origins: part.origins.as_slice().into(),
            is_stored: part.is_stored,
        };
        let members = parts.iter().zip(&nodes).map(member).collect();
        let head = *nodes.first()?;
        let signature = Signature { extra: Some(extra), members, ..trace.signature(head).clone() };
        let source_names = trace.nodes.source_names(head).to_vec();
        let name = trace.node(head).tensor_name;
        Some(trace.nodes.intern_fusion(signature, name, &source_names, &nodes))
    }

    /// The nodes of the file that each node of the trace stands for.
    pub(super) fn members(&self, tables: &Tables) -> Vec<(NodeId, Vec<u32>)> {
        let alone = self.alone.iter().map(|(&number, &node)| (node, vec![number]));
        let fused = self.fused.iter().map(|(&(shape, position), &node)| {
            let members = tables.fusions.get(&(shape, position)).into_iter().flatten();
            (node, members.filter_map(|&member| tables.node_at(shape, member)).collect())
        });
        alone.chain(fused).collect()
    }
}

fn describe(tables: &Tables, trace: &mut Trace, number: u32) -> Option<NodeId> {
    let (node, sources) = tables.nodes.get(&number)?;
    let detail = tables.text(node.op_detail);
    let source_names: Vec<_> =
        sources.iter().map(|source| trace.strings.intern(tables.text(source.name))).collect();
    let signature = Signature {
        op: trace.strings.intern(tables.text(node.op_name)),
        // Numbers of sub-ops differ between ggml versions; the name says it.
        sub_op: -1,
        sub_op_name: (!detail.is_empty()).then(|| trace.strings.intern(detail)),
        extra: None,
        output: Tensor { type_id: node.type_id as i32, ne: node.ne },
        sources: sources.iter().map(source).collect(),
        op_params: node.op_params.map(|param| param as i32),
        members: Box::default(),
    };
    let name = tables.text(node.name);
    let name = (!name.is_empty()).then(|| trace.strings.intern(name));
    Some(trace.nodes.intern(signature, name, &source_names))
}

fn source(source: &layout::Source) -> Source {
    Source {
        tensor: Tensor { type_id: source.type_id as i32, ne: source.ne },
        nb: source.nb.map(|stride| stride as i64),
    }
}

/// The types as the program's own ggml knows them.
pub(super) fn take_types(tables: &Tables, trace: &mut Trace) {
    for entry in &tables.types {
        trace.types.insert(TypeInfo {
            id: entry.type_id as i32,
            name: tables.text(entry.name).to_owned(),
            block_elements: entry.block_elements,
            block_bytes: entry.block_bytes,
        });
    }
}
