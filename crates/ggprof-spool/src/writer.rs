//! Filling blocks of mapped memory with records.
//!
//! A [`BlockWriter`] owns one block at a time and never allocates, locks or
//! calls the system; when a block is full it says so and the agent hands it
//! another. Where blocks come from is the agent's `recorder/spool_file.rs`.
//!
//! # Hot path: no allocation, no locks, no panics

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{self, BLOCK_BYTES, BLOCK_HEAD_BYTES, BLOCK_MAGIC, UNIT};

/// Appends records to one block.
#[derive(Debug)]
pub struct BlockWriter {
    base: *mut u8,
    used: usize,
    index: u32,
}

/// The block has no room for the record; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFull;

impl BlockWriter {
    /// A writer without a block: every record is refused until [`Self::start`].
    pub const fn without_block() -> Self {
        BlockWriter { base: std::ptr::null_mut(), used: BLOCK_BYTES, index: 0 }
    }

    /// The number of its block; `None` without one.
    pub fn block(&self) -> Option<u32> {
        (!self.base.is_null()).then_some(self.index)
    }

    /// Takes over a fresh block and writes its head.
    ///
    /// # Safety
    /// `base` points to `BLOCK_BYTES` writable bytes, zeroed or emptied by
    /// [`empty`], aligned to [`UNIT`], that stay mapped and that no other writer touches for as
    /// long as this writer is used.
    pub unsafe fn start(&mut self, base: *mut u8, lane: u32, sequence: u32, index: u32) {
        self.base = base;
        self.used = BLOCK_HEAD_BYTES;
        self.index = index;
        let words = [lane, sequence, index, layout::block_check(lane, sequence, index)];
        for (i, word) in words.into_iter().enumerate() {
            // SAFETY: within the block the caller handed over, and aligned.
            unsafe { base.add(4 + 4 * i).cast::<u32>().write(word.to_le()) };
        }
        // SAFETY: as above; the magic comes last, so a head is whole or absent.
        unsafe { AtomicU32::from_ptr(base.cast()) }.store(BLOCK_MAGIC.to_le(), Ordering::Release);
    }

    /// Appends a record of one unit.
    #[inline(always)]
    pub fn put(&mut self, record: &[u8; UNIT]) -> Result<(), BlockFull> {
        if self.used + UNIT > BLOCK_BYTES {
            return Err(BlockFull);
        }
        // SAFETY: `start`'s caller guarantees the block; the bound was checked
        // just above, and `used` is always a multiple of UNIT.
        unsafe { commit(self.base.add(self.used), record) };
        self.used += UNIT;
        Ok(())
    }

    /// Appends a long record: its fixed part, then its tail. The unit count in
    /// bytes 2 and 3 of the fixed part is filled in here.
    #[inline(always)]
    pub fn put_long(&mut self, fixed: &mut [u8], tail: &[u8]) -> Result<(), BlockFull> {
        let units = layout::units_for(fixed.len() + tail.len());
        if self.used + units * UNIT > BLOCK_BYTES {
            return Err(BlockFull);
        }
        fixed[2..4].copy_from_slice(&(units as u16).to_le_bytes());
        // SAFETY: as in `put`; the whole record fits, and the tail lies behind
        // the fixed part, which is committed after it.
        unsafe {
            let at = self.base.add(self.used);
            at.add(fixed.len()).copy_from_nonoverlapping(tail.as_ptr(), tail.len());
            commit(at, fixed);
        }
        self.used += units * UNIT;
        Ok(())
    }
}

/// Takes the head of a block away, before anything else of it is changed: from here on
/// readers pass over the block, whatever is left in it.
///
/// # Safety
/// `base` points to a mapped block that no writer has.
pub unsafe fn invalidate(base: *mut u8) {
    // SAFETY: the caller's contract; blocks are aligned to UNIT.
    let magic = unsafe { AtomicU32::from_ptr(base.cast()) };
    magic.store(layout::FREE_BLOCK_MAGIC.to_le(), Ordering::SeqCst);
}

/// Empties an invalidated block, so that a writer can start in it.
///
/// # Safety
/// As for [`invalidate`], which was called before.
pub unsafe fn empty(base: *mut u8) {
    // SAFETY: the caller's contract. The magic stays until the next writer has
    // written the rest of the head.
    unsafe { base.add(4).write_bytes(0, BLOCK_BYTES - 4) };
}

// SAFETY: the block belongs to the writer alone (`start`'s contract), so moving
// the writer to another thread moves the block with it.
unsafe impl Send for BlockWriter {}

/// Copies a record, its first four bytes last: they hold the kind, which is
/// zero in a fresh block, so a reader sees the whole record or none.
///
/// # Safety
/// `at` is writable for `record.len() >= 8` bytes and aligned to 8.
#[inline(always)]
unsafe fn commit(at: *mut u8, record: &[u8]) {
    // SAFETY: the caller's contract; the first word is only written by the
    // atomic store, so the release orders it behind the rest.
    unsafe {
        at.add(4).copy_from_nonoverlapping(record.as_ptr().add(4), record.len() - 4);
        let head = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
        AtomicU32::from_ptr(at.cast()).store(head, Ordering::Release);
    }
}

/// The mapped first page: counters and marks that change while recording.
#[derive(Debug)]
pub struct HeaderPage {
    base: *mut u8,
}

// SAFETY: after `create` every access goes through atomics on the page.
unsafe impl Send for HeaderPage {}
// SAFETY: as for Send.
unsafe impl Sync for HeaderPage {}

/// What the header says from the start.
#[derive(Clone, Copy, Debug)]
pub struct HeaderFacts<'a> {
    pub clock: layout::ClockKind,
    pub pid: u32,
    pub options: u32,
    pub start_ticks: u64,
    pub start_monotonic_ns: u64,
    pub start_realtime_ns: u64,
    pub command: &'a [u8],
    pub cpu_name: &'a [u8],
    pub agent_version: &'a [u8],
}

impl HeaderPage {
    /// Writes the header, its magic last.
    ///
    /// # Safety
    /// `base` points to `HEADER_BYTES` zeroed, writable, page-aligned bytes
    /// that stay mapped for the rest of the process.
    pub unsafe fn create(base: *mut u8, facts: &HeaderFacts<'_>) -> Self {
        use layout::header as at;
        // SAFETY: the caller's contract; no other code has the page yet.
        let page = unsafe { std::slice::from_raw_parts_mut(base, layout::HEADER_BYTES) };
        put_u32(page, at::VERSION, layout::VERSION);
        put_u32(page, at::HEADER_BYTES, layout::HEADER_BYTES as u32);
        put_u32(page, at::BLOCK_BYTES, BLOCK_BYTES as u32);
        put_u32(page, at::CLOCK, facts.clock as u32);
        put_u32(page, at::PID, facts.pid);
        put_u32(page, at::OPTIONS, facts.options);
        put_u64(page, at::START_TICKS, facts.start_ticks);
        put_u64(page, at::START_MONOTONIC_NS, facts.start_monotonic_ns);
        put_u64(page, at::START_REALTIME_NS, facts.start_realtime_ns);
        put_text(&mut page[at::COMMAND..][..at::COMMAND_BYTES], facts.command);
        put_text(&mut page[at::CPU_NAME..][..at::CPU_NAME_BYTES], facts.cpu_name);
        put_text(&mut page[at::AGENT_VERSION..][..at::AGENT_VERSION_BYTES], facts.agent_version);
        let header = HeaderPage { base };
        header.word(at::MAGIC).store(u64::from_ne_bytes(layout::MAGIC), Ordering::Release);
        header
    }

    pub fn count_loss(&self, kind: layout::LossCounter, n: u64) {
        self.word(layout::header::LOSSES + 8 * kind as usize).fetch_add(n, Ordering::Relaxed);
    }

    pub fn set_reserved_blocks(&self, blocks: u64) {
        self.word(layout::header::RESERVED_BLOCKS).store(blocks, Ordering::Release);
    }

    pub fn set_end(&self, ticks: u64) {
        self.word(layout::header::END_TICKS).store(ticks, Ordering::Release);
    }

    pub fn set_stop_reason(&self, reason: layout::StopReason) {
        self.word(layout::header::STOP_REASON).store(reason as u64, Ordering::Release);
    }

    /// The recording is limited to so many blocks.
    pub fn set_most_blocks(&self, blocks: u64) {
        self.word(layout::header::MOST_BLOCKS).store(blocks, Ordering::Release);
    }

    pub fn count_reused_block(&self) {
        self.word(layout::header::REUSED_BLOCKS).fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a graph run and gives its number, which starts again after 2³².
    pub fn next_graph_run(&self) -> u32 {
        let before = self.word(layout::header::GRAPH_RUNS).fetch_add(1, Ordering::Relaxed);
        (before % u64::from(u32::MAX - 1)) as u32 + 1
    }

    /// Graph runs counted so far.
    pub fn graph_runs(&self) -> u64 {
        self.word(layout::header::GRAPH_RUNS).load(Ordering::Relaxed)
    }

    /// What was asked for last; others may write it into the file at any time.
    pub fn control(&self) -> layout::Control {
        layout::Control::of(self.word(layout::header::CONTROL).load(Ordering::SeqCst))
    }

    pub fn set_control(&self, control: layout::Control) {
        self.word(layout::header::CONTROL).store(control as u64, Ordering::SeqCst);
    }

    pub fn window(&self) -> layout::Window {
        layout::Window::of(self.word(layout::header::WINDOW).load(Ordering::Relaxed))
    }

    pub fn set_window(&self, window: layout::Window) {
        self.word(layout::header::WINDOW).store(window as u64, Ordering::Relaxed);
    }

    /// A thread is about to write. It has to look at [`Self::control`] again after this.
    pub fn enter(&self) {
        self.word(layout::header::ACTIVE).fetch_add(1, Ordering::SeqCst);
    }

    pub fn leave(&self) {
        self.word(layout::header::ACTIVE).fetch_sub(1, Ordering::SeqCst);
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `create`'s caller keeps the page mapped; every offset used is
        // a multiple of eight inside it.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }
}

fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn put_text(out: &mut [u8], text: &[u8]) {
    let n = text.len().min(out.len());
    out[..n].copy_from_slice(&text[..n]);
}
