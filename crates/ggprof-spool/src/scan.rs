//! Reads a recording block by block, without having all of it in memory.
//!
//! Nearly all records are ops. A scan only notes where they are: they can be read when all that they
//! refer to is known. All other records are decoded. Several threads scan, and what they find comes in
//! the order of [`Spool::records`].

#![forbid(unsafe_code)]

use crate::bytes::Bytes;
use crate::layout::{self, HEADER_BYTES, UNIT};
use crate::reader::{self, BlockRecords, Damage, DamageReason, Header, NotASpool, Spool};
use crate::record::{Op, Record};
use std::io;

/// Blocks that a thread scans at a time: four megabytes.
const BLOCKS_AT_A_TIME: usize = 64;
/// More threads than this would wait for the memory.
const MOST_THREADS: usize = 8;

/// What a scan finds.
#[derive(Debug)]
pub enum Found {
    Record(Record),
    Ops(OpRun),
    Damage(Damage),
}

/// Ops of one split that stand one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpRun {
    pub split: u32,
    pub count: u32,
    /// Of the first one, in the file.
    pub offset: u64,
}

/// A recording in a source.
pub struct Scan<'s, S: ?Sized> {
    source: &'s S,
    header: Header,
    header_bytes: usize,
    block_bytes: usize,
    blocks: usize,
    /// In which order the blocks come; empty: as they stand.
    order: Vec<u32>,
    threads: usize,
}

/// Why a source cannot be scanned.
#[derive(Debug)]
pub enum ScanError {
    NotASpool(NotASpool),
    Io(io::Error),
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<'s, S: Bytes + ?Sized> Scan<'s, S> {
    pub fn open(source: &'s S) -> Result<Self, ScanError> {
        let mut page = vec![0; (HEADER_BYTES as u64).min(source.len()) as usize];
        source.read_exact_at(&mut page, 0)?;
        let spool = Spool::open(&page).map_err(ScanError::NotASpool)?;
        let (header_bytes, block_bytes) = spool.sizes();
        let in_blocks = source.len().saturating_sub(header_bytes as u64);
        let blocks = in_blocks.div_ceil(block_bytes as u64) as usize;
        let header = spool.header();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let order = Vec::new();
        let mut scan = Self { source, header, header_bytes, block_bytes, blocks, order, threads };
        if scan.header.reused_blocks > 0 {
            scan.order = scan.by_lane()?;
        }
        Ok(scan)
    }

    /// The same on the thread that asks: for readers inside other programs.
    pub fn on_this_thread(self) -> Self {
        Self { threads: 1, ..self }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Hands over all that is found, in order.
    pub fn all(&self, mut found: impl FnMut(Found)) -> io::Result<()> {
        let threads = self.threads;
        let mut at = 0;
        while at < self.blocks {
            let ends = (1..=threads).map(|part| (at + part * BLOCKS_AT_A_TIME).min(self.blocks));
            let starts = (0..threads).map(|part| (at + part * BLOCKS_AT_A_TIME).min(self.blocks));
            let parts: Vec<_> = starts.zip(ends).filter(|(start, end)| start < end).collect();
            at += threads * BLOCKS_AT_A_TIME;
            for part in self.parts(&parts) {
                part?.into_iter().for_each(&mut found);
            }
        }
        if let Some(damage) = self.file_cut() {
            found(Found::Damage(damage));
        }
        Ok(())
    }

    /// Scans parts at the same time.
    fn parts(&self, parts: &[(usize, usize)]) -> Vec<io::Result<Vec<Found>>> {
        match parts {
            [part] => vec![self.part(*part)],
            parts => std::thread::scope(|scope| {
                let spawn = |&part| scope.spawn(move || self.part(part));
                let threads: Vec<_> = parts.iter().map(spawn).collect();
                let died = |_| Err(io::Error::other("a thread that reads the recording died"));
                threads.into_iter().map(|it| it.join().unwrap_or_else(died)).collect()
            }),
        }
    }

    /// The blocks from one turn to another.
    fn part(&self, (start, end): (usize, usize)) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut block = Vec::new();
        for turn in start..end {
            let index = self.order.get(turn).map_or(turn, |&index| index as usize);
            self.read_block(index, &mut block)?;
            scan_block(&block, index, self.offset(index), &mut found);
        }
        Ok(found)
    }

    fn offset(&self, block: usize) -> u64 {
        self.header_bytes as u64 + block as u64 * self.block_bytes as u64
    }

    fn read_block(&self, index: usize, block: &mut Vec<u8>) -> io::Result<()> {
        let offset = self.offset(index);
        let left = self.source.len().saturating_sub(offset);
        block.resize(left.min(self.block_bytes as u64) as usize, 0);
        self.source.read_exact_at(block, offset)
    }

    /// The blocks of each lane in the order in which they were written.
    fn by_lane(&self) -> io::Result<Vec<u32>> {
        let mut keys = Vec::with_capacity(self.blocks);
        for index in 0..self.blocks {
            let offset = self.offset(index);
            let mut head = [0; 12];
            let there = self.source.len().saturating_sub(offset).min(head.len() as u64) as usize;
            self.source.read_exact_at(&mut head[..there], offset)?;
            keys.push((reader::lane_and_sequence(&head), index as u32));
        }
        keys.sort_by_key(|(key, _)| *key);
        Ok(keys.into_iter().map(|(_, index)| index).collect())
    }

    /// At the end of the bytes: were more blocks promised?
    fn file_cut(&self) -> Option<Damage> {
        let promised = self.header.reserved_blocks.saturating_mul(self.block_bytes as u64);
        let promised = promised.saturating_add(self.header_bytes as u64);
        let offset = self.source.len();
        (promised > offset)
            .then_some(Damage { offset: offset as usize, reason: DamageReason::FileCut })
    }
}

impl<S: ?Sized> std::fmt::Debug for Scan<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("header", &self.header).finish_non_exhaustive()
    }
}

fn scan_block(block: &[u8], index: usize, offset: u64, found: &mut Vec<Found>) {
    let damage = |(at, reason)| Damage { offset: offset as usize + at, reason };
    let mut records = BlockRecords::new(block, index);
    found.extend(records.enter().map(|at| Found::Damage(damage(at))));
    loop {
        if let Some(run) = op_run(block, records.at(), offset) {
            records.skip(run.count as usize * UNIT);
            found.push(Found::Ops(run));
            continue;
        }
        match records.next() {
            Some(Ok(record)) => found.push(Found::Record(record)),
            Some(Err(at)) => found.push(Found::Damage(damage(at))),
            None => return,
        }
    }
}

/// The ops that stand at a place of a block, as far as they are of one split.
fn op_run(block: &[u8], at: Option<usize>, offset: u64) -> Option<OpRun> {
    let at = at?;
    let records = block.get(at..)?.chunks_exact(UNIT);
    let split = op_split(records.clone().next()?)?;
    let count = records.take_while(|record| op_split(record) == Some(split)).count() as u32;
    Some(OpRun { split, count, offset: offset + at as u64 })
}

/// The split of an op; `None` for other records.
fn op_split(record: &[u8]) -> Option<u32> {
    let is_op = record.first() == Some(&layout::OpEvent::KIND);
    is_op.then(|| reader::number(record, layout::OP_SPLIT_AT))
}

/// Blocks that were read last: each thread of the program writes to its own.
const KEPT_BLOCKS: usize = 16;

/// Reads ops where a scan found them.
pub struct OpReader<'s, S: ?Sized> {
    source: &'s S,
    /// The pieces that were read last, with their places and when they were used.
    kept: Vec<Piece>,
    turn: u64,
}

struct Piece {
    offset: u64,
    used: u64,
    bytes: Vec<u8>,
}

impl<'s, S: Bytes + ?Sized> OpReader<'s, S> {
    /// A second reader of the same recording.
    pub fn of(scan: &Scan<'s, S>) -> Self {
        Self { source: scan.source, kept: Vec::new(), turn: 0 }
    }

    /// Hands over the ops of a run; `None` in place of each that is not there any more.
    pub fn each(&mut self, run: &OpRun, mut take: impl FnMut(Option<Op>)) -> io::Result<()> {
        let bytes = self.bytes(run.offset, run.count as usize * UNIT)?;
        for record in bytes.chunks_exact(UNIT) {
            let is_same = op_split(record) == Some(run.split);
            take(Op::decode(record).filter(|_| is_same));
        }
        Ok(())
    }

    fn bytes(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        self.turn += 1;
        let holds = |piece: &Piece| {
            let start = offset.checked_sub(piece.offset).map(|start| start as usize);
            start.is_some_and(|start| start + length <= piece.bytes.len())
        };
        let at = match self.kept.iter().position(holds) {
            Some(at) => at,
            None => self.read(offset, length)?,
        };
        let piece = &mut self.kept[at];
        piece.used = self.turn;
        Ok(&piece.bytes[(offset - piece.offset) as usize..][..length])
    }

    /// Reads a piece that begins here, as long as a block where there is so much.
    fn read(&mut self, offset: u64, length: usize) -> io::Result<usize> {
        let oldest = (0..self.kept.len()).min_by_key(|&at| self.kept[at].used);
        let at = match oldest.filter(|_| self.kept.len() >= KEPT_BLOCKS) {
            Some(at) => at,
            None => {
                self.kept.push(Piece { offset, used: 0, bytes: Vec::new() });
                self.kept.len() - 1
            }
        };
        let left = self.source.len().saturating_sub(offset);
        let wanted = (length.max(layout::BLOCK_BYTES) as u64).min(left.max(length as u64));
        let piece = &mut self.kept[at];
        piece.offset = offset;
        piece.bytes.resize(wanted as usize, 0);
        self.source.read_exact_at(&mut piece.bytes, offset)?;
        Ok(at)
    }
}

impl<S: ?Sized> std::fmt::Debug for OpReader<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpReader").finish_non_exhaustive()
    }
}
