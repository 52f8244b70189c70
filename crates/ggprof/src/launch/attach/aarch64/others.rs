//! The registers of vectors and of floating point, as the kernel tells them of a stopped thread.

use crate::launch::attach::tracee::Tracee;
use std::io;

/// The kernel's numbers for kinds of registers: `NT_PRFPREG`, `NT_ARM_SVE`, `NT_ARM_SSVE`, `NT_ARM_GCS`.
const VECTORS: usize = 2;
const LONG_VECTORS: usize = 0x405;
const STREAMING_VECTORS: usize = 0x40b;
const SHADOW_STACK: usize = 0x410;

/// In front of long vectors: their length in bytes, and whether the thread has used more of them than
/// the short ones.
pub(super) const HEAD_BYTES: usize = 16;
const LENGTH: usize = 8;
const FLAGS: usize = 12;
const IS_LONG: u8 = 1;

/// The registers of a thread.
#[derive(Debug)]
pub(in crate::launch::attach) struct Others {
    /// 32 vectors of 16 bytes, and two words of state.
    pub(super) vectors: Vec<u8>,
    /// With their head, where the processor has them.
    pub(super) long_vectors: Option<Vec<u8>>,
}

impl Others {
    /// `None` for a thread that could not come back from a call: one that computes in the mode for
    /// matrices, in which functions may not be called, or that has a second stack of return addresses.
    pub(in crate::launch::attach) fn of(tracee: &Tracee) -> io::Result<Option<Others>> {
        // Kernels and processors that do not have them say so by an error.
        let flags = |kind: usize, at: usize| {
            tracee.other_registers(kind).ok().and_then(|state| state.get(at).copied())
        };
        let is_streaming = flags(STREAMING_VECTORS, FLAGS).is_some_and(|it| it & IS_LONG != 0);
        let has_shadow_stack = flags(SHADOW_STACK, 0).is_some_and(|it| it & 1 != 0);
        if is_streaming || has_shadow_stack {
            return Ok(None);
        }
        let vectors = tracee.other_registers(VECTORS)?;
        let long_vectors = tracee.other_registers(LONG_VECTORS).ok();
        Ok(Some(Others { vectors, long_vectors }))
    }

    pub(in crate::launch::attach) fn give_back(&self, tracee: &mut Tracee) -> io::Result<()> {
        match &self.long_vectors {
            Some(long) => tracee.set_other_registers(LONG_VECTORS, long),
            None => tracee.set_other_registers(VECTORS, &self.vectors),
        }
    }

    /// What the thread has in long vectors, and their length; `None` where the short ones are all.
    pub(super) fn used_long_vectors(&self) -> Option<(&[u8], u16)> {
        let (head, vectors) = self.long_vectors.as_ref()?.split_at_checked(HEAD_BYTES)?;
        let length = u16::from_le_bytes([head[LENGTH], head[LENGTH + 1]]);
        // 32 vectors, 16 predicates of an eighth of their length, and one more such for faults.
        let bytes = usize::from(length) * 32 + usize::from(length) / 8 * 17;
        (head[FLAGS] & IS_LONG != 0).then_some((vectors.get(..bytes)?, length))
    }
}
