//! Texts, nodes and graph shapes get a number and are written once. Equal means
//! an equal 64-bit digest: with a million distinct nodes the odds of one clash
//! are below one in ten million.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use ggprof_spool::layout::{self, LossKind};

use super::lane::HeldLane;

/// A program that makes new nodes for ever must not eat memory for ever.
const MOST_ENTRIES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Numbers,
    nodes: Numbers,
    shapes: Numbers,
    types: Numbers,
}

type Numbers = HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>;

impl Interner {
    /// The number of a text, written if it is new. Empty text is number 0.
    pub(crate) fn text(&mut self, lane: &HeldLane<'_>, text: &[u8]) -> u32 {
        if text.is_empty() {
            return layout::NONE;
        }
        let text = &text[..text.len().min(layout::MAX_TEXT_BYTES)];
        let (id, new) = number(&mut self.texts, digest(text), lane);
        if new {
            let head = layout::Text { id, bytes: text.len() as u32, ..Default::default() };
            lane.put_long(&mut head.encode(), text);
        }
        id
    }

    /// The number of a node and whether it must be described now.
    pub(crate) fn node(&mut self, lane: &HeldLane<'_>, digest: u64) -> (u32, bool) {
        number(&mut self.nodes, digest, lane)
    }

    /// The number of a sequence of nodes, written if it is new.
    pub(crate) fn shape(&mut self, lane: &HeldLane<'_>, digest: u64, nodes: &[u32]) -> u32 {
        let (shape, new) = number(&mut self.shapes, digest, lane);
        if new {
            write_shape(lane, shape, nodes);
        }
        shape
    }

    /// Whether a type of an instance still has to be written.
    pub(crate) fn is_new_type(&mut self, instance: u32, type_id: u32) -> bool {
        let next = self.types.len() as u32;
        self.types.insert(u64::from(instance) << 32 | u64::from(type_id), next).is_none()
    }
}

fn number(numbers: &mut Numbers, digest: u64, lane: &HeldLane<'_>) -> (u32, bool) {
    if let Some(&known) = numbers.get(&digest) {
        return (known, false);
    }
    if numbers.len() >= MOST_ENTRIES {
        lane.recorder.lose(LossKind::InternerFull, 1);
        return (layout::NONE, false);
    }
    let fresh = numbers.len() as u32 + 1;
    numbers.insert(digest, fresh);
    (fresh, true)
}

fn write_shape(lane: &HeldLane<'_>, shape: u32, nodes: &[u32]) {
    let total = nodes.len() as u32;
    for (part, nodes) in nodes.chunks(layout::SHAPE_PART_NODES).enumerate() {
        let first = (part * layout::SHAPE_PART_NODES) as u32;
        let count = nodes.len() as u32;
        let head = layout::GraphShape { shape, first, count, total, ..Default::default() };
        let tail: Vec<u8> = nodes.iter().flat_map(|node| node.to_le_bytes()).collect();
        lane.put_long(&mut head.encode(), &tail);
    }
}

/// A 64-bit digest of bytes: multiply and fold, eight bytes at a time.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut state = mix(0x243f_6a88_85a3_08d3, bytes.len() as u64);
    for word in words.by_ref() {
        state = mix(state, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(state, u64::from_le_bytes(last))
}

#[inline(always)]
pub(crate) fn mix(state: u64, word: u64) -> u64 {
    let wide =
        u128::from(state ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    (wide as u64) ^ ((wide >> 64) as u64) ^ state.rotate_left(23)
}

/// The keys are digests: hashing them again gains nothing.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = digest(bytes);
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
