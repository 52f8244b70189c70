//! Texts, nodes and graph shapes get a number and are written once. Two of them are equal if their
//! 64-bit digests are: with a million distinct nodes, the odds of one clash are below one in ten
//! million.

use ggprof_spool::layout::{self, LossCounter};

use super::Recorder;
use super::definitions::Definitions;
use super::lane::HeldLane;
use crate::digest::{NumberMap, NumberSet, digest};
use crate::fault::fault_point;
use crate::memory;

/// A program that keeps making new nodes must not use more and more memory. After half as many as this, a
/// new epoch is due, which forgets all numbers but those of lasting objects.
const MOST_ENTRIES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Numbers,
    nodes: Numbers,
    shapes: Numbers,
    types: NumberSet<(u32, u32)>,
    /// Nodes, each with the backend that computed it, whose placement is written already.
    placements: NumberSet<(u32, u32)>,
    /// Digests of the kinds of memory; they last, so their places are their numbers.
    memory_kinds: Vec<u64>,
    /// Texts that lasting descriptions refer to, with their numbers.
    lasting: Vec<(u32, Box<[u8]>)>,
}

/// Numbers by digest. A number is never given again, whatever was forgotten since.
#[derive(Debug, Default)]
struct Numbers {
    known: NumberMap<u64, u32>,
    last: u32,
}

impl Interner {
    /// The number of a text, written if it is new. Empty text is number 0.
    pub(crate) fn text(&mut self, lane: &HeldLane<'_>, text: &[u8]) -> u32 {
        if text.is_empty() {
            return layout::NONE;
        }
        let text = &text[..text.len().min(layout::MAX_TEXT_BYTES)];
        let (id, new) = self.texts.number(digest(text), lane);
        if new {
            fault_point!();
            lane.define_long(&mut text_head(id, text), text);
        }
        id
    }

    /// The number of a text that a lasting description refers to.
    pub(crate) fn lasting_text(&mut self, lane: &HeldLane<'_>, text: &[u8]) -> u32 {
        let id = self.text(lane, text);
        fault_point!();
        if id != layout::NONE && self.lasting.iter().all(|(known, _)| *known != id) {
            let text = &text[..text.len().min(layout::MAX_TEXT_BYTES)];
            self.lasting.push((id, text.into()));
        }
        id
    }

    /// For the recording of a forked child: what lasts keeps its numbers, and is written when
    /// the first epoch begins.
    pub(crate) fn heir(&self) -> Interner {
        let texts = Numbers { last: self.texts.last, ..Numbers::default() };
        let (lasting, memory_kinds) = (self.lasting.clone(), self.memory_kinds.clone());
        Interner { texts, lasting, memory_kinds, ..Interner::default() }
    }

    /// Forgets everything but what lasts, and writes that again.
    pub(crate) fn begin_epoch(&mut self, recorder: &Recorder, definitions: &mut Definitions) {
        for numbers in [&mut self.texts, &mut self.nodes, &mut self.shapes] {
            numbers.known = NumberMap::default();
        }
        self.types = NumberSet::default();
        self.placements = NumberSet::default();
        for (id, text) in &self.lasting {
            self.texts.known.insert(digest(text), *id);
            definitions.put_long(recorder, &mut text_head(*id, text), text);
        }
    }

    /// The number of a node and whether it must be described now.
    pub(crate) fn node(&mut self, lane: &HeldLane<'_>, digest: u64) -> (u32, bool) {
        self.nodes.number(digest, lane)
    }

    /// The number of a sequence of nodes, written if it is new.
    pub(crate) fn shape(&mut self, lane: &HeldLane<'_>, digest: u64, nodes: &[u32]) -> u32 {
        let (shape, new) = self.shapes.number(digest, lane);
        if new {
            fault_point!();
            write_shape(lane, shape, nodes);
        }
        shape
    }

    /// Whether a type of an instance still has to be written.
    pub(crate) fn is_new_type(&mut self, instance: u32, type_id: u32) -> bool {
        memory::made_room(self.types.try_reserve(1));
        self.types.insert((instance, type_id))
    }

    /// Whether it still has to be written where a node that a backend computed has its tensors.
    pub(crate) fn is_new_placement(&mut self, node: u32, backend: u32) -> bool {
        memory::made_room(self.placements.try_reserve(1));
        node != layout::NONE && self.placements.insert((node, backend))
    }

    /// The number of a kind of memory and whether it must be described now. There are few;
    /// those beyond what a number holds have none.
    pub(crate) fn memory_kind(&mut self, digest: u64) -> (u16, bool) {
        let known = self.memory_kinds.iter().position(|&known| known == digest);
        let place = known.unwrap_or(self.memory_kinds.len());
        let Ok(number) = u16::try_from(place + 1) else { return (0, false) };
        if known.is_none() {
            self.memory_kinds.push(digest);
        }
        (number, known.is_none())
    }
}

impl Numbers {
    /// The number for a digest, and whether it is new.
    fn number(&mut self, digest: u64, lane: &HeldLane<'_>) -> (u32, bool) {
        if let Some(&known) = self.known.get(&digest) {
            return (known, false);
        }
        if self.known.len() >= MOST_ENTRIES {
            lane.recorder.lose(LossCounter::InternerFull, 1);
            return (layout::NONE, false);
        }
        if self.known.len() == MOST_ENTRIES / 2 {
            lane.recorder.set_epoch_due();
        }
        // After 2³² the numbers start again; the first ones are no longer in use.
        self.last = self.last.checked_add(1).unwrap_or(1);
        memory::made_room(self.known.try_reserve(1));
        self.known.insert(digest, self.last);
        (self.last, true)
    }
}

fn text_head(id: u32, text: &[u8]) -> [u8; layout::Text::BYTES] {
    layout::Text { id, bytes: text.len() as u32, ..Default::default() }.encode()
}

fn write_shape(lane: &HeldLane<'_>, shape: u32, nodes: &[u32]) {
    for (part, nodes) in nodes.chunks(layout::SHAPE_PART_NODES).enumerate() {
        let first = (part * layout::SHAPE_PART_NODES) as u32;
        let count = nodes.len() as u32;
        let head = layout::GraphShape { shape, first, count, ..Default::default() };
        let tail: Vec<u8> = nodes.iter().flat_map(|node| node.to_le_bytes()).collect();
        lane.define_long(&mut head.encode(), &tail);
    }
}
