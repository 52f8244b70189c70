//! What was added to a recording since the last look, without reading it again: each lane has one
//! block that still grows, others are full, and how far each growing one was read is known.

#![forbid(unsafe_code)]

use crate::layout::{BLOCK_HEAD_BYTES, DEFINITIONS_LANE, OpEvent, UNIT};
use crate::live::LiveSpool;
use crate::reader::{self, Header};
use crate::record::{self, Record};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

/// Of each lane, how many blocks the first look reads; older events are passed over, so that it is
/// quick with a recording of any size. All definitions are read.
const FIRST_BLOCKS: usize = 256;

/// What is new.
#[derive(Debug)]
pub enum New<'a> {
    /// Nearly all records are ops: their bytes, one behind the other, as they stand in the file. They come
    /// first and are not kept: of a fast program there may be a hundred megabytes.
    Ops(&'a [u8]),
    /// Any other.
    Record(Record),
}

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
    /// Blocks that had an owner, in the order in which they were met: the oldest are used again first.
    by_age: VecDeque<u64>,
    /// How many times a block was used again, as far as all of them were met.
    reused_blocks: u64,
    /// Descriptions that are not in the file any more, by the places of their blocks.
    gone: Vec<u32>,
    missed: u64,
    /// Memory that each look uses again.
    block: Vec<u8>,
    others: Vec<u8>,
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
    /// Gives every record that is new: ops, then definitions, then what else refers to them; of a definition
    /// also the place of its block among those of definitions.
    pub fn look(
        &mut self,
        spool: &LiveSpool,
        mut take: impl FnMut(New<'_>, Option<u32>),
    ) -> io::Result<Header> {
        let header = spool.header()?;
        self.discover(spool, &header)?;
        if !std::mem::replace(&mut self.has_looked, true) {
            self.pass_over_old();
        }
        let (definitions, events): (Vec<_>, Vec<_>) =
            self.in_order().into_iter().partition(|(_, open)| open.lane == DEFINITIONS_LANE);
        // What events refer to was written before them: it is read after them.
        let (mut block, mut others) =
            (std::mem::take(&mut self.block), std::mem::take(&mut self.others));
        others.clear();
        for (index, open) in events {
            if self.read(spool, index, open, &mut block)? {
                set_apart(&block, &mut others, |ops| take(New::Ops(ops), None));
            }
        }
        for (index, open) in definitions {
            if self.read(spool, index, open, &mut block)? {
                decode(&block, |record| take(New::Record(record), Some(open.sequence)));
            }
        }
        decode(&others, |record| take(New::Record(record), None));
        (self.block, self.others) = (block, others);
        let newest = &self.newest;
        self.open.retain(|_, open| newest.get(&open.lane) == Some(&open.sequence));
        Ok(header)
    }

    /// The blocks of definitions that were used again since this was asked last: no event of the file
    /// refers to what stood in them.
    pub fn take_gone(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.gone)
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
        self.met.resize(self.met.len().max(blocks as usize), None);
        // As far as each lane is known when all of its new blocks are met.
        let mut unmet = self.newest.clone();
        for index in self.blank.iter().copied().chain(known..blocks).collect::<Vec<_>>() {
            self.meet(spool, index, &mut unmet)?;
        }
        if self.has_looked {
            self.find_reused(spool, header.reused_blocks, &mut unmet)?;
            self.missed += self.lacking(&unmet);
        }
        self.reused_blocks = header.reused_blocks;
        Ok(())
    }

    /// As many blocks as were used again, from the oldest on: a large recording has thousands, of which
    /// few change from look to look. All are looked at where that leaves a gap.
    fn find_reused(
        &mut self,
        spool: &LiveSpool,
        reused_blocks: u64,
        unmet: &mut BTreeMap<u32, u32>,
    ) -> io::Result<()> {
        let (mut found, mut kept) = (self.reused_blocks, Vec::new());
        for _ in 0..self.by_age.len() {
            if found >= reused_blocks && self.lacking(unmet) == 0 {
                break;
            }
            let Some(index) = self.by_age.pop_front() else { break };
            match self.meet(spool, index, unmet)? {
                true => found += 1,
                false => kept.push(index),
            }
        }
        kept.into_iter().rev().for_each(|index| self.by_age.push_front(index));
        Ok(())
    }

    /// How many blocks lie between those that were met before and the newest, and were not met.
    fn lacking(&self, unmet: &BTreeMap<u32, u32>) -> u64 {
        let newest = |lane: &u32| self.newest.get(lane).copied().unwrap_or(0);
        unmet.iter().map(|(lane, met)| u64::from(newest(lane).saturating_sub(*met))).sum()
    }

    /// Whether a block has another owner than before, or none any more.
    fn meet(
        &mut self,
        spool: &LiveSpool,
        index: u64,
        unmet: &mut BTreeMap<u32, u32>,
    ) -> io::Result<bool> {
        let owner = spool.owner(index)?;
        let before = std::mem::replace(&mut self.met[index as usize], owner);
        let Some((lane, _)) = owner else {
            self.blank.insert(index);
            self.let_go(before);
            return Ok(before.is_some());
        };
        self.blank.remove(&index);
        if before == owner {
            return Ok(false);
        }
        self.let_go(before);
        self.by_age.push_back(index);
        self.open(index, owner);
        unmet.get_mut(&lane).into_iter().for_each(|sequence| *sequence += 1);
        Ok(true)
    }

    fn let_go(&mut self, owner: Option<(u32, u32)>) {
        let definitions = owner.filter(|(lane, _)| *lane == DEFINITIONS_LANE);
        self.gone.extend(definitions.map(|(_, sequence)| sequence));
    }

    fn open(&mut self, index: u64, owner: Option<(u32, u32)>) {
        let Some((lane, sequence)) = owner else { return };
        self.open.insert(index, Open { lane, sequence, at: BLOCK_HEAD_BYTES });
        let before = self.newest.get(&lane).copied();
        if before.is_none_or(|before| before < sequence) {
            self.newest.insert(lane, sequence);
        }
    }

    /// Of blocks that were all met at once, those are the oldest that lie farthest behind in their lanes.
    fn pass_over_old(&mut self) {
        let newest = self.newest.clone();
        let before = self.open.len();
        self.open.retain(|_, open| {
            let behind = newest.get(&open.lane).map_or(0, |newest| newest - open.sequence);
            open.lane == DEFINITIONS_LANE || (behind as usize) < FIRST_BLOCKS
        });
        self.is_partial = self.open.len() < before;
        let behind = |&index: &u64| {
            let owner = self.met[index as usize];
            owner.and_then(|(lane, sequence)| Some(newest.get(&lane)? - sequence))
        };
        self.by_age.make_contiguous().sort_by_key(|index| Reverse(behind(index)));
    }

    /// Blocks of one lane in the order in which they were filled.
    fn in_order(&self) -> Vec<(u64, Open)> {
        let mut blocks: Vec<(u64, Open)> =
            self.open.iter().map(|(at, open)| (*at, *open)).collect();
        blocks.sort_by_key(|(_, open)| (open.lane, open.sequence));
        blocks
    }

    /// What is new in a block; whether it still is that block.
    fn read(
        &mut self,
        spool: &LiveSpool,
        index: u64,
        open: Open,
        records: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let owner = (index, open.lane, open.sequence);
        let is_full = self.newest.get(&open.lane) != Some(&open.sequence);
        let next = spool.new_records(owner, open.at, is_full, records)?;
        match next {
            Some(at) => _ = self.open.insert(index, Open { at, ..open }),
            None => {
                self.open.remove(&index);
                self.missed += 1;
            }
        }
        Ok(next.is_some())
    }
}

/// Gives the ops among whole records, and appends what else there is.
fn set_apart(mut records: &[u8], others: &mut Vec<u8>, mut take: impl FnMut(&[u8])) {
    while let Some(length) = reader::whole_record(records) {
        let units = records.chunks_exact(UNIT);
        let ops = units.take_while(|unit| unit[0] == OpEvent::KIND).count() * UNIT;
        match ops {
            0 => others.extend_from_slice(&records[..length]),
            _ => take(&records[..ops]),
        }
        records = &records[ops.max(length)..];
    }
}

/// Whole records, one behind the other.
fn decode(mut bytes: &[u8], mut take: impl FnMut(Record)) {
    while let Some(length) = reader::whole_record(bytes) {
        record::decode(&bytes[..length]).into_iter().for_each(&mut take);
        bytes = &bytes[length..];
    }
}
