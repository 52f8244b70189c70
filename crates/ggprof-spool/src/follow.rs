//! What was added to a recording since the last look, without reading it again: each lane has one
//! block that still grows, others are full, and how far each growing one was read is known.

#![forbid(unsafe_code)]

use crate::layout::{BLOCK_HEAD_BYTES, DEFINITIONS_LANE};
use crate::live::LiveSpool;
use crate::reader::{self, Header};
use crate::record::{self, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Of each lane, how many blocks the first look reads; older events are passed over, so that it is
/// quick with a recording of any size. All definitions are read.
const FIRST_BLOCKS: usize = 256;

/// How far a recording was read.
#[derive(Debug, Default)]
pub struct Follower {
    /// Lane and sequence number of each block that was met.
    met: Vec<Option<(u32, u32)>>,
    /// Blocks without an owner when they were met.
    blank: BTreeSet<u64>,
    /// Blocks that may get more records: where the next one will be.
    open: BTreeMap<u64, Open>,
    /// The newest block of each lane.
    newest: BTreeMap<u32, u32>,
    reused_blocks: u64,
    missed: u64,
    has_looked: bool,
    is_partial: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    lane: u32,
    sequence: u32,
    at: usize,
}

impl Follower {
    /// Gives every record that is new, definitions before what refers to them.
    pub fn look(&mut self, spool: &LiveSpool, mut take: impl FnMut(Record)) -> io::Result<Header> {
        let header = spool.header()?;
        self.discover(spool, &header)?;
        if !std::mem::replace(&mut self.has_looked, true) {
            self.pass_over_old();
        }
        let (mut events, mut definitions) = (Vec::new(), Vec::new());
        // What events refer to was written before them: it is read after them.
        for is_definition in [false, true] {
            let bytes = if is_definition { &mut definitions } else { &mut events };
            for (index, open) in self.in_order() {
                if (open.lane == DEFINITIONS_LANE) == is_definition {
                    self.read(spool, index, open, bytes)?;
                }
            }
        }
        let newest = &self.newest;
        self.open.retain(|_, open| newest.get(&open.lane) == Some(&open.sequence));
        decode(&definitions, &mut take);
        decode(&events, &mut take);
        Ok(header)
    }

    /// Blocks of events that were used again before they were read.
    pub fn missed_blocks(&self) -> u64 {
        self.missed
    }

    /// Whether the first look passed over older events.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Finds blocks that have a new owner.
    fn discover(&mut self, spool: &LiveSpool, header: &Header) -> io::Result<()> {
        let blocks = spool.whole_blocks()?.min(header.reserved_blocks);
        let known = self.met.len() as u64;
        let mut candidates: Vec<u64> = self.blank.iter().copied().collect();
        if header.reused_blocks != self.reused_blocks {
            candidates = (0..known).collect();
        }
        self.reused_blocks = header.reused_blocks;
        candidates.extend(known..blocks);
        self.met.resize(self.met.len().max(blocks as usize), None);
        // As far as each lane is known when all of its new blocks are met.
        let mut unmet = self.newest.clone();
        for index in candidates {
            let owner = spool.owner(index)?;
            if owner.is_none() {
                self.blank.insert(index);
            } else if self.met[index as usize] != owner {
                self.blank.remove(&index);
                self.open(index, owner);
                let lane = owner.and_then(|(lane, _)| unmet.get_mut(&lane));
                lane.into_iter().for_each(|sequence| *sequence += 1);
            }
            self.met[index as usize] = owner;
        }
        for (lane, sequence) in unmet {
            let newest = self.newest.get(&lane).copied().unwrap_or(sequence);
            self.missed += u64::from(newest.saturating_sub(sequence));
        }
        Ok(())
    }

    fn open(&mut self, index: u64, owner: Option<(u32, u32)>) {
        let Some((lane, sequence)) = owner else { return };
        self.open.insert(index, Open { lane, sequence, at: BLOCK_HEAD_BYTES });
        let before = self.newest.get(&lane).copied();
        if before.is_none_or(|before| before < sequence) {
            self.newest.insert(lane, sequence);
        }
    }

    fn pass_over_old(&mut self) {
        let newest = self.newest.clone();
        let before = self.open.len();
        self.open.retain(|_, open| {
            let behind = newest.get(&open.lane).map_or(0, |newest| newest - open.sequence);
            open.lane == DEFINITIONS_LANE || (behind as usize) < FIRST_BLOCKS
        });
        self.is_partial = self.open.len() < before;
    }

    /// Blocks of one lane in the order in which they were filled.
    fn in_order(&self) -> Vec<(u64, Open)> {
        let mut blocks: Vec<(u64, Open)> =
            self.open.iter().map(|(at, open)| (*at, *open)).collect();
        blocks.sort_by_key(|(_, open)| (open.lane, open.sequence));
        blocks
    }

    fn read(
        &mut self,
        spool: &LiveSpool,
        index: u64,
        open: Open,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        match spool.new_records((index, open.lane, open.sequence), open.at, bytes)? {
            Some(at) => _ = self.open.insert(index, Open { at, ..open }),
            None => {
                self.open.remove(&index);
                self.missed += 1;
            }
        }
        Ok(())
    }
}

/// Whole records, one behind the other.
fn decode(mut bytes: &[u8], take: &mut impl FnMut(Record)) {
    while let Some(length) = reader::whole_record(bytes) {
        if let Some(record) = record::decode(&bytes[..length]) {
            take(record);
        }
        bytes = &bytes[length..];
    }
}
