//! The recording of a program that is still running: its state, starting and stopping it, and
//! copying it. All through plain reads and writes of the file, which the kernel keeps consistent
//! with the agent's mapping; the program notices nothing.

#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::layout::{self, BLOCK_HEAD_BYTES, Control, HEADER_BYTES, UNIT, header as at};
use crate::positioned;
use crate::reader::{self, Header, NotASpool, Spool};

/// How often a block is read again that changes its owner meanwhile.
const MOST_TRIES: usize = 8;

/// A recording that may be written to.
#[derive(Debug)]
pub struct LiveSpool {
    file: File,
}

impl LiveSpool {
    pub fn open(path: &Path) -> io::Result<LiveSpool> {
        Ok(LiveSpool { file: OpenOptions::new().read(true).write(true).open(path)? })
    }

    pub fn header(&self) -> io::Result<Header> {
        let page = self.page()?;
        Ok(Spool::open(&page).map_err(not_ready)?.header())
    }

    /// How long the file is now.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// How many bytes the file lacks for the agent to find its next chunk there. None while it
    /// wants none, or where the header is not of this file.
    pub fn bytes_to_append(&self) -> io::Result<u64> {
        let header = self.header()?;
        let ended = header.stop_reason != 0 || header.end_ticks != 0;
        let bytes_of = |blocks: u64| {
            blocks.saturating_mul(layout::BLOCK_BYTES as u64).saturating_add(HEADER_BYTES as u64)
        };
        let bytes = self.bytes()?;
        if !header.records() || ended || bytes < bytes_of(header.reserved_blocks) {
            return Ok(0);
        }
        let most = if header.most_blocks == 0 { u64::MAX } else { header.most_blocks };
        let wanted = header.reserved_blocks.saturating_add(layout::CHUNK_BLOCKS as u64).min(most);
        Ok(bytes_of(wanted).saturating_sub(bytes))
    }

    /// Asks the agent to record or not, from the next graph run on. When it was asked to stop
    /// and [`Header::active`] is 0, nothing is written any more.
    pub fn ask(&self, control: Control) -> io::Result<()> {
        positioned::write_all_at(&self.file, &(control as u64).to_le_bytes(), at::CONTROL as u64)
    }

    /// Gives the recording as it is now, piece by piece: where in a file of its own the bytes
    /// belong, and the bytes. What is not given is zero. The header comes last.
    pub fn snapshot(&self, mut put: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        let in_file = self.bytes()? / layout::BLOCK_BYTES as u64;
        let reserved = self.header()?.reserved_blocks.min(in_file);
        let mut block = vec![0; layout::BLOCK_BYTES];
        let mut used = 0;
        // What events refer to was written before them: it is copied after them.
        for definitions in [false, true] {
            for index in 0..reserved {
                let offset = offset_of(index);
                let head = self.head(offset)?;
                let wanted = (lane(&head) == layout::DEFINITIONS_LANE) == definitions;
                if wanted && self.copy_block(offset, &mut block)? {
                    put(offset, &block)?;
                    used = used.max(index + 1);
                }
            }
        }
        let mut page = self.page()?;
        let options = u32::from_le_bytes(std::array::from_fn(|i| page[at::OPTIONS + i]));
        let options = options | layout::OPTION_SNAPSHOT;
        page[at::OPTIONS..][..4].copy_from_slice(&options.to_le_bytes());
        page[at::RESERVED_BLOCKS..][..8].copy_from_slice(&u64::to_le_bytes(used));
        put(0, &page)
    }

    /// How many blocks the file has room for.
    pub(crate) fn whole_blocks(&self) -> io::Result<u64> {
        Ok(self.bytes()?.saturating_sub(HEADER_BYTES as u64) / layout::BLOCK_BYTES as u64)
    }

    /// The lane of a block, and its place there; `None` while it has none.
    pub(crate) fn owner(&self, index: u64) -> io::Result<Option<(u32, u32)>> {
        let head = self.head(offset_of(index))?;
        Ok(reader::owner(&head, index as usize))
    }

    /// Reads the records of a block from a place on, as far as they are whole; the place of the next one.
    /// `None` if the block belongs to another lane or place by now. Nothing is added to one that is full.
    pub(crate) fn new_records(
        &self,
        (index, lane, sequence): (u64, u32, u32),
        at: usize,
        is_full: bool,
        records: &mut Vec<u8>,
    ) -> io::Result<Option<usize>> {
        let offset = offset_of(index) + at as u64;
        // What another block left in it is written over.
        records.resize(layout::BLOCK_BYTES - at, 0);
        positioned::read_exact_at(&self.file, records, offset)?;
        records.truncate(reader::whole_records(records));
        if !is_full {
            // What is appended meanwhile may be seen half: what was whole before is whole now.
            positioned::read_exact_at(&self.file, records, offset)?;
        }
        let is_same = self.owner(index)? == Some((lane, sequence));
        Ok(is_same.then_some(at + records.len()))
    }

    fn page(&self) -> io::Result<Vec<u8>> {
        let mut page = vec![0; HEADER_BYTES];
        positioned::read_exact_at(&self.file, &mut page, 0)?;
        Ok(page)
    }

    fn head(&self, offset: u64) -> io::Result<[u8; BLOCK_HEAD_BYTES]> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        positioned::read_exact_at(&self.file, &mut head, offset)?;
        Ok(head)
    }

    /// Copies one block whole. What is appended meanwhile may be seen half: so it is read
    /// twice, and of the second copy only what the first one had is kept. False for a block
    /// that is not in use, or used again all the time.
    fn copy_block(&self, offset: u64, copy: &mut [u8]) -> io::Result<bool> {
        for _ in 0..MOST_TRIES {
            let head = self.head(offset)?;
            positioned::read_exact_at(&self.file, copy, offset)?;
            let written = reader::committed_bytes(copy);
            positioned::read_exact_at(&self.file, copy, offset)?;
            if head == self.head(offset)? && head == copy[..BLOCK_HEAD_BYTES] {
                copy[written..].fill(0);
                return Ok(head != [0; BLOCK_HEAD_BYTES]);
            }
        }
        Ok(false)
    }
}

fn offset_of(block: u64) -> u64 {
    HEADER_BYTES as u64 + block * layout::BLOCK_BYTES as u64
}

fn lane(head: &[u8; BLOCK_HEAD_BYTES]) -> u32 {
    u32::from_le_bytes([head[4], head[5], head[6], head[7]])
}

fn not_ready(why: NotASpool) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

const _: () = assert!(BLOCK_HEAD_BYTES.is_multiple_of(UNIT));
