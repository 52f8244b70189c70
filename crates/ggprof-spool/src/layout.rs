//! Every number of the format: sizes, kinds, field order. Nothing here reads or
//! writes a file; `FORMAT.md` says what the fields mean.
//!
//! A record's fields are written in the order given here, little-endian,
//! without padding. The assertions below keep the sizes, and
//! `tests/format_document.rs` keeps this file and the document together.

pub use crate::coverage::{Covered, CoveredHow, CoveredWhy, Why};

pub const MAGIC: [u8; 8] = *b"GGPROFSP";
pub const VERSION: u32 = 6;
/// A page of most machines. Where pages are larger, blocks begin in the middle of one.
pub const HEADER_BYTES: usize = 4096;
/// 64 KiB holds some 2,000 ops: a graph or two per block, so lanes rarely ask
/// for a new one, and an idle lane wastes little.
pub const BLOCK_BYTES: usize = 64 * 1024;
pub const BLOCK_HEAD_BYTES: usize = 64;
/// The file grows by this many blocks, 4 MiB: about 130,000 ops.
pub const CHUNK_BLOCKS: usize = 64;
pub const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"GBLK");
/// In place of the magic while a block is emptied to be used again.
pub const FREE_BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"GFRE");
/// The lane whose blocks hold what others refer to by number; see `FORMAT.md`.
pub const DEFINITIONS_LANE: u32 = u32::MAX;
/// The lane of blocks that stand behind those of the agent, by whoever delivers the recording.
pub const APPENDED_LANE: u32 = u32::MAX - 1;
/// Records start at multiples of this and are whole multiples of it long.
pub const UNIT: usize = 32;
/// Kinds from here on carry their length in units; kinds below are one unit.
pub const FIRST_LONG_KIND: u8 = 0x80;
/// The longest text a string record holds; longer ones are cut.
pub const MAX_TEXT_BYTES: usize = 1024;
/// Node numbers per graph-shape record: larger graphs use several records.
pub const SHAPE_PART_NODES: usize = 1024;
pub const MAX_SOURCES: usize = 16;
pub const OP_PARAMS: usize = 16;

/// Byte offsets inside the file header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const HEADER_BYTES: usize = 12;
    pub const BLOCK_BYTES: usize = 16;
    pub const CLOCK: usize = 20;
    pub const PID: usize = 24;
    pub const OPTIONS: usize = 28;
    pub const START_TICKS: usize = 32;
    pub const START_MONOTONIC_NS: usize = 40;
    pub const START_REALTIME_NS: usize = 48;
    pub const RESERVED_BLOCKS: usize = 56;
    pub const END_TICKS: usize = 64;
    pub const STOP_REASON: usize = 72;
    pub const CONTROL: usize = 80;
    pub const ACTIVE: usize = 88;
    pub const MOST_BLOCKS: usize = 96;
    pub const REUSED_BLOCKS: usize = 104;
    pub const GRAPH_RUNS: usize = 112;
    pub const WINDOW: usize = 120;
    pub const LOSSES: usize = 128;
    pub const LOSS_KINDS: usize = 16;
    pub const COMMAND: usize = 256;
    pub const COMMAND_BYTES: usize = 64;
    pub const CPU_NAME: usize = 320;
    pub const CPU_NAME_BYTES: usize = 96;
    pub const AGENT_VERSION: usize = 416;
    pub const AGENT_VERSION_BYTES: usize = 32;
}

/// Bits of the header's `OPTIONS`.
pub const OPTION_THREADS: u32 = 1;
pub const OPTION_SERIALIZE: u32 = 2;
/// Set in a copy of the file that was made while the program ran.
pub const OPTION_SNAPSHOT: u32 = 4;

/// What a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockKind {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    MonotonicNs = 0,
    /// The processor's invariant cycle counter; clock samples give its rate.
    CycleCounter = 1,
}

/// Why recording stopped before the program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StopReason {
    None = 0,
    /// The disk, quota or file-size limit would not hold another chunk.
    NoSpace = 1,
    /// The file could not be opened again to grow it (moved, deleted, chroot).
    FileGone = 2,
    /// The agent met several internal faults and disarmed itself.
    Faults = 3,
}

/// What was asked for while the program ran: the header's `CONTROL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Control {
    /// Nothing: the window decides.
    Window = 0,
    Record = 1,
    Stop = 2,
}

/// Where the recording's window stands: the header's `WINDOW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Window {
    Open = 0,
    NotYet = 1,
    Over = 2,
}

impl Control {
    pub fn of(word: u64) -> Control {
        match word {
            1 => Control::Record,
            2 => Control::Stop,
            _ => Control::Window,
        }
    }

    /// Whether to record, given this request and such a window.
    pub fn records(self, window: Window) -> bool {
        match self {
            Control::Window => window == Window::Open,
            Control::Record => true,
            Control::Stop => false,
        }
    }
}

impl Window {
    pub fn of(word: u64) -> Window {
        match word {
            1 => Window::NotYet,
            2 => Window::Over,
            _ => Window::Open,
        }
    }
}

/// Indices into the header's loss counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum LossKind {
    /// Records not written because there was no block.
    NoBlock = 0,
    /// Graph runs not recorded because every lane was busy.
    NoLane = 1,
    /// Op shares that did not fit a thread's log.
    LogFull = 2,
    /// Threads for whose shares there was no log: all were taken, or there was no memory.
    NoLog = 3,
    /// Graph nodes beyond the recordable graph size.
    GraphTooLarge = 4,
    /// Ops seen outside any graph run the agent knows.
    OpOutsideRun = 5,
    /// Faults inside the agent that the guard caught.
    Fault = 6,
    /// Backends beyond the number the agent can follow.
    NoBackendSlot = 7,
    /// Node descriptions beyond the interner's bound.
    InternerFull = 8,
    /// Work of a device whose records its tracing library had no room for.
    DeviceRecords = 9,
    /// Forked children that used ggml and have no recording of their own; they count
    /// themselves in that of their parent.
    ForkedChild = 10,
    /// Ops of graphs of which only their number is known: it fits no known order of nodes, or
    /// the graph was broken off.
    UnclearTicks = 11,
}

pub const MEASURED_DEVICE: u8 = 0;
pub const MEASURED_HOST: u8 = 1;
pub const MEASURED_SERIALIZED: u8 = 2;
pub const MEASURED_MODELLED: u8 = 3;
/// Where an op's record names its split.
pub const OP_SPLIT_AT: usize = 4;
/// Set in an op's flags when a fusion record names further nodes.
pub const OP_FUSED: u8 = 1 << 2;
/// An op's times are stored shifted right by `flags >> OP_SHIFT_BIT`.
pub const OP_SHIFT_BIT: u8 = 3;

pub const COPY_HOST_TO_HOST: u8 = 0;
pub const COPY_HOST_TO_DEVICE: u8 = 1;
pub const COPY_DEVICE_TO_HOST: u8 = 2;
pub const COPY_DEVICE_TO_DEVICE: u8 = 3;
/// The call returned before the copy need have finished.
pub const COPY_ASYNC: u8 = 1 << 2;
/// Part of a tensor only (runs of experts).
pub const COPY_PARTIAL: u8 = 1 << 3;
/// The tensor is one that the program fills before it computes the graph.
pub const COPY_INPUT: u8 = 1 << 4;

/// What a device did, in the flags of its work.
pub const WORK_KERNEL: u8 = 0;
pub const WORK_COPY: u8 = 1;
pub const WORK_FILL: u8 = 2;
/// All work of a split together, when its parts were not recorded.
pub const WORK_WHOLE_SPLIT: u8 = 3;
/// Nothing kept it apart from the work of its group: the times overlap.
pub const WORK_CONCURRENT: u8 = 1 << 2;
/// The first use of its kernel: the driver may have compiled or loaded it meanwhile.
pub const WORK_FIRST_USE: u8 = 1 << 3;
/// It ran, but the device gave no time.
pub const WORK_UNTIMED: u8 = 1 << 4;
/// Kept apart from all other work by barriers of the agent's own.
pub const WORK_SERIALIZED: u8 = 1 << 5;
/// The direction of copied bytes (`COPY_*`), from this bit on.
pub const WORK_DIRECTION_BIT: u8 = 6;
/// The position of work that belongs to no node.
pub const NO_NODE: u32 = u32::MAX;

/// How a device's clock was paired with the host's.
pub const DEVICE_CLOCK_CALIBRATED: u8 = 0;
/// Between the submission of work and its end being seen.
pub const DEVICE_CLOCK_BOUNDED: u8 = 1;

/// What a host task was.
pub const TASK_PIPELINE_COMPILE: u8 = 0;

/// The batch is for the encoder of a model.
pub const BATCH_ENCODE: u8 = 1 << 0;
/// It holds embeddings instead of tokens.
pub const BATCH_EMBEDDINGS: u8 = 1 << 1;
/// It names no sequences: all tokens are of sequence 0.
pub const BATCH_ONE_SEQUENCE: u8 = 1 << 2;
/// The program says of no token whether it wants a result: libllama decides.
pub const BATCH_OUTPUTS_UNSAID: u8 = 1 << 3;
/// Of the batch only the number of tokens could be read, or there are more sequences than listed.
pub const BATCH_PARTLY_KNOWN: u8 = 1 << 4;
/// Most sequences that a batch's record lists.
pub const BATCH_MOST_SEQUENCES: usize = 64;

/// What happened to a context.
pub const CONTEXT_CLEARED: u8 = 0;
pub const CONTEXT_REMOVED: u8 = 1;
pub const CONTEXT_SHIFTED: u8 = 2;
pub const CONTEXT_COPIED: u8 = 3;
pub const CONTEXT_WARM_UP: u8 = 4;
pub const CONTEXT_WARMED_UP: u8 = 5;
pub const CONTEXT_FREED: u8 = 6;

/// The memory of a buffer is the host's.
pub const BUFFER_ON_HOST: u32 = 1;
/// What a buffer is for, where ggml cannot be asked; otherwise ggml's own number.
pub const BUFFER_USAGE_UNKNOWN: u8 = u8::MAX;

/// A kind of memory is the host's.
pub const MEMORY_ON_HOST: u32 = 1;

/// A backend could compute the node.
pub const ANSWER_SUPPORTS: u32 = 1;
/// It would take the node over although its weights are in the host's memory.
pub const ANSWER_OFFLOADS: u32 = 1 << 1;
/// Whether it would take it over could not be asked.
pub const ANSWER_OFFLOAD_UNKNOWN: u32 = 1 << 2;

/// Nobody but the system's administrator may read the sensor.
pub const SENSOR_FORBIDDEN: u32 = 1;

/// Bits of a [`Transfer`]'s flags: the bytes came from the other end; the connection was seen from its
/// beginning.
pub const TRANSFER_RECEIVED: u8 = 1;
pub const TRANSFER_WHOLE: u8 = 2;

/// What a [`Machine`] record tells of.
pub const MACHINE_SYSTEM: u8 = 1;
pub const MACHINE_DRIVER: u8 = 2;

/// No backend, scheduler, string, run …: numbering starts at 1.
pub const NONE: u32 = 0;

/// A field that knows its little-endian bytes.
pub trait Field: Copy {
    const BYTES: usize;
    fn put(self, out: &mut [u8]);
    fn take(bytes: &[u8]) -> Option<Self>;
}

macro_rules! int_fields {
    ($($int:ty),*) => {$(
        impl Field for $int {
            const BYTES: usize = size_of::<$int>();
            #[inline(always)]
            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
            #[inline(always)]
            fn take(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$int>::from_le_bytes)
            }
        }
    )*};
}
int_fields!(u8, u16, u32, u64, i32, i64);

impl<T: Field + Default, const N: usize> Field for [T; N] {
    const BYTES: usize = N * T::BYTES;
    #[inline(always)]
    fn put(self, out: &mut [u8]) {
        for (value, out) in self.into_iter().zip(out.chunks_exact_mut(T::BYTES)) {
            value.put(out);
        }
    }
    #[inline(always)]
    fn take(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::BYTES {
            return None;
        }
        let mut values = [T::default(); N];
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(T::BYTES)) {
            *value = T::take(bytes)?;
        }
        Some(values)
    }
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $bytes:literal {
        $($(#[$field_doc:meta])* $field:ident : $ty:ty),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name { $($(#[$field_doc])* pub $field: $ty),* }

            impl $name {
                pub const KIND: u8 = $kind;
                pub const BYTES: usize = $bytes;

                #[inline(always)]
                pub fn encode(&self) -> [u8; $bytes] {
                    let mut out = [0; $bytes];
                    out[0] = $kind;
                    let mut at = 1;
                    $(
                        self.$field.put(&mut out[at..at + <$ty as Field>::BYTES]);
                        at += <$ty as Field>::BYTES;
                    )*
                    debug_assert!(at == $bytes);
                    out
                }

                /// `None` when the bytes are too few; the kind is not looked at.
                pub fn decode(bytes: &[u8]) -> Option<Self> {
                    let mut at = 1;
                    $(
                        let $field = <$ty as Field>::take(bytes.get(at..at + <$ty as Field>::BYTES)?)?;
                        at += <$ty as Field>::BYTES;
                    )*
                    let _ = at;
                    Some(Self { $($field),* })
                }
            }

            const _: () = assert!(1 $(+ <$ty as Field>::BYTES)* == $bytes);
            const _: () = assert!($kind >= FIRST_LONG_KIND || $bytes == UNIT);
        )*

        /// Name, kind and bytes of each record, for the document's test.
        pub const RECORDS: &[(&str, u8, usize)] = &[$((stringify!($name), $kind, $bytes)),*];
    };
}

records! {
    /// One node computed, all threads folded together. Times are relative to
    /// the split's start and shifted (see `OP_SHIFT_BIT`).
    OpEvent = 0x01, 32 {
        flags: u8, threads: u16, split: u32, position: u32, start: u32,
        duration: u32, busy_sum: u32, busy_max: u32, wait_sum: u32,
    }
    /// One thread's part of a node; only when asked for.
    ThreadShare = 0x02, 32 {
        flags: u8, thread: u16, split: u32, position: u32, start: u32,
        duration: u32, inner_wait: u32, after_wait: u32, os_thread: u32,
    }
    GraphRunBegin = 0x03, 32 {
        flags: u8, reserved: u16, run: u32, scheduler: u32, os_thread: u32, ticks: u64,
        number: u64,
    }
    GraphRunEnd = 0x04, 32 {
        flags: u8, reserved: u16, run: u32, status: i32, splits: u32, ticks: u64, reserved2: u64,
    }
    SplitBegin = 0x05, 32 {
        flags: u8, index: u16, split: u32, run: u32, backend: u32, ticks: u64,
        shape: u32, nodes: u32,
    }
    SplitEnd = 0x06, 32 {
        flags: u8, threads: u16, split: u32, status: i32, ops: u32, ticks: u64, agent_ticks: u64,
    }
    SchedulerBackend = 0x08, 32 {
        flags: u8, index: u16, scheduler: u32, backend: u32, reserved: [u32; 5],
    }
    Backend = 0x0b, 32 {
        device_type: u8, reserved: u16, backend: u32, instance: u32, name: u32,
        device: u32, description: u32, library: u32, path: u32,
    }
    TypeEntry = 0x0d, 32 {
        flags: u8, reserved: u16, instance: u32, type_id: u32, name: u32,
        block_elements: u32, block_bytes: u32, reserved2: u64,
    }
    ClockSample = 0x0e, 32 {
        flags: u8, reserved: u16, uncertainty_ticks: u32, ticks: u64, monotonic_ns: u64,
        realtime_ns: u64,
    }
    Coverage = 0x0f, 32 {
        how: u8, what: u16, backend: u32, library: u32, detail: u32, count: u32, why: u32,
        reserved: u32, instance: u32,
    }
    Instance = 0x10, 32 {
        flags: u8, reserved: u16, instance: u32, library: u32, version: u32, commit: u32,
        tensor_bytes: u32, path: u32, llama: u32,
    }
    Synchronize = 0x11, 32 {
        flags: u8, reserved: u16, scheduler: u32, reserved2: u32, os_thread: u32,
        start: u64, end: u64,
    }
    /// A device's clock and the host's at one moment; the device's ticks are
    /// extended to 64 bits.
    DeviceClock = 0x12, 32 {
        flags: u8, reserved: u16, clock: u32, uncertainty_ns: u32, tick_ps: u32,
        device_ticks: u64, monotonic_ns: u64,
    }
    /// Work of the host that a device waits for and that is not an op.
    HostTask = 0x13, 32 {
        what: u8, reserved: u16, split: u32, name: u32, os_thread: u32, start: u64, end: u64,
    }
    /// The return of the call that a [`BatchBegin`] is of.
    BatchEnd = 0x14, 32 {
        flags: u8, reserved: u16, call: u32, status: i32, context: u32, ticks: u64, reserved2: u64,
    }
    /// What the program did to the memory of a context.
    ContextChange = 0x17, 32 {
        what: u8, reserved: u16, context: u32, sequence: i32, first: i32, last: i32, other: i32,
        ticks: u64,
    }
    /// A kind of memory that tensors are in.
    MemoryKind = 0x18, 32 {
        usage: u8, reserved: u16, memory: u32, type_name: u32, device: u32, flags: u32,
        reserved2: [u32; 3],
    }
    /// The Vulkan driver of a backend's device, with the numbers that it gives itself.
    Driver = 0x19, 32 {
        flags: u8, reserved: u16, backend: u32, vendor: u32, version: u32, reserved2: [u32; 4],
    }
    /// What a sensor said at a moment.
    Sample = 0x16, 32 {
        flags: u8, reserved: u16, sensor: u32, value: u64, monotonic_ns: u64, reserved2: u64,
    }
    /// A text, given once; followed by `bytes` bytes of UTF-8, zero-filled to a unit.
    Text = 0x80, 16 {
        flags: u8, units: u16, id: u32, bytes: u32, reserved: u32,
    }
    /// A node, described once; followed by `sources` times [`Source`].
    Node = 0x81, 192 {
        sources: u8, units: u16, node: u32, instance: u32, op: u32, op_name: u32, op_detail: u32,
        name: u32, type_id: u32, flags: u32, view_of: u32, reserved: [u32; 6],
        ne: [i64; 4], nb: [u64; 4], op_params: [u32; OP_PARAMS],
    }
    /// Which nodes a graph holds, in order; followed by `count` node numbers.
    GraphShape = 0x82, 32 {
        flags: u8, units: u16, shape: u32, first: u32, count: u32, total: u32, reserved: [u32; 3],
    }
    /// Nodes that ran as one; followed by `count` positions, the first its own.
    Fusion = 0x83, 32 {
        flags: u8, units: u16, shape: u32, position: u32, count: u32, reserved: [u32; 4],
    }
    CopyEvent = 0x84, 64 {
        flags: u8, units: u16, run: u32, source: u32, target: u32, source_backend: u32,
        target_backend: u32, os_thread: u32, source_memory: u16, target_memory: u16, bytes: u64,
        start: u64, end: u64, offset: u64,
    }
    /// One kernel, copy or fill of a device.
    DeviceWork = 0x85, 64 {
        flags: u8, units: u16, split: u32, position: u32, name: u32, clock: u32, stream: u32,
        backend: u32, group: u32, start: u64, end: u64, bytes: u64, cause: u64,
    }
    /// The program hands libllama a batch; followed by `sequences` times [`BatchSequence`].
    BatchBegin = 0x86, 40 {
        flags: u8, units: u16, call: u32, context: u32, os_thread: u32, tokens: u32, outputs: u32,
        sequences: u32, ticks: u64, reserved: u32,
    }
    /// A buffer of ggml's, again whenever more is known of it; followed by `name_bytes` bytes:
    /// the name of the first tensor in it.
    Buffer = 0x87, 64 {
        usage: u8, units: u16, buffer: u32, type_name: u32, device: u32, flags: u32,
        name_bytes: u32, bytes: u64, born_ns: u64, died_ns: u64, reserved: [u32; 4],
    }
    /// Something that is read now and then; followed by `name_bytes` bytes: the device's name.
    Sensor = 0x88, 32 {
        quantity: u8, units: u16, sensor: u32, device: u32, flags: u32, name_bytes: u32,
        every_ns: u64, reserved: u32,
    }
    /// What the machine runs on; followed by `text_bytes` bytes.
    Machine = 0x8b, 32 {
        what: u8, units: u16, text_bytes: u32, reserved: [u32; 6],
    }
    /// Bytes that a library with ggml's RPC sent or received in one call.
    Transfer = 0x8c, 64 {
        flags: u8, units: u16, os_thread: u32, ports: u32, reserved: u32, connection: u64,
        offset: u64, bytes: u64, start: u64, end: u64, reserved2: u64,
    }
    /// Where the tensors of a node are that the processor computed, and what other backends say
    /// of it; followed by `sources` kinds of memory and `answers` times [`Answer`].
    Placement = 0x89, 32 {
        flags: u8, units: u16, node: u32, backend: u32, memory: u32, sources: u32, answers: u32,
        reserved: [u32; 2],
    }
    /// Which experts a node chose from; followed by `count` times [`ExpertCount`].
    ExpertUse = 0x8a, 32 {
        flags: u8, units: u16, split: u32, position: u32, experts: u32, tokens: u32,
        tokens_read: u32, count: u32, reserved: u32,
    }
}

/// What a backend says of a node, inside its [`Placement`] record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub backend: u32,
    /// `ANSWER_*`.
    pub says: u32,
}

pub const ANSWER_BYTES: usize = 8;

impl Answer {
    pub fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut out = [0; ANSWER_BYTES];
        [self.backend, self.says].put(&mut out);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [backend, says] = Field::take(bytes)?;
        Some(Answer { backend, says })
    }
}

/// How often an expert was chosen, inside an [`ExpertUse`] record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpertCount {
    pub expert: u16,
    pub uses: u16,
}

pub const EXPERT_COUNT_BYTES: usize = 4;

impl ExpertCount {
    pub fn encode(&self) -> [u8; EXPERT_COUNT_BYTES] {
        let mut out = [0; EXPERT_COUNT_BYTES];
        [self.expert, self.uses].put(&mut out);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [expert, uses] = Field::take(bytes)?;
        Some(ExpertCount { expert, uses })
    }
}

/// One sequence of a batch, inside its [`BatchBegin`] record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSequence {
    pub sequence: i32,
    /// Positions of its first and last token in the batch; -1 where the program gave none.
    pub first: i32,
    pub last: i32,
    pub tokens: u32,
    /// Tokens that results were asked for.
    pub outputs: u32,
}

pub const BATCH_SEQUENCE_BYTES: usize = 20;
const _: () = assert!(size_of::<BatchSequence>() == BATCH_SEQUENCE_BYTES);

impl BatchSequence {
    pub fn encode(&self) -> [u8; BATCH_SEQUENCE_BYTES] {
        let mut out = [0; BATCH_SEQUENCE_BYTES];
        [self.sequence, self.first, self.last].put(&mut out[..12]);
        [self.tokens, self.outputs].put(&mut out[12..]);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [sequence, first, last] = Field::take(bytes.get(..12)?)?;
        let [tokens, outputs] = Field::take(bytes.get(12..BATCH_SEQUENCE_BYTES)?)?;
        Some(BatchSequence { sequence, first, last, tokens, outputs })
    }
}

/// One source of a node, inside its [`Node`] record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub type_id: u32,
    pub name: u32,
    /// How many nodes back in the same graph it was computed; 0: not in it.
    pub nodes_back: u32,
    /// Slot number in the node's `src[]`: slots may be empty in between.
    pub slot: u32,
    pub ne: [i64; 4],
    pub nb: [u64; 4],
}

pub const SOURCE_BYTES: usize = 80;
const _: () = assert!(size_of::<Source>() == SOURCE_BYTES);

impl Source {
    pub fn encode(&self) -> [u8; SOURCE_BYTES] {
        let mut out = [0; SOURCE_BYTES];
        [self.type_id, self.name, self.nodes_back, self.slot].put(&mut out[..16]);
        self.ne.put(&mut out[16..48]);
        self.nb.put(&mut out[48..]);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [type_id, name, nodes_back, slot] = Field::take(bytes.get(..16)?)?;
        let (ne, nb) = (Field::take(bytes.get(16..48)?)?, Field::take(bytes.get(48..80)?)?);
        Some(Source { type_id, name, nodes_back, slot, ne, nb })
    }
}

/// The check word of a block head.
pub fn block_check(lane: u32, sequence: u32, index: u32) -> u32 {
    let mixed = (u64::from(lane) << 32 | u64::from(sequence)) ^ (u64::from(index) << 17);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
}

/// Units a record of so many bytes takes.
pub const fn units_for(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}
