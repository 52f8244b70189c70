//! Graph nodes; each distinct node is described once.
//!
//! A node is a *signature* (what is computed, on which shapes and types) and the name of the tensor
//! it computes. The layers of a model share signatures, so the expensive part is kept once per
//! shape, and "all calls of this shape" is a comparison of two numbers.

use super::copy_direction::CopyDirection;
use super::strings::StringId;
use super::tensor::{Source, Tensor};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignatureId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    pub signature: SignatureId,
    pub tensor_name: Option<StringId>,
    source_names: SourceNamesId,
    members: MembersId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SourceNamesId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MembersId(u32);

/// What an op computes, whichever tensor it is computed for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Signature {
    pub op: StringId,
    /// Where its data goes, if it is a copy.
    pub copied: Option<CopyDirection>,
    /// ggml's number of the unary or gated op behind `UNARY` and `GLU`; -1 for none.
    pub sub_op: i32,
    /// Its name ("SILU", "SWIGLU"); the numbers moved between ggml versions.
    pub sub_op_name: Option<StringId>,
    /// All ops of a fusion ("RMS_NORM+MUL"); for a copy, the name of the tensor it moves.
    pub extra: Option<StringId>,
    pub output: Tensor,
    pub sources: Box<[Source]>,
    pub op_params: [i32; 16],
    /// The nodes that a fusion computes, the one described here first. Empty if it computes one
    /// node, or if the recording names the ops only.
    pub members: Box<[Member]>,
}

/// One of the nodes that were computed together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// What it computes, as if it were alone.
    pub signature: SignatureId,
    /// Where each of its sources comes from.
    pub origins: Box<[Origin]>,
    /// Its result is written to memory: nodes outside of the fusion use it, or none inside does.
    pub is_stored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was there before. Sources of one fusion with the same number are the same tensor.
    Outside(u8),
    /// The member at this place computes it.
    Member(u8),
}

impl Signature {
    /// The op of an event that stands for all ops of a split, where they were not told apart.
    /// Its output is the last op's, its source the first one's output.
    pub const WHOLE_SPLIT: &str = "SPLIT";

    /// An op of which nothing but the name is known.
    pub fn of_op(op: StringId) -> Self {
        Self {
            op,
            copied: None,
            sub_op: -1,
            sub_op_name: None,
            extra: None,
            output: Tensor::UNKNOWN,
            sources: Box::default(),
            op_params: [0; 16],
            members: Box::default(),
        }
    }
}

#[derive(Debug, Default)]
pub struct NodeTable {
    nodes: Interned<Node>,
    signatures: Interned<Signature>,
    source_names: Interned<Box<[StringId]>>,
    members: Interned<Box<[NodeId]>>,
}

impl NodeTable {
    /// Adds a node, or finds it. `source_names` are the names of the source tensors, in the
    /// order of the signature's sources; empty where the recording does not give them.
    pub fn intern(
        &mut self,
        signature: Signature,
        tensor_name: Option<StringId>,
        source_names: &[StringId],
    ) -> NodeId {
        self.intern_fusion(signature, tensor_name, source_names, &[])
    }

    /// The same for a fusion, whose `members` are in the order of the signature's.
    pub fn intern_fusion(
        &mut self,
        signature: Signature,
        tensor_name: Option<StringId>,
        source_names: &[StringId],
        members: &[NodeId],
    ) -> NodeId {
        let signature = SignatureId(self.signatures.intern(signature));
        let source_names = SourceNamesId(self.source_names.intern(source_names.into()));
        let members = MembersId(self.members.intern(members.into()));
        NodeId(self.nodes.intern(Node { signature, tensor_name, source_names, members }))
    }

    /// The nodes that a fusion computes; empty for a single node.
    pub(crate) fn intern_signature(&mut self, signature: Signature) -> SignatureId {
        SignatureId(self.signatures.intern(signature))
    }

    #[inline]
    pub fn members(&self, id: NodeId) -> &[NodeId] {
        &self.members.items[self.node(id).members.0 as usize]
    }

    #[inline]
    pub fn source_names(&self, id: NodeId) -> &[StringId] {
        &self.source_names.items[self.node(id).source_names.0 as usize]
    }

    #[inline]
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes.items[id.0 as usize]
    }

    #[inline]
    pub fn signature(&self, id: SignatureId) -> &Signature {
        &self.signatures.items[id.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.nodes.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.len() as u32).map(NodeId)
    }

    pub fn signature_count(&self) -> usize {
        self.signatures.items.len()
    }

    pub fn signatures(&self) -> impl Iterator<Item = (SignatureId, &Signature)> {
        (0u32..).map(SignatureId).zip(&self.signatures.items)
    }
}

/// A list without duplicates whose items are named by their position.
#[derive(Debug)]
struct Interned<T> {
    items: Vec<T>,
    lookup: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { items: Vec::new(), lookup: HashTable::new(), hasher: Default::default() }
    }
}

impl<T: Hash + Eq> Interned<T> {
    fn intern(&mut self, item: T) -> u32 {
        let Self { items, lookup, hasher } = self;
        let hash = hasher.hash_one(&item);
        if let Some(&at) = lookup.find(hash, |&at| items[at as usize] == item) {
            return at;
        }
        let at = items.len() as u32;
        items.push(item);
        lookup.insert_unique(hash, at, |&at| hasher.hash_one(&items[at as usize]));
        at
    }
}
