//! What a record says, once its bytes are known to be whole. `FORMAT.md` explains the fields;
//! `reader` finds the records in a file.

#![forbid(unsafe_code)]

use crate::layout::{self, Field};

/// One fact of the recording. Field meanings: `FORMAT.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Op(Op),
    ThreadShare(Share),
    GraphRunBegin(layout::GraphRunBegin),
    GraphRunEnd(layout::GraphRunEnd),
    SplitBegin(layout::SplitBegin),
    SplitEnd(layout::SplitEnd),
    SchedulerBackend(layout::SchedulerBackend),
    Backend(layout::Backend),
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
        nodes: Vec<u32>,
    },
    Fusion {
        shape: u32,
        position: u32,
        members: Vec<u32>,
    },
    Copy(layout::CopyEvent),
    DeviceClock(layout::DeviceClock),
    DeviceWork(layout::DeviceWork),
    HostTask(layout::HostTask),
    BatchBegin {
        batch: layout::BatchBegin,
        sequences: Vec<layout::BatchSequence>,
    },
    BatchEnd(layout::BatchEnd),
    ContextChange(layout::ContextChange),
    Buffer {
        buffer: layout::Buffer,
        /// Of the first tensor that was placed in it; empty where none was seen.
        tensor: String,
    },
    Sensor {
        sensor: layout::Sensor,
        /// Of its device.
        name: String,
    },
    Sample(layout::Sample),
    Driver(layout::Driver),
    DeviceMemory(layout::DeviceMemory),
    Transfer(layout::Transfer),
    Machine {
        machine: layout::Machine,
        text: String,
    },
    MemoryKind(layout::MemoryKind),
    Placement {
        placement: layout::Placement,
        /// The kind of memory that each of the node's sources is in, 0 where it is not known.
        sources: Vec<u32>,
        answers: Vec<layout::Answer>,
    },
    ExpertUse {
        of: layout::ExpertUse,
        counts: Vec<layout::ExpertCount>,
    },
    /// A kind that is not read any more, or of a later format; its bytes are skipped.
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

/// `None` when the counts inside contradict the record's length.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    Some(match bytes[0] {
        layout::OpEvent::KIND => Record::Op(Op::decode(bytes)?),
        layout::ThreadShare::KIND => {
            Record::ThreadShare(Share::unshift(layout::ThreadShare::decode(bytes)?))
        }
        layout::GraphRunBegin::KIND => Record::GraphRunBegin(layout::GraphRunBegin::decode(bytes)?),
        layout::GraphRunEnd::KIND => Record::GraphRunEnd(layout::GraphRunEnd::decode(bytes)?),
        layout::SplitBegin::KIND => Record::SplitBegin(layout::SplitBegin::decode(bytes)?),
        layout::SplitEnd::KIND => Record::SplitEnd(layout::SplitEnd::decode(bytes)?),
        layout::SchedulerBackend::KIND => {
            Record::SchedulerBackend(layout::SchedulerBackend::decode(bytes)?)
        }
        layout::Backend::KIND => Record::Backend(layout::Backend::decode(bytes)?),
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
            Record::GraphShape { shape: shape.shape, first: shape.first, nodes }
        }
        layout::Fusion::KIND => {
            let fusion = layout::Fusion::decode(bytes)?;
            let members = numbers(bytes, layout::Fusion::BYTES, fusion.count)?;
            Record::Fusion { shape: fusion.shape, position: fusion.position, members }
        }
        layout::CopyEvent::KIND => Record::Copy(layout::CopyEvent::decode(bytes)?),
        layout::DeviceClock::KIND => Record::DeviceClock(layout::DeviceClock::decode(bytes)?),
        layout::DeviceWork::KIND => Record::DeviceWork(layout::DeviceWork::decode(bytes)?),
        layout::HostTask::KIND => Record::HostTask(layout::HostTask::decode(bytes)?),
        layout::BatchBegin::KIND => decode_batch(bytes)?,
        layout::BatchEnd::KIND => Record::BatchEnd(layout::BatchEnd::decode(bytes)?),
        layout::ContextChange::KIND => Record::ContextChange(layout::ContextChange::decode(bytes)?),
        layout::Sample::KIND => Record::Sample(layout::Sample::decode(bytes)?),
        layout::Transfer::KIND => Record::Transfer(layout::Transfer::decode(bytes)?),
        layout::Driver::KIND => Record::Driver(layout::Driver::decode(bytes)?),
        layout::DeviceMemory::KIND => Record::DeviceMemory(layout::DeviceMemory::decode(bytes)?),
        layout::Machine::KIND => {
            let machine = layout::Machine::decode(bytes)?;
            let text = tail_text(bytes, layout::Machine::BYTES, machine.text_bytes)?;
            Record::Machine { machine, text }
        }
        layout::Sensor::KIND => {
            let sensor = layout::Sensor::decode(bytes)?;
            let name = tail_text(bytes, layout::Sensor::BYTES, sensor.name_bytes)?;
            Record::Sensor { sensor, name }
        }
        layout::Buffer::KIND => {
            let buffer = layout::Buffer::decode(bytes)?;
            let tensor = tail_text(bytes, layout::Buffer::BYTES, buffer.name_bytes)?;
            Record::Buffer { buffer, tensor }
        }
        layout::MemoryKind::KIND => Record::MemoryKind(layout::MemoryKind::decode(bytes)?),
        layout::Placement::KIND => decode_placement(bytes)?,
        layout::ExpertUse::KIND => decode_experts(bytes)?,
        kind => Record::Unknown { kind, bytes: bytes.len() },
    })
}

fn decode_text(bytes: &[u8]) -> Option<Record> {
    let head = layout::Text::decode(bytes)?;
    let text = tail_text(bytes, layout::Text::BYTES, head.bytes)?;
    Some(Record::Text { id: head.id, text })
}

/// So many bytes of text behind a record's fixed part.
fn tail_text(bytes: &[u8], at: usize, length: u32) -> Option<String> {
    let text = bytes.get(at..)?.get(..length as usize)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn decode_node(bytes: &[u8]) -> Option<Record> {
    let node = layout::Node::decode(bytes)?;
    let tail = bytes.get(layout::Node::BYTES..)?;
    let tail = tail.get(..usize::from(node.sources) * layout::SOURCE_BYTES)?;
    let sources = tail.chunks_exact(layout::SOURCE_BYTES).filter_map(layout::Source::decode);
    Some(Record::Node { node, sources: sources.collect() })
}

fn decode_batch(bytes: &[u8]) -> Option<Record> {
    const BYTES: usize = layout::BATCH_SEQUENCE_BYTES;
    let batch = layout::BatchBegin::decode(bytes)?;
    let tail = bytes.get(layout::BatchBegin::BYTES..)?;
    let tail = tail.get(..(batch.sequences as usize).checked_mul(BYTES)?)?;
    let sequences = tail.chunks_exact(BYTES).filter_map(layout::BatchSequence::decode).collect();
    Some(Record::BatchBegin { batch, sequences })
}

fn decode_placement(bytes: &[u8]) -> Option<Record> {
    const FIXED: usize = layout::Placement::BYTES;
    let placement = layout::Placement::decode(bytes)?;
    let sources = numbers(bytes, FIXED, placement.sources)?;
    let answers = bytes.get(FIXED + sources.len() * 4..)?;
    let answers = answers.get(..(placement.answers as usize).checked_mul(layout::ANSWER_BYTES)?)?;
    let answers = answers.chunks_exact(layout::ANSWER_BYTES).filter_map(layout::Answer::decode);
    Some(Record::Placement { placement, sources, answers: answers.collect() })
}

fn decode_experts(bytes: &[u8]) -> Option<Record> {
    const BYTES: usize = layout::EXPERT_COUNT_BYTES;
    let of = layout::ExpertUse::decode(bytes)?;
    let tail = bytes.get(layout::ExpertUse::BYTES..)?;
    let tail = tail.get(..(of.count as usize).checked_mul(BYTES)?)?;
    let counts = tail.chunks_exact(BYTES).filter_map(layout::ExpertCount::decode).collect();
    Some(Record::ExpertUse { of, counts })
}

/// `count` numbers after a record's fixed part.
fn numbers(bytes: &[u8], at: usize, count: u32) -> Option<Vec<u32>> {
    let tail = bytes.get(at..)?.get(..(count as usize).checked_mul(4)?)?;
    Some(tail.chunks_exact(4).filter_map(u32::take).collect())
}

impl Op {
    /// Of the bytes of its record.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        layout::OpEvent::decode(bytes).map(Self::unshift)
    }

    #[inline]
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
