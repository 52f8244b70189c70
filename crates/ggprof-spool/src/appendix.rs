//! Blocks behind those of the agent, for what others know of the program's run. They are made for a
//! copy of the recording: the file itself is the agent's for as long as its process lives.

#![forbid(unsafe_code)]

use crate::layout::{
    self, APPENDED_LANE, BLOCK_BYTES, BLOCK_HEAD_BYTES, BLOCK_MAGIC, FIRST_LONG_KIND, HEADER_BYTES,
};

#[derive(Debug)]
pub struct Appendix {
    /// Zeros up to the end of the last block of the file, then blocks.
    bytes: Vec<u8>,
    /// Where the block begins that is being filled; `None` before the first.
    block: Option<usize>,
    next_index: u32,
    blocks: u32,
}

impl Appendix {
    /// For a file of this length whose header promises so many blocks. `None` where it lacks some of
    /// them: that would not be seen any more.
    pub fn behind(reserved_blocks: u64, file_bytes: u64) -> Option<Appendix> {
        let block_bytes = BLOCK_BYTES as u64;
        let in_blocks = file_bytes.checked_sub(HEADER_BYTES as u64)?;
        if in_blocks / block_bytes < reserved_blocks {
            return None;
        }
        let next_index = u32::try_from(in_blocks.div_ceil(block_bytes)).ok()?;
        let missing = u64::from(next_index) * block_bytes - in_blocks;
        Some(Appendix { bytes: vec![0; missing as usize], block: None, next_index, blocks: 0 })
    }

    /// Adds a record with all its bytes, of either kind.
    pub fn put(&mut self, record: &[u8]) {
        let units = layout::units_for(record.len());
        let bytes = units * layout::UNIT;
        let used = self.block.map_or(BLOCK_BYTES, |block| self.bytes.len() - block);
        if used + bytes > BLOCK_BYTES {
            self.begin_block();
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.bytes.resize(at + bytes, 0);
        if record.first().is_some_and(|&kind| kind >= FIRST_LONG_KIND) {
            self.bytes[at + 2..at + 4].copy_from_slice(&(units as u16).to_le_bytes());
        }
    }

    /// How long it is by now.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn finish(self) -> Vec<u8> {
        // Zeros alone say nothing.
        if self.block.is_some() { self.bytes } else { Vec::new() }
    }

    fn begin_block(&mut self) {
        if let Some(block) = self.block {
            self.bytes.resize(block + BLOCK_BYTES, 0);
        }
        let start = self.bytes.len();
        let (index, sequence) = (self.next_index, self.blocks + 1);
        let check = layout::block_check(APPENDED_LANE, sequence, index);
        for word in [BLOCK_MAGIC, APPENDED_LANE, sequence, index, check] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.resize(start + BLOCK_HEAD_BYTES, 0);
        (self.block, self.next_index, self.blocks) = (Some(start), index + 1, sequence);
    }
}
