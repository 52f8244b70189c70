//! Turns bytes into records. It takes any bytes: a torn, cut or damaged file gives the records that
//! are whole, and the places of the others.
//!
//! Records come in the order of the file, not of time: several threads write at the same time, each
//! into its own blocks, so a text or node may be defined in a later block than its first use.
//! Callers collect the tables first.

#![forbid(unsafe_code)]

use crate::layout::{self, BLOCK_HEAD_BYTES, Field, UNIT};
use crate::record::{self, Record};

/// A recording, opened over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Spool<'a> {
    bytes: &'a [u8],
    header_bytes: usize,
    block_bytes: usize,
}

/// Why bytes are not a recording at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotASpool {
    TooShort,
    WrongMagic,
    /// Written by a later release than this one reads.
    UnknownVersion(u32),
    /// The header's own sizes make no sense.
    WrongSizes,
}

impl std::fmt::Display for NotASpool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotASpool::TooShort => write!(f, "the file is shorter than a recording's header"),
            NotASpool::WrongMagic => write!(f, "the file is not a ggprof recording"),
            NotASpool::UnknownVersion(v) => {
                write!(
                    f,
                    "the recording has format version {v}; this ggprof reads up to {}",
                    layout::VERSION
                )
            }
            NotASpool::WrongSizes => write!(f, "the recording's header is damaged"),
        }
    }
}

impl std::error::Error for NotASpool {}

/// What the file header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub version: u32,
    /// `None` for a clock this reader does not know.
    pub clock: Option<layout::ClockKind>,
    pub pid: u32,
    pub threads_asked: bool,
    pub serialized: bool,
    /// The program was still running when this copy was made.
    pub snapshot: bool,
    /// The program ran already when the agent was loaded.
    pub attached: bool,
    pub start_ticks: u64,
    pub start_monotonic_ns: u64,
    pub start_realtime_ns: u64,
    /// Zero when the program ended without a normal exit.
    pub end_ticks: u64,
    /// See [`layout::StopReason`]; 0 when recording went on to the end.
    pub stop_reason: u64,
    pub reserved_blocks: u64,
    /// How many blocks the recording may have; 0: as many as there are.
    pub most_blocks: u64,
    /// Blocks that were emptied and used again.
    pub reused_blocks: u64,
    /// Graph runs that were begun, those in reused blocks included.
    pub graph_runs: u64,
    pub control: layout::Control,
    pub window: layout::Window,
    /// Threads that are writing, or were when the process ended.
    pub active: u64,
    /// Indexed by [`layout::LossCounter`].
    pub losses: [u64; layout::header::LOSS_KINDS],
    pub command: String,
    pub cpu_name: String,
    pub agent_version: String,
}

/// A place in the file that could not be read as the format says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    pub offset: usize,
    pub reason: DamageReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageReason {
    /// The head of a block is wrong; its records are read anyway.
    BlockHead,
    /// A record reaches past its block or the end of the file.
    CutRecord,
    /// A record's own counts contradict its length.
    WrongCount,
    /// Bytes follow an uncommitted record: at most one is normal after a kill.
    Uncommitted,
    /// The file ends inside the blocks its header promises.
    FileCut,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = match self.reason {
            DamageReason::BlockHead => "the head of a block is damaged",
            DamageReason::CutRecord => "a record is cut off",
            DamageReason::WrongCount => "a record contradicts its own length",
            DamageReason::Uncommitted => "a record was not finished",
            DamageReason::FileCut => "the file ends early",
        };
        write!(f, "{reason} (at byte {})", self.offset)
    }
}

impl Header {
    /// Whether the recording was going on when this was written.
    pub fn records(&self) -> bool {
        self.control.records(self.window)
    }
}

impl<'a> Spool<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self, NotASpool> {
        use layout::header as at;
        if bytes.len() < layout::HEADER_BYTES {
            return Err(NotASpool::TooShort);
        }
        if bytes[..8] != layout::MAGIC {
            return Err(NotASpool::WrongMagic);
        }
        let version = number::<u32>(bytes, at::VERSION);
        if version == 0 || version > layout::VERSION {
            return Err(NotASpool::UnknownVersion(version));
        }
        let header_bytes = number::<u32>(bytes, at::HEADER_BYTES) as usize;
        let block_bytes = number::<u32>(bytes, at::BLOCK_BYTES) as usize;
        let sane_block = block_bytes >= 2 * BLOCK_HEAD_BYTES && block_bytes.is_multiple_of(UNIT);
        if !sane_block || header_bytes < layout::HEADER_BYTES {
            return Err(NotASpool::WrongSizes);
        }
        Ok(Spool { bytes, header_bytes, block_bytes })
    }

    pub fn header(&self) -> Header {
        use layout::header as at;
        let options = number::<u32>(self.bytes, at::OPTIONS);
        Header {
            version: number(self.bytes, at::VERSION),
            clock: match number::<u32>(self.bytes, at::CLOCK) {
                0 => Some(layout::ClockKind::MonotonicNs),
                1 => Some(layout::ClockKind::CycleCounter),
                _ => None,
            },
            pid: number(self.bytes, at::PID),
            threads_asked: options & layout::OPTION_THREADS != 0,
            serialized: options & layout::OPTION_SERIALIZE != 0,
            snapshot: options & layout::OPTION_SNAPSHOT != 0,
            attached: options & layout::OPTION_ATTACHED != 0,
            start_ticks: number(self.bytes, at::START_TICKS),
            start_monotonic_ns: number(self.bytes, at::START_MONOTONIC_NS),
            start_realtime_ns: number(self.bytes, at::START_REALTIME_NS),
            end_ticks: number(self.bytes, at::END_TICKS),
            stop_reason: number(self.bytes, at::STOP_REASON),
            reserved_blocks: number(self.bytes, at::RESERVED_BLOCKS),
            most_blocks: number(self.bytes, at::MOST_BLOCKS),
            reused_blocks: number(self.bytes, at::REUSED_BLOCKS),
            graph_runs: number(self.bytes, at::GRAPH_RUNS),
            control: layout::Control::of(number(self.bytes, at::CONTROL)),
            window: layout::Window::of(number(self.bytes, at::WINDOW)),
            active: number(self.bytes, at::ACTIVE),
            losses: std::array::from_fn(|i| number(self.bytes, at::LOSSES + 8 * i)),
            command: text(self.bytes, at::COMMAND, at::COMMAND_BYTES),
            cpu_name: text(self.bytes, at::CPU_NAME, at::CPU_NAME_BYTES),
            agent_version: text(self.bytes, at::AGENT_VERSION, at::AGENT_VERSION_BYTES),
        }
    }

    /// Every record of every block: in file order, but where blocks were used again, in
    /// the order of each lane.
    pub fn records(&self) -> Records<'a> {
        let blocks = self.bytes.len().saturating_sub(self.header_bytes);
        let blocks = blocks.div_ceil(self.block_bytes);
        let mut order = Vec::new();
        if self.header().reused_blocks > 0 {
            order.extend(0..blocks);
            order.sort_by_key(|&block| lane_and_sequence(self.block(block)));
        }
        Records { spool: *self, blocks, order, turn: 0, block: None, told_cut: false }
    }

    fn block(&self, index: usize) -> &'a [u8] {
        let start = self.header_bytes + index * self.block_bytes;
        let rest = self.bytes.get(start..).unwrap_or_default();
        &rest[..self.block_bytes.min(rest.len())]
    }

    /// How many bytes the header and each block have.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.header_bytes, self.block_bytes)
    }
}

/// The lane of a block, and its place there.
pub(crate) fn lane_and_sequence(head: &[u8]) -> (u32, u32) {
    (number(head, 4), number(head, 8))
}

/// The iterator of [`Spool::records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    spool: Spool<'a>,
    blocks: usize,
    /// In which order the blocks come; empty: as they stand.
    order: Vec<usize>,
    turn: usize,
    /// The block that is being read.
    block: Option<BlockRecords<'a>>,
    told_cut: bool,
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(index) = self.index() else { return self.file_cut() };
            let start = self.spool.header_bytes + index * self.spool.block_bytes;
            let spool = self.spool;
            let new = || BlockRecords::new(spool.block(index), index);
            match self.block.get_or_insert_with(new).next() {
                Some(Ok(record)) => return Some(Ok(record)),
                Some(Err((at, reason))) => return Some(Err(damage(start + at, reason))),
                None => (self.block, self.turn) = (None, self.turn + 1),
            }
        }
    }
}

impl Records<'_> {
    /// The block that is read now; `None` after the last.
    fn index(&self) -> Option<usize> {
        let in_order = self.order.get(self.turn).copied();
        in_order.or((self.turn < self.blocks).then_some(self.turn))
    }

    /// At the end of the bytes: were more blocks promised?
    fn file_cut(&mut self) -> Option<Result<Record, Damage>> {
        let promised = number::<u64>(self.spool.bytes, layout::header::RESERVED_BLOCKS);
        let promised = promised
            .saturating_mul(self.spool.block_bytes as u64)
            .saturating_add(self.spool.header_bytes as u64);
        let length = self.spool.bytes.len();
        if self.told_cut || promised <= length as u64 {
            return None;
        }
        self.told_cut = true;
        Some(Err(damage(length, DamageReason::FileCut)))
    }
}

/// The records of one block, and damage at offsets in it.
#[derive(Clone, Debug)]
pub(crate) struct BlockRecords<'a> {
    block: &'a [u8],
    index: usize,
    /// Zero before its head was looked at, `None` after its end.
    at: Option<usize>,
}

impl<'a> BlockRecords<'a> {
    pub(crate) fn new(block: &'a [u8], index: usize) -> Self {
        Self { block, index, at: Some(0) }
    }

    /// Looks at the head, once. A damaged one does not hide the records.
    pub(crate) fn enter(&mut self) -> Option<(usize, DamageReason)> {
        if self.at != Some(0) {
            return None;
        }
        self.at = Some(BLOCK_HEAD_BYTES);
        match head_state(self.block, self.index) {
            Head::Whole => {}
            Head::Unused => self.at = None,
            Head::Damaged => return Some((0, DamageReason::BlockHead)),
        }
        None
    }

    /// Where the next record stands; `None` after the last.
    pub(crate) fn at(&self) -> Option<usize> {
        self.at
    }

    /// Goes on behind so many bytes of records.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = self.at.map(|at| at + bytes);
    }

    pub(crate) fn next(&mut self) -> Option<Result<Record, (usize, DamageReason)>> {
        if let Some(damage) = self.enter() {
            return Some(Err(damage));
        }
        let at = self.at?;
        let bytes = self.block.get(at..).unwrap_or_default();
        let length = match bytes.first() {
            Some(0) | None => 0,
            Some(_) if bytes.len() < UNIT => 0,
            Some(_) => record_bytes(bytes),
        };
        if length > 0 && length <= bytes.len() {
            self.at = Some(at + length);
            return Some(record::decode(&bytes[..length]).ok_or((at, DamageReason::WrongCount)));
        }
        // The length cannot be trusted, so neither can what follows.
        self.at = None;
        let reason = match bytes {
            [] => return None,
            [0, ..] if bytes.len() >= UNIT => {
                let unfinished = bytes.iter().any(|&b| b != 0);
                return unfinished.then_some(Err((at, DamageReason::Uncommitted)));
            }
            _ => DamageReason::CutRecord,
        };
        Some(Err((at, reason)))
    }
}

enum Head {
    Whole,
    Unused,
    Damaged,
}

fn head_state(block: &[u8], index: usize) -> Head {
    let Some(head) = block.get(..BLOCK_HEAD_BYTES) else {
        return if block.iter().all(|&b| b == 0) { Head::Unused } else { Head::Damaged };
    };
    let [magic, lane, sequence, own_index, check] =
        std::array::from_fn(|i| number::<u32>(head, 4 * i));
    if magic == layout::FREE_BLOCK_MAGIC {
        return Head::Unused;
    }
    let whole = magic == layout::BLOCK_MAGIC
        && check == layout::block_check(lane, sequence, own_index)
        && own_index as usize == index;
    if whole {
        Head::Whole
    } else if block.iter().all(|&b| b == 0) {
        Head::Unused
    } else {
        Head::Damaged
    }
}

fn record_bytes(record: &[u8]) -> usize {
    if record[0] < layout::FIRST_LONG_KIND {
        return UNIT;
    }
    usize::from(number::<u16>(record, 2)) * UNIT
}

/// How many bytes of a block hold its head and whole records.
pub(crate) fn committed_bytes(block: &[u8]) -> usize {
    let records = block.get(BLOCK_HEAD_BYTES..).unwrap_or_default();
    (BLOCK_HEAD_BYTES + whole_records(records)).min(block.len())
}

/// How many bytes at the front are whole records.
pub(crate) fn whole_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(length) = whole_record(&bytes[at..]) {
        at += length;
    }
    at
}

/// The length of the record at the front, if it is whole.
pub(crate) fn whole_record(bytes: &[u8]) -> Option<usize> {
    let is_there = bytes.len() >= UNIT && bytes[0] != 0;
    let length = is_there.then(|| record_bytes(bytes))?;
    (length > 0 && length <= bytes.len()).then_some(length)
}

/// The lane that a block belongs to, and its place there.
pub(crate) fn owner(head: &[u8], index: usize) -> Option<(u32, u32)> {
    let is_whole = matches!(head_state(head, index), Head::Whole);
    is_whole.then(|| (number(head, 4), number(head, 8)))
}

fn damage(offset: usize, reason: DamageReason) -> Damage {
    Damage { offset, reason }
}

/// A number at a fixed place; zero where the bytes end before it.
pub(crate) fn number<T: Field + Default>(bytes: &[u8], at: usize) -> T {
    bytes.get(at..at + T::BYTES).and_then(T::take).unwrap_or_default()
}

/// Zero-terminated text in a field of the header.
fn text(bytes: &[u8], at: usize, length: usize) -> String {
    let field = bytes.get(at..at + length).unwrap_or_default();
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
