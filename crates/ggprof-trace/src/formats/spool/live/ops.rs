//! Ops between two looks, of which there may be millions a second: what sums need of each, and nothing
//! else. They are read before the splits that they are part of, and find their nodes later.

use crate::model::{BackendIndex, NodeId};
use ggprof_spool::layout::{self, UNIT};

/// Ops as they were read, those of a split one behind the other.
#[derive(Debug, Default)]
pub(super) struct ReadOps {
    /// Split, and how many of its ops follow.
    pub(super) splits: Vec<(u32, usize)>,
    pub(super) ops: Vec<ReadOp>,
    /// Where each one begins after its split does, of those that have the device for themselves.
    pub(super) serialized: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReadOp {
    pub(super) position: u32,
    /// Ticks, shifted; and the op's flags.
    duration: u32,
    flags: u8,
}

impl ReadOp {
    pub(super) fn is_fused(self) -> bool {
        self.flags & layout::OP_FUSED != 0
    }

    pub(super) fn is_serialized(self) -> bool {
        self.flags & 3 == layout::MEASURED_SERIALIZED
    }

    pub(super) fn ticks(self) -> u64 {
        u64::from(self.duration) << (self.flags >> layout::OP_SHIFT_BIT)
    }
}

impl ReadOps {
    /// Takes the bytes of ops.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.ops.reserve(bytes.len() / UNIT);
        for raw in bytes.chunks_exact(UNIT).filter_map(layout::OpEvent::decode) {
            match self.splits.last_mut() {
                Some((split, count)) if *split == raw.split => *count += 1,
                _ => self.splits.push((raw.split, 1)),
            }
            let layout::OpEvent { position, duration, flags, .. } = raw;
            let op = ReadOp { position, duration, flags };
            if op.is_serialized() {
                self.serialized.push(u64::from(raw.start) << (flags >> layout::OP_SHIFT_BIT));
            }
            self.ops.push(op);
        }
    }

    /// The memory stays for the next look, which takes about as much; the first one may take far more.
    pub(super) fn clear(&mut self) {
        let usual = 4 * self.ops.len();
        self.splits.clear();
        self.ops.clear();
        self.ops.shrink_to(usual);
        self.serialized.clear();
    }
}

/// Ops of known nodes, those of a split one behind the other.
#[derive(Debug, Default)]
pub struct LiveOps {
    splits: Vec<(u32, BackendIndex, usize)>,
    ops: Vec<(NodeId, u64)>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveOp {
    /// Of libllama that it was part of; 0 of none.
    pub call: u32,
    pub node: NodeId,
    pub backend: BackendIndex,
    pub duration_ns: u64,
}

impl LiveOps {
    pub(super) fn with_room(ops: usize) -> Self {
        Self { splits: Vec::new(), ops: Vec::with_capacity(ops) }
    }

    #[inline]
    pub fn push(&mut self, op: LiveOp) {
        let LiveOp { call, node, backend, duration_ns } = op;
        match self.splits.last_mut() {
            Some(last) if (last.0, last.1) == (call, backend) => last.2 += 1,
            _ => self.splits.push((call, backend, 1)),
        }
        self.ops.push((node, duration_ns));
    }

    /// Those of one call and backend that come one after the other: call, backend, and of each its node and
    /// nanoseconds.
    pub fn together(&self) -> impl Iterator<Item = (u32, BackendIndex, &[(NodeId, u64)])> {
        let mut rest = &self.ops[..];
        self.splits.iter().map(move |&(call, backend, count)| {
            let (ops, behind) = rest.split_at(count);
            rest = behind;
            (call, backend, ops)
        })
    }
}

impl FromIterator<LiveOp> for LiveOps {
    fn from_iter<I: IntoIterator<Item = LiveOp>>(ops: I) -> Self {
        let mut all = Self::default();
        ops.into_iter().for_each(|op| all.push(op));
        all
    }
}
