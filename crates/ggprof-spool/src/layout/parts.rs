//! What stands several times inside a record, behind its fields.

use super::field::Field;

/// What a backend says of a node, inside its [`Placement`](super::Placement) record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub backend: u32,
    /// `ANSWER_*`.
    pub says: u32,
}

pub const ANSWER_BYTES: usize = 8;

impl Answer {
    pub fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut out = [0; ANSWER_BYTES];
        [self.backend, self.says].put(&mut out);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [backend, says] = Field::take(bytes)?;
        Some(Answer { backend, says })
    }
}

/// How often an expert was chosen, inside an [`ExpertUse`](super::ExpertUse) record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpertCount {
    pub expert: u16,
    pub uses: u16,
}

pub const EXPERT_COUNT_BYTES: usize = 4;

impl ExpertCount {
    pub fn encode(&self) -> [u8; EXPERT_COUNT_BYTES] {
        let mut out = [0; EXPERT_COUNT_BYTES];
        [self.expert, self.uses].put(&mut out);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [expert, uses] = Field::take(bytes)?;
        Some(ExpertCount { expert, uses })
    }
}

/// One sequence of a batch, inside its [`BatchBegin`](super::BatchBegin) record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSequence {
    pub sequence: i32,
    /// Positions of its first and last token in the batch; -1 where the program gave none.
    pub first: i32,
    pub last: i32,
    pub tokens: u32,
    /// Tokens that results were asked for.
    pub outputs: u32,
}

pub const BATCH_SEQUENCE_BYTES: usize = 20;
const _: () = assert!(size_of::<BatchSequence>() == BATCH_SEQUENCE_BYTES);

impl BatchSequence {
    pub fn encode(&self) -> [u8; BATCH_SEQUENCE_BYTES] {
        let mut out = [0; BATCH_SEQUENCE_BYTES];
        [self.sequence, self.first, self.last].put(&mut out[..12]);
        [self.tokens, self.outputs].put(&mut out[12..]);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [sequence, first, last] = Field::take(bytes.get(..12)?)?;
        let [tokens, outputs] = Field::take(bytes.get(12..BATCH_SEQUENCE_BYTES)?)?;
        Some(BatchSequence { sequence, first, last, tokens, outputs })
    }
}

/// One source of a node, inside its [`Node`](super::Node) record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub type_id: u32,
    pub name: u32,
    /// How many nodes back in the same graph it was computed; 0: not in it.
    pub nodes_back: u32,
    /// Slot number in the node's `src[]`: slots may be empty in between.
    pub slot: u32,
    pub ne: [i64; 4],
    pub nb: [u64; 4],
}

pub const SOURCE_BYTES: usize = 80;
const _: () = assert!(size_of::<Source>() == SOURCE_BYTES);

impl Source {
    pub fn encode(&self) -> [u8; SOURCE_BYTES] {
        let mut out = [0; SOURCE_BYTES];
        [self.type_id, self.name, self.nodes_back, self.slot].put(&mut out[..16]);
        self.ne.put(&mut out[16..48]);
        self.nb.put(&mut out[48..]);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [type_id, name, nodes_back, slot] = Field::take(bytes.get(..16)?)?;
        let (ne, nb) = (Field::take(bytes.get(16..48)?)?, Field::take(bytes.get(48..80)?)?);
        Some(Source { type_id, name, nodes_back, slot, ne, nb })
    }
}
