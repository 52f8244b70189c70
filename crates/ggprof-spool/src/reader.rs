//! Bytes to records. Any bytes: a torn, cut or damaged file gives the records
//! that are whole, and says where the others were.
//!
//! Records come in file order, not in time order: several threads write side by
//! side, each into blocks of its own, so a text or node may be defined in a
//! later block than its first use. Consumers gather the tables first.

#![forbid(unsafe_code)]

use crate::layout::{self, BLOCK_HEAD_BYTES, Field, UNIT};

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
    pub start_ticks: u64,
    pub start_monotonic_ns: u64,
    pub start_realtime_ns: u64,
    /// Zero when the program ended without a normal exit.
    pub end_ticks: u64,
    /// See [`layout::StopReason`]; 0 when recording went on to the end.
    pub stop_reason: u64,
    pub reserved_blocks: u64,
    /// Indexed by [`layout::LossKind`].
    pub losses: [u64; layout::header::LOSS_KINDS],
    pub command: String,
    pub cpu_name: String,
    pub agent_version: String,
}

/// One fact of the recording. Field meanings: `FORMAT.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Op(Op),
    ThreadShare(Share),
    GraphRunBegin(layout::GraphRunBegin),
    GraphRunEnd(layout::GraphRunEnd),
    SplitBegin(layout::SplitBegin),
    SplitEnd(layout::SplitEnd),
    SchedulerNew(layout::SchedulerNew),
    SchedulerBackend(layout::SchedulerBackend),
    SchedulerReset(layout::SchedulerReset),
    SchedulerFree(layout::SchedulerFree),
    Backend(layout::Backend),
    BackendFree(layout::BackendFree),
    Type(layout::TypeEntry),
    Clock(layout::ClockSample),
    Coverage(layout::Coverage),
    Instance(layout::Instance),
    Synchronize(layout::Synchronize),
    Text {
        id: u32,
        text: String,
    },
    Node {
        node: layout::Node,
        sources: Vec<layout::Source>,
    },
    GraphShape {
        shape: u32,
        first: u32,
        total: u32,
        nodes: Vec<u32>,
    },
    Fusion {
        shape: u32,
        position: u32,
        members: Vec<u32>,
    },
    Copy(layout::CopyEvent),
    /// A kind of a later format; its bytes are passed over.
    Unknown {
        kind: u8,
        bytes: usize,
    },
}

/// An op event with its times unshifted: ticks after the split's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub split: u32,
    /// The node's place in the split's graph shape.
    pub position: u32,
    /// One of `MEASURED_*`.
    pub measured: u8,
    pub fused: bool,
    pub threads: u16,
    pub start: u64,
    pub duration: u64,
    pub busy_sum: u64,
    pub busy_max: u64,
    pub wait_sum: u64,
    /// Times are exact to this many ticks (1 unless the op ran for seconds).
    pub resolution: u64,
}

/// One thread's part of an op, times as in [`Op`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub split: u32,
    pub position: u32,
    pub thread: u16,
    pub os_thread: u32,
    pub start: u64,
    /// Until the thread had nothing more to do, waits at inner barriers included.
    pub duration: u64,
    pub inner_wait: u64,
    pub after_wait: u64,
}

/// A place in the file that could not be read as the format says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    pub offset: usize,
    pub reason: DamageReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageReason {
    /// The head of a block is wrong; its records are tried all the same.
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
            start_ticks: number(self.bytes, at::START_TICKS),
            start_monotonic_ns: number(self.bytes, at::START_MONOTONIC_NS),
            start_realtime_ns: number(self.bytes, at::START_REALTIME_NS),
            end_ticks: number(self.bytes, at::END_TICKS),
            stop_reason: number(self.bytes, at::STOP_REASON),
            reserved_blocks: number(self.bytes, at::RESERVED_BLOCKS),
            losses: std::array::from_fn(|i| number(self.bytes, at::LOSSES + 8 * i)),
            command: text(self.bytes, at::COMMAND, at::COMMAND_BYTES),
            cpu_name: text(self.bytes, at::CPU_NAME, at::CPU_NAME_BYTES),
            agent_version: text(self.bytes, at::AGENT_VERSION, at::AGENT_VERSION_BYTES),
        }
    }

    /// Every record of every block, in file order.
    pub fn records(&self) -> Records<'a> {
        Records { spool: *self, block: 0, at: 0, told_cut: false }
    }
}

/// The iterator of [`Spool::records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    spool: Spool<'a>,
    block: usize,
    /// Offset inside the block; zero before its head was looked at.
    at: usize,
    told_cut: bool,
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(start) = self.block_start() else { return self.file_cut() };
            let rest = &self.spool.bytes[start..];
            let block = &rest[..self.spool.block_bytes.min(rest.len())];
            if self.at == 0 {
                self.at = BLOCK_HEAD_BYTES;
                match head_state(block, self.block) {
                    Head::Whole => {}
                    Head::Unused => self.next_block(),
                    Head::Damaged => return Some(Err(damage(start, DamageReason::BlockHead))),
                }
                continue;
            }
            let at = self.at;
            let Some(record) = block.get(at..).filter(|r| r.len() >= UNIT) else {
                let cut = block.len() > at;
                self.next_block();
                if cut {
                    return Some(Err(damage(start + at, DamageReason::CutRecord)));
                }
                continue;
            };
            if record[0] == 0 {
                self.next_block();
                if record.iter().any(|&b| b != 0) {
                    return Some(Err(damage(start + at, DamageReason::Uncommitted)));
                }
                continue;
            }
            let length = record_bytes(record);
            if length == 0 || length > record.len() {
                // The length cannot be trusted, so neither can what follows.
                self.next_block();
                return Some(Err(damage(start + at, DamageReason::CutRecord)));
            }
            self.at += length;
            return Some(
                decode(&record[..length]).ok_or(damage(start + at, DamageReason::WrongCount)),
            );
        }
    }
}

impl Records<'_> {
    fn block_start(&self) -> Option<usize> {
        let start = self
            .block
            .checked_mul(self.spool.block_bytes)
            .and_then(|blocks| blocks.checked_add(self.spool.header_bytes))?;
        (start < self.spool.bytes.len()).then_some(start)
    }

    fn next_block(&mut self) {
        self.block += 1;
        self.at = 0;
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

/// `None` when the counts inside contradict the record's length.
fn decode(bytes: &[u8]) -> Option<Record> {
    Some(match bytes[0] {
        layout::OpEvent::KIND => Record::Op(Op::unshift(layout::OpEvent::decode(bytes)?)),
        layout::ThreadShare::KIND => {
            Record::ThreadShare(Share::unshift(layout::ThreadShare::decode(bytes)?))
        }
        layout::GraphRunBegin::KIND => Record::GraphRunBegin(layout::GraphRunBegin::decode(bytes)?),
        layout::GraphRunEnd::KIND => Record::GraphRunEnd(layout::GraphRunEnd::decode(bytes)?),
        layout::SplitBegin::KIND => Record::SplitBegin(layout::SplitBegin::decode(bytes)?),
        layout::SplitEnd::KIND => Record::SplitEnd(layout::SplitEnd::decode(bytes)?),
        layout::SchedulerNew::KIND => Record::SchedulerNew(layout::SchedulerNew::decode(bytes)?),
        layout::SchedulerBackend::KIND => {
            Record::SchedulerBackend(layout::SchedulerBackend::decode(bytes)?)
        }
        layout::SchedulerReset::KIND => {
            Record::SchedulerReset(layout::SchedulerReset::decode(bytes)?)
        }
        layout::SchedulerFree::KIND => Record::SchedulerFree(layout::SchedulerFree::decode(bytes)?),
        layout::Backend::KIND => Record::Backend(layout::Backend::decode(bytes)?),
        layout::BackendFree::KIND => Record::BackendFree(layout::BackendFree::decode(bytes)?),
        layout::TypeEntry::KIND => Record::Type(layout::TypeEntry::decode(bytes)?),
        layout::ClockSample::KIND => Record::Clock(layout::ClockSample::decode(bytes)?),
        layout::Coverage::KIND => Record::Coverage(layout::Coverage::decode(bytes)?),
        layout::Instance::KIND => Record::Instance(layout::Instance::decode(bytes)?),
        layout::Synchronize::KIND => Record::Synchronize(layout::Synchronize::decode(bytes)?),
        layout::Text::KIND => decode_text(bytes)?,
        layout::Node::KIND => decode_node(bytes)?,
        layout::GraphShape::KIND => {
            let shape = layout::GraphShape::decode(bytes)?;
            let nodes = numbers(bytes, layout::GraphShape::BYTES, shape.count)?;
            Record::GraphShape { shape: shape.shape, first: shape.first, total: shape.total, nodes }
        }
        layout::Fusion::KIND => {
            let fusion = layout::Fusion::decode(bytes)?;
            let members = numbers(bytes, layout::Fusion::BYTES, fusion.count)?;
            Record::Fusion { shape: fusion.shape, position: fusion.position, members }
        }
        layout::CopyEvent::KIND => Record::Copy(layout::CopyEvent::decode(bytes)?),
        kind => Record::Unknown { kind, bytes: bytes.len() },
    })
}

fn decode_text(bytes: &[u8]) -> Option<Record> {
    let head = layout::Text::decode(bytes)?;
    let text = bytes.get(layout::Text::BYTES..)?.get(..head.bytes as usize)?;
    Some(Record::Text { id: head.id, text: String::from_utf8_lossy(text).into_owned() })
}

fn decode_node(bytes: &[u8]) -> Option<Record> {
    let node = layout::Node::decode(bytes)?;
    let tail = bytes.get(layout::Node::BYTES..)?;
    let tail = tail.get(..usize::from(node.sources) * layout::SOURCE_BYTES)?;
    let sources = tail.chunks_exact(layout::SOURCE_BYTES).filter_map(layout::Source::decode);
    Some(Record::Node { node, sources: sources.collect() })
}

/// `count` numbers behind a record's fixed part.
fn numbers(bytes: &[u8], at: usize, count: u32) -> Option<Vec<u32>> {
    let tail = bytes.get(at..)?.get(..(count as usize).checked_mul(4)?)?;
    Some(tail.chunks_exact(4).filter_map(u32::take).collect())
}

impl Op {
    fn unshift(raw: layout::OpEvent) -> Self {
        let shift = raw.flags >> layout::OP_SHIFT_BIT;
        let wide = |ticks: u32| u64::from(ticks) << shift;
        Op {
            split: raw.split,
            position: raw.position,
            measured: raw.flags & 3,
            fused: raw.flags & layout::OP_FUSED != 0,
            threads: raw.threads,
            start: wide(raw.start),
            duration: wide(raw.duration),
            busy_sum: wide(raw.busy_sum),
            busy_max: wide(raw.busy_max),
            wait_sum: wide(raw.wait_sum),
            resolution: 1 << shift,
        }
    }
}

impl Share {
    fn unshift(raw: layout::ThreadShare) -> Self {
        let shift = raw.flags >> layout::OP_SHIFT_BIT;
        let wide = |ticks: u32| u64::from(ticks) << shift;
        Share {
            split: raw.split,
            position: raw.position,
            thread: raw.thread,
            os_thread: raw.os_thread,
            start: wide(raw.start),
            duration: wide(raw.duration),
            inner_wait: wide(raw.inner_wait),
            after_wait: wide(raw.after_wait),
        }
    }
}

fn damage(offset: usize, reason: DamageReason) -> Damage {
    Damage { offset, reason }
}

/// A number at a fixed place; zero where the bytes end before it.
fn number<T: Field + Default>(bytes: &[u8], at: usize) -> T {
    bytes.get(at..at + T::BYTES).and_then(T::take).unwrap_or_default()
}

/// Zero-terminated text in a field of the header.
fn text(bytes: &[u8], at: usize, length: usize) -> String {
    let field = bytes.get(at..at + length).unwrap_or_default();
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
