//! Turns nodes into descriptions. A program computes the same graph thousands of times, so the
//! bytes of each tensor are kept from the last time: if they are the same, its number is the same,
//! and nothing is hashed or locked.
//!
//! A node's identity is what it computes from what: op, parameters, name, type, shape, strides, the
//! same of its sources, and how many nodes before it the sources were computed. The address of its
//! data is no part of it, nor is the offset of a view: the place in a cache moves with every token.

use ggprof_spool::layout::{self, Source};

use super::instance::Instance;
use super::node;
use crate::digest::{NumberMap, NumberSet, mix};
use crate::fault::fault_point;
use crate::ffi::tensor::{Tensor, TensorLayout};
use crate::memory;
use crate::recorder::lane::HeldLane;

/// Tensors remembered per lane, before all is forgotten and learnt anew: some ten
/// megabytes in a program that builds every graph somewhere else.
const MOST_REMEMBERED: usize = 1 << 15;
/// Every so many graphs all bytes are compared, not the fingerprint's only.
const USES_BEFORE_CHECK: u32 = 32;
/// Graphs remembered by their number: the splits of a run or two.
const NUMBERED: usize = 8;
/// Bytes of a tensor up to its data pointer: 248 or 256 in all versions.
const HEAD_BYTES: usize = 256;
/// The shortest name field there is; longer ones are compared by this many bytes.
const NAME_BYTES: usize = 64;

/// The nodes a lane has seen.
#[derive(Debug, Default)]
pub(crate) struct KnownNodes {
    by_address: NumberMap<usize, u32>,
    remembered: Vec<Remembered>,
    ids: Vec<u32>,
    last_recalled: u32,
    pass: u32,
    last_shape: (u64, u32),
    fusions: NumberSet<u64>,
    /// The shape folded last, whose fusions are all written.
    fusions_written: u32,
    /// The graphs last described, by ggml's own number.
    numbered: [(u64, Recent); NUMBERED],
    next_numbered: usize,
    /// Shapes by their graph's fingerprint.
    shapes: NumberMap<u64, Recent>,
}

/// A shape found lately, and how often it was taken on its fingerprint alone.
#[derive(Debug, Default)]
struct Recent {
    shape: u32,
    uses: u32,
}

/// A tensor as it was when it was last part of a graph.
#[derive(Debug)]
struct Remembered {
    address: usize,
    node: u32,
    instance: u32,
    pass: u32,
    position: u32,
    sources: u8,
    /// Bit `s`: source `s` is a node of the same graph, and checked as such.
    made_in_graph: u16,
    leaves: u64,
    head: [u8; HEAD_BYTES],
    name: [u8; NAME_BYTES],
}

impl KnownNodes {
    /// The number of the graph's shape. Graphs are recognised by ggml's own number
    /// for them, which backends rely on too, or else by a fingerprint of what tends to
    /// change; all other fields are compared now and then.
    pub(crate) fn shape_of(
        &mut self,
        lane: &HeldLane<'_>,
        instance: &Instance,
        layout: &TensorLayout,
        nodes: &[*const u8],
        uid: u64,
    ) -> u32 {
        // The same number in another place is not the same graph.
        let numbered = mix(mix(uid, nodes.as_ptr() as u64), nodes.len() as u64);
        let numbered = (uid != 0).then_some(numbered ^ u64::from(instance.id));
        if let Some(shape) = numbered.and_then(|number| self.recall_numbered(number)) {
            return shape;
        }
        let shape = self.shape_by_content(lane, instance, layout, nodes);
        if let Some(number) = numbered {
            self.numbered[self.next_numbered] = (number, Recent { shape, uses: 0 });
            self.next_numbered = (self.next_numbered + 1) % NUMBERED;
        }
        shape
    }

    /// A program that builds its graph anew each time gives it a new number each time: few
    /// are worth remembering.
    fn recall_numbered(&mut self, number: u64) -> Option<u32> {
        let known = self.numbered.iter_mut().find(|(known, _)| *known == number);
        let (_, recent) = known.filter(|(_, recent)| recent.uses < USES_BEFORE_CHECK)?;
        recent.uses += 1;
        Some(recent.shape)
    }

    fn shape_by_content(
        &mut self,
        lane: &HeldLane<'_>,
        instance: &Instance,
        layout: &TensorLayout,
        nodes: &[*const u8],
    ) -> u32 {
        let fingerprint = fingerprint(layout, nodes) ^ u64::from(instance.id);
        if let Some(recent) = self.shapes.get_mut(&fingerprint)
            && recent.uses < USES_BEFORE_CHECK
        {
            recent.uses += 1;
            return recent.shape;
        }
        let shape = self.describe(lane, instance, layout, nodes);
        if self.shapes.len() >= MOST_REMEMBERED {
            self.shapes.clear();
        }
        memory::made_room(self.shapes.try_reserve(1));
        self.shapes.insert(fingerprint, Recent { shape, uses: 0 });
        shape
    }

    /// Numbers every node and gives the number of the whole sequence.
    fn describe(
        &mut self,
        lane: &HeldLane<'_>,
        instance: &Instance,
        layout: &TensorLayout,
        nodes: &[*const u8],
    ) -> u32 {
        if self.remembered.len() + nodes.len() > MOST_REMEMBERED {
            self.by_address.clear();
            self.remembered.clear();
        }
        self.pass = self.pass.wrapping_add(1);
        self.ids.clear();
        memory::made_room(self.ids.try_reserve(nodes.len()));
        memory::made_room(self.remembered.try_reserve(nodes.len()));
        memory::made_room(self.by_address.try_reserve(nodes.len()));
        let mut sequence = mix(0, nodes.len() as u64);
        let mut same_order = true;
        for (position, &node) in (0_u32..).zip(nodes) {
            // SAFETY: a node of a graph that ggml is computing, of the copy of
            // ggml the layout was probed from.
            let tensor = unsafe { Tensor::new(node, layout) };
            let known = self.recall(instance, tensor, position, &mut same_order);
            let id = known.unwrap_or_else(|| self.learn(lane, instance, tensor, position, layout));
            self.ids.push(id);
            sequence = mix(sequence, u64::from(id));
        }
        fault_point!();
        if self.last_shape.0 != sequence {
            let shape = lane.recorder.interner().shape(lane, sequence, &self.ids);
            self.last_shape = (sequence, shape);
        }
        self.last_shape.1
    }

    /// The node's number, if nothing about it has changed. Sources are counted
    /// back by position, so one node at another position invalidates all later ones.
    #[inline(always)]
    fn recall(
        &mut self,
        instance: &Instance,
        tensor: Tensor<'_>,
        position: u32,
        same_order: &mut bool,
    ) -> Option<u32> {
        // Nodes are remembered in the order they were met: try the next first.
        let next = self.last_recalled.wrapping_add(1);
        let index = match self.remembered.get(next as usize) {
            Some(seen) if seen.address == tensor.address() => next,
            _ => *self.by_address.get(&tensor.address())?,
        };
        self.last_recalled = index;
        let pass = self.pass;
        let seen = &mut self.remembered[index as usize];
        if seen.position != position {
            *same_order = false;
        }
        let head = tensor.head();
        let name = tensor.name_field();
        let same = *same_order
            && seen.instance == instance.id
            && seen.head.get(..head.len()) == Some(head)
            && name.first_chunk() == Some(&seen.name)
            && seen.leaves == leaves(tensor, seen.sources, seen.made_in_graph);
        if !same {
            return None;
        }
        seen.pass = pass;
        Some(seen.node)
    }

    #[cold]
    fn learn(
        &mut self,
        lane: &HeldLane<'_>,
        instance: &Instance,
        tensor: Tensor<'_>,
        position: u32,
        layout: &TensorLayout,
    ) -> u32 {
        let sources = self.sources(tensor, position, layout);
        let node = node::number(lane, instance, tensor, &sources);
        let made_in_graph = sources
            .iter()
            .filter(|(source, _)| source.nodes_back != 0)
            .fold(0, |bits, (source, _)| bits | 1 << source.slot);
        let n_slots = sources.last().map_or(0, |(source, _)| source.slot as u8 + 1);
        let mut remembered = Remembered {
            address: tensor.address(),
            node,
            instance: instance.id,
            pass: self.pass,
            position,
            sources: n_slots,
            made_in_graph,
            leaves: leaves(tensor, n_slots, made_in_graph),
            head: [0; HEAD_BYTES],
            name: [0; NAME_BYTES],
        };
        let (head, name) = (tensor.head(), tensor.name_field());
        // A head that is longer than this is never found equal, so the node is learnt anew each
        // time.
        if head.len() <= HEAD_BYTES {
            remembered.head[..head.len()].copy_from_slice(head);
        }
        if let Some(name) = name.first_chunk() {
            remembered.name = *name;
        }
        let next = self.remembered.len() as u32;
        let index = *self.by_address.entry(tensor.address()).or_insert(next);
        fault_point!();
        if index == next {
            self.remembered.push(remembered);
        } else {
            self.remembered[index as usize] = remembered;
        }
        node
    }

    /// The sources as they are described, each with its name.
    fn sources<'t>(
        &self,
        tensor: Tensor<'t>,
        position: u32,
        layout: &TensorLayout,
    ) -> Vec<(Source, &'t [u8])> {
        let slots = layout.max_src.min(layout::MAX_SOURCES);
        let present = (0..slots).filter_map(|slot| Some((slot, tensor.source(slot)?)));
        let described = present.map(|(slot, source)| {
            let made_at = self
                .by_address
                .get(&source.address())
                .map(|&index| &self.remembered[index as usize])
                .filter(|seen| seen.pass == self.pass && seen.position < position);
            let source_record = Source {
                type_id: source.type_id(),
                name: 0,
                nodes_back: made_at.map_or(0, |seen| position - seen.position),
                slot: slot as u32,
                ne: source.ne(),
                nb: source.nb(),
            };
            (source_record, source.name())
        });
        described.collect()
    }

    /// The numbers of a shape's nodes, if it is the one described last.
    pub(super) fn nodes_of(&self, shape: u32) -> &[u32] {
        if self.last_shape.1 == shape { &self.ids } else { &[] }
    }

    /// Whether the shape's fusions are written: they do not change from run to
    /// run, so only the first run of a shape need look.
    pub(crate) fn fusions_are_written(&self, shape: u32) -> bool {
        self.fusions_written == shape
    }

    pub(crate) fn set_fusions_written(&mut self, shape: u32) {
        self.fusions_written = shape;
    }

    /// Writes once per graph shape which nodes ran together with this one.
    pub(crate) fn note_fusion(
        &mut self,
        lane: &HeldLane<'_>,
        shape: u32,
        position: u32,
        fused: u32,
    ) {
        let key = mix(u64::from(shape) << 32 | u64::from(position), u64::from(fused));
        if self.fusions.len() >= MOST_REMEMBERED {
            self.fusions.clear();
        }
        memory::made_room(self.fusions.try_reserve(1));
        if !self.fusions.insert(key) {
            return;
        }
        fault_point!();
        let members = (0..32).filter(|&distance| distance == 0 || fused >> distance & 1 == 1);
        let members: Vec<u32> = members.map(|distance| position + distance).collect();
        let count = members.len() as u32;
        let head = layout::Fusion { shape, position, count, ..Default::default() };
        let tail: Vec<u8> = members.iter().flat_map(|member| member.to_le_bytes()).collect();
        lane.define_long(&mut head.encode(), &tail);
    }
}

/// A digest of which tensors are computed, in which order, with which ops, types,
/// shapes and sources. The rest (further parameters, strides, names) follows from
/// these in a program that builds its graph the same way each time.
fn fingerprint(layout: &TensorLayout, nodes: &[*const u8]) -> u64 {
    let mut state = nodes.len() as u64;
    for &node in nodes {
        // SAFETY: a node of a graph that ggml is computing, of the copy of ggml
        // the layout was probed from.
        let tensor = unsafe { Tensor::new(node, layout) };
        state = (state ^ tensor.quick_sum()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 29;
    }
    state
}

/// A digest of the sources that are not nodes of the graph: weights and inputs
/// may change their shape without the node's own bytes changing.
#[inline(always)]
fn leaves(tensor: Tensor<'_>, slots: u8, made_in_graph: u16) -> u64 {
    let mut state = 0;
    // Bits of the slots to look at, so that the common node skips the loop.
    let mut left = !made_in_graph & ((1_u32 << slots) - 1) as u16;
    while left != 0 {
        let slot = left.trailing_zeros() as usize;
        left &= left - 1;
        if let Some(source) = tensor.source(slot) {
            state = mix(state, source.shape_sum());
        }
    }
    state
}
