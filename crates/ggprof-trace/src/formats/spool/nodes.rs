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
    places: Vec<Places>,
    place_of_shape: HashMap<u32, usize>,
    /// The shape that was asked for last, and where its nodes are: ops of one graph come together.
    last: Option<(u32, usize)>,
    fusions: Fusions,
    /// The size of each node's output, where it was asked for.
    output_bytes: Vec<Option<u64>>,
}

/// The nodes at the positions of a shape that were asked for.
#[derive(Debug, Default)]
struct Places {
    alone: Vec<Option<NodeId>>,
    fused: Vec<Option<NodeId>>,
}

impl Places {
    fn of(&mut self, fused: bool) -> &mut Vec<Option<NodeId>> {
        if fused { &mut self.fused } else { &mut self.alone }
    }
}

impl Nodes {
    /// The node at a position of a shape, with all it was fused with.
    #[inline]
    pub(super) fn at(
        &mut self,
        tables: &Tables,
        trace: &mut Trace,
        (shape, position): (u32, u32),
        fused: bool,
    ) -> Option<NodeId> {
        let place = match self.last {
            Some((last, place)) if last == shape => place,
            _ => self.places_of(shape),
        };
        let known = self.places[place].of(fused).get(position as usize).copied().flatten();
        if known.is_some() {
            return known;
        }
        self.find(tables, trace, (shape, position), fused, place)
    }

    /// The same when it is asked for the first time.
    #[cold]
    fn find(
        &mut self,
        tables: &Tables,
        trace: &mut Trace,
        (shape, position): (u32, u32),
        fused: bool,
        place: usize,
    ) -> Option<NodeId> {
        let number = tables.node_at(shape, position)?;
        let members = tables.fusions.get(&(shape, position)).filter(|_| fused);
        let node = match members {
            Some(members) => self.fusion(tables, trace, (shape, number), members)?,
            None => self.alone(tables, trace, number)?,
        };
        // A fusion may still be described.
        if members.is_some() == fused {
            let nodes = self.places[place].of(fused);
            // There is a node at the position, so the number is that of a real graph.
            nodes.resize(nodes.len().max(position as usize + 1), None);
            nodes[position as usize] = Some(node);
        }
        Some(node)
    }

    /// The size of a node's output.
    #[inline]
    pub(super) fn output_bytes(&mut self, trace: &Trace, node: NodeId) -> u64 {
        let at = node.0 as usize;
        if let Some(&Some(known)) = self.output_bytes.get(at) {
            return known;
        }
        self.measure_output(trace, node)
    }

    #[cold]
    fn measure_output(&mut self, trace: &Trace, node: NodeId) -> u64 {
        let at = node.0 as usize;
        let bytes = trace.types.bytes_of(&trace.signature(node).output).unwrap_or(0);
        self.output_bytes.resize(self.output_bytes.len().max(at + 1), None);
        self.output_bytes[at] = Some(bytes);
        bytes
    }

    fn places_of(&mut self, shape: u32) -> usize {
        let next = self.places.len();
        let place = *self.place_of_shape.entry(shape).or_insert(next);
        if place == next {
            self.places.push(Places::default());
        }
        self.last = Some((shape, place));
        place
    }

    /// The same node is part of many shapes.
    fn alone(&mut self, tables: &Tables, trace: &mut Trace, number: u32) -> Option<NodeId> {
        if let Some(&node) = self.alone.get(&number) {
            return Some(node);
        }
        let node = describe(tables, trace, number)?;
        self.alone.insert(number, node);
        Some(node)
    }

    /// The nodes of the file that each node of the trace stands for.
    pub(super) fn members(&self, tables: &Tables) -> Vec<(NodeId, Vec<u32>)> {
        let alone = self.alone.iter().map(|(&number, &node)| (node, vec![number]));
        let shapes = self.place_of_shape.iter();
        let fused = shapes.flat_map(|(&shape, &place)| {
            let nodes = (0_u32..).zip(&self.places[place].fused);
            nodes.filter_map(move |(position, node)| {
                let members = tables.fusions.get(&(shape, position))?.iter();
                let numbers = members.filter_map(|&member| tables.node_at(shape, member));
                Some(((*node)?, numbers.collect()))
            })
        });
        alone.chain(fused).collect()
    }

    fn fusion(
        &mut self,
        tables: &Tables,
        trace: &mut Trace,
        (shape, number): (u32, u32),
        members: &[u32],
    ) -> Option<NodeId> {
        let parts = self.fusions.parts(tables, shape, members);
        // With nothing but views it computes what it computes alone.
        let Some(parts) = parts.filter(|parts| parts.len() > 1) else {
            return self.alone(tables, trace, number);
        };
        let mut nodes = Vec::with_capacity(parts.len());
        for part in &parts {
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
}

fn describe(tables: &Tables, trace: &mut Trace, number: u32) -> Option<NodeId> {
    let (node, sources) = tables.nodes.get(&number)?;
    trace.op_numbers.insert(tables.text(node.op_name), node.op);
    let detail = tables.text(node.op_detail);
    let source_names: Vec<_> =
        sources.iter().map(|source| trace.strings.intern(tables.text(source.name))).collect();
    let signature = Signature {
        op: trace.strings.intern(tables.text(node.op_name)),
        copied: None,
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
        slot: source.slot as u8,
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
