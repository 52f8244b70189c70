//! The file itself: created once, reserved before it is mapped, grown by chunks.
//!
//! Writing to a mapped page that the disk cannot hold is a SIGBUS in the user's program, so every
//! chunk is reserved first. No descriptor stays open: some programs close all descriptors, and the
//! number of ours might then name a file of theirs. To grow the file, the agent opens it again by
//! its absolute path and checks that it is the same file.
//!
//! The kernel takes some fifty nanoseconds per op to make new pages, as much as everything else,
//! and the program waits for it. So `ggprof run` makes them: it keeps the file one chunk longer
//! than what is used, by appending zeros, and the agent need not reserve what is already there.
//! Without the launcher (`GGML_PROFILE`, or a launcher that was killed), the agent grows the file
//! alone.
//!
//! A program may let the system end it for calls that it does not make itself (seccomp), opening a file among
//! them. So where the launcher has made a chunk of the file, nothing has to be opened (`unopened`). The agent maps
//! more of the file than there is yet, because each mapping takes a system call, too.

use std::ffi::{CStr, CString};

use ggprof_spool::layout::{BLOCK_BYTES, CHUNK_BLOCKS, HEADER_BYTES, StopReason};
use ggprof_spool::writer::{self, HeaderFacts, HeaderPage};

use super::blocks::{BlockUse, Ring};
use super::open_file::OpenFile;
use super::unopened;
use crate::config::Config;
use crate::fault::fault_point;
use crate::lock::{Ranked, rank};
use crate::memory;
use crate::patch::page_bytes;

/// A small first chunk for short runs.
const FIRST_CHUNK_BLOCKS: usize = 16;
/// Blocks that are let go together: each time interrupts every processor that runs one of the
/// program's threads.
const LET_GO_BLOCKS: usize = 16;
/// What is mapped from the start, of a file that will have so much only later. It counts as address space,
/// which programs may limit by and by, so it is not much more.
const MAPPED_AHEAD_BLOCKS: usize = FIRST_CHUNK_BLOCKS + 64 * CHUNK_BLOCKS;
/// Recordings that already exist under the same name before we give up.
const MOST_ATTEMPTS: u32 = 100;

#[derive(Debug)]
pub(crate) struct SpoolFile {
    pub(crate) header: HeaderPage,
    path: CString,
    identity: (libc::dev_t, libc::ino_t),
    growth: Ranked<{ rank::GROWTH }, Growth>,
}

#[derive(Debug)]
struct Growth {
    /// Where each chunk is mapped; the first is smaller than the others.
    chunks: Vec<*mut u8>,
    handed_out: usize,
    reserved_blocks: usize,
    /// The first chunk's mapping goes on until this block.
    mapped_blocks: usize,
    /// Who has which block, where the size is limited.
    ring: Option<Ring>,
}

// SAFETY: the pointers are to shared mappings that are never given back; only the
// holder of the mutex hands out their blocks.
unsafe impl Send for Growth {}

/// An empty block of the file.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) base: *mut u8,
    pub(crate) index: u32,
    /// The newest epoch's descriptions take half of the file.
    pub(crate) crowded: bool,
}

/// Why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBlock {
    /// All of a limited recording's are being written to.
    AllBusy,
    /// The file cannot grow.
    Stop(StopReason),
}

impl SpoolFile {
    pub(crate) fn create(config: &Config, facts: &HeaderFacts<'_>) -> Result<SpoolFile, String> {
        let (path, file) = create_new(config, facts.pid)?;
        let mapped_blocks =
            if memory::limits_are_set() { FIRST_CHUNK_BLOCKS } else { MAPPED_AHEAD_BLOCKS };
        let bytes_of = |blocks: usize| HEADER_BYTES + blocks * BLOCK_BYTES;
        let reserved = file.reserve(0, bytes_of(FIRST_CHUNK_BLOCKS)).ok();
        let mapped = reserved.and_then(|()| file.map(0, bytes_of(mapped_blocks)));
        let (Some(base), Some(facts_of_file)) = (mapped, file.facts()) else {
            // SAFETY: the path is a valid C string; the file is ours, just made.
            unsafe { libc::unlink(path.as_ptr()) };
            return Err(format!("no space for a recording at {}", path.to_string_lossy()));
        };
        // SAFETY: freshly mapped, zeroed, page-aligned and never unmapped.
        let header = unsafe { HeaderPage::create(base, facts) };
        header.set_reserved_blocks(FIRST_CHUNK_BLOCKS as u64);
        let most_blocks = config.most_blocks();
        header.set_most_blocks(most_blocks.unwrap_or(0) as u64);
        let growth = Growth {
            // SAFETY: the mapping is HEADER_BYTES and a chunk long.
            chunks: vec![unsafe { base.add(HEADER_BYTES) }],
            handed_out: 0,
            reserved_blocks: FIRST_CHUNK_BLOCKS,
            mapped_blocks,
            ring: most_blocks.map(|most| Ring::new(most.max(FIRST_CHUNK_BLOCKS))),
        };
        let identity = facts_of_file.identity;
        Ok(SpoolFile { header, path, identity, growth: Ranked::new(growth) })
    }

    pub(crate) fn path(&self) -> &CStr {
        &self.path
    }

    /// Removes the file; what is recorded later goes nowhere.
    pub(crate) fn remove(&self) {
        // SAFETY: the path is a valid C string; the file is ours.
        unsafe { libc::unlink(self.path.as_ptr()) };
    }

    /// An empty block; `vacate` as in [`Ring::oldest`].
    pub(crate) fn take_block(
        &self,
        wanted: BlockUse,
        vacate: impl FnMut(usize) -> bool,
    ) -> Result<Block, NoBlock> {
        let mut growth = self.growth.lock();
        let again = growth.ring.as_ref().is_some_and(|ring| growth.handed_out >= ring.most());
        let index = if again {
            let ring = growth.ring.as_mut().ok_or(NoBlock::AllBusy)?;
            ring.oldest(wanted, vacate).ok_or(NoBlock::AllBusy)?
        } else {
            if growth.handed_out == growth.reserved_blocks {
                self.grow(&mut growth).map_err(NoBlock::Stop)?;
            }
            growth.handed_out += 1;
            growth.handed_out as u32 - 1
        };
        fault_point!();
        let base = growth.base_of(index);
        if again {
            // SAFETY: a mapped block that the ring has taken away from its writer. Before
            // the lock is left: the descriptions it refers to may be next.
            unsafe { writer::invalidate(base) };
        }
        let crowded = growth.ring.as_mut().is_some_and(|ring| {
            ring.hand_out(index, wanted);
            ring.is_crowded()
        });
        drop(growth);
        touch(base)?;
        if again {
            // SAFETY: as above, and now the caller's alone.
            unsafe { writer::empty(base) };
            self.header.count_reused_block();
        }
        Ok(Block { base, index, crowded })
    }

    /// A writer has gone on from one block to another. Once it has left a group of blocks, the
    /// pages of that group need not count as the program's memory any more: their content is in the
    /// file.
    pub(crate) fn let_go(&self, left: Option<u32>, taken: u32) {
        let group = |index: u32| index as usize / LET_GO_BLOCKS;
        let Some(left) = left.filter(|&left| group(left) != group(taken)) else { return };
        let first = group(left) * LET_GO_BLOCKS;
        let growth = self.growth.lock();
        let blocks = LET_GO_BLOCKS.min(growth.reserved_blocks - first);
        let base = growth.base_of(first as u32);
        drop(growth);
        // SAFETY: shared mappings of ours, in one chunk, as all chunks begin at a multiple of
        // LET_GO_BLOCKS; the pages come back from the file when they are touched again, by
        // whoever may still write there.
        unsafe { advise(base, blocks * BLOCK_BYTES, libc::MADV_DONTNEED) };
    }

    fn grow(&self, growth: &mut Growth) -> Result<(), StopReason> {
        let most = growth.ring.as_ref().map_or(usize::MAX, Ring::most);
        let blocks = CHUNK_BLOCKS.min(most - growth.reserved_blocks);
        let chunk = match growth.made_ahead(blocks) {
            Some(chunk) => chunk,
            None => self.make_chunk(growth.reserved_blocks, blocks)?,
        };
        growth.chunks.push(chunk);
        growth.reserved_blocks += blocks;
        self.header.set_reserved_blocks(growth.reserved_blocks as u64);
        Ok(())
    }

    /// So many blocks behind these, mapped.
    fn make_chunk(&self, behind: usize, blocks: usize) -> Result<*mut u8, StopReason> {
        let file = OpenFile::open(&self.path, libc::O_RDWR).ok_or(StopReason::FileGone)?;
        let facts = file.facts().filter(|facts| facts.identity == self.identity);
        let facts = facts.ok_or(StopReason::FileGone)?;
        let offset = HEADER_BYTES + behind * BLOCK_BYTES;
        let bytes = blocks * BLOCK_BYTES;
        if facts.bytes < offset + bytes {
            file.reserve(offset, bytes)?;
        }
        file.map(offset, bytes).ok_or(StopReason::NoSpace)
    }
}

impl Drop for SpoolFile {
    /// Only where a recording could not be set up: no other is ever dropped.
    fn drop(&mut self) {
        self.remove();
    }
}

impl Growth {
    /// So many blocks behind those that are reserved, if somebody else has made them.
    fn made_ahead(&self, blocks: usize) -> Option<*mut u8> {
        let is_mapped = self.reserved_blocks + blocks <= self.mapped_blocks;
        let bytes = blocks * BLOCK_BYTES;
        // SAFETY: inside of the first mapping; or right behind the last block there is, which is mapped.
        let chunk = unsafe {
            match is_mapped {
                true => self.chunks[0].add(self.reserved_blocks * BLOCK_BYTES),
                false => {
                    let last = self.base_of(self.reserved_blocks as u32 - 1);
                    unopened::map_behind(last.add(BLOCK_BYTES), bytes)?
                }
            }
        };
        // The file is made longer from its end on, so with its last word there is all of it.
        // SAFETY: inside of the chunk.
        let is_there = unopened::is_in_file(unsafe { chunk.add(bytes - size_of::<u32>()) });
        if !is_there && !is_mapped {
            // SAFETY: it was just mapped, and nobody else has it.
            unsafe { unopened::unmap(chunk, bytes) };
        }
        is_there.then_some(chunk)
    }

    fn base_of(&self, index: u32) -> *mut u8 {
        let index = index as usize;
        let (chunk, block) = match index.checked_sub(FIRST_CHUNK_BLOCKS) {
            None => (0, index),
            Some(behind) => (1 + behind / CHUNK_BLOCKS, behind % CHUNK_BLOCKS),
        };
        // SAFETY: every index below `reserved_blocks` lies in the chunk computed here:
        // all but the first and the last hold CHUNK_BLOCKS.
        unsafe { self.chunks[chunk].add(block * BLOCK_BYTES) }
    }
}

/// Asks for the block's pages at once: sixteen faults, one by one in the middle
/// of somebody's graph, cost several times as much. Older kernels say no, which
/// is no harm; `EFAULT` is what would be a SIGBUS later.
fn touch(block: *mut u8) -> Result<(), NoBlock> {
    // SAFETY: our own mapping; the advice reads and changes no bytes.
    let done = unsafe { advise(block, BLOCK_BYTES, libc::MADV_POPULATE_WRITE) };
    let is_fault = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT);
    if done != 0 && is_fault() { Err(NoBlock::Stop(StopReason::NoSpace)) } else { Ok(()) }
}

/// For all pages with some of these bytes. Blocks begin behind the header's 4096 bytes, which is not
/// where a page begins if pages are larger: `OpenFile::map` has mapped the rest of it as well.
///
/// # Safety
/// The bytes are of our own mapping, and the pages around them can take the advice.
unsafe fn advise(start: *mut u8, bytes: usize, advice: libc::c_int) -> libc::c_int {
    let ahead = start as usize % page_bytes();
    // SAFETY: the caller's contract.
    unsafe { libc::madvise(start.byte_sub(ahead).cast(), bytes + ahead, advice) }
}

fn create_new(config: &Config, pid: u32) -> Result<(CString, OpenFile), String> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    let mut problem = std::io::Error::from_raw_os_error(libc::EEXIST);
    for attempt in 0..MOST_ATTEMPTS {
        let path = config.spool_path(pid, attempt);
        if let Some(file) = OpenFile::open(&path, flags) {
            return Ok((path, file));
        }
        problem = std::io::Error::last_os_error();
        if problem.raw_os_error() != Some(libc::EEXIST) {
            break;
        }
    }
    let path = config.spool_path(pid, 0);
    Err(format!("cannot create {}: {problem}", path.to_string_lossy()))
}

const _: () = assert!(
    FIRST_CHUNK_BLOCKS.is_multiple_of(LET_GO_BLOCKS) && CHUNK_BLOCKS.is_multiple_of(LET_GO_BLOCKS)
);
