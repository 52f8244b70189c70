//! Every number of the format: sizes, kinds, field order. Nothing here reads or
//! writes a file; `FORMAT.md` says what the fields mean.
//!
//! A record's fields are written in the order given here, little-endian,
//! without padding. The assertions below keep the sizes, and
//! `tests/format_document.rs` keeps this file and the document together.

mod coverage;
mod field;
mod flags;
pub mod header;
mod header_values;
mod parts;

pub use coverage::{Covered, CoveredHow, CoveredWhy, Why};
pub use field::Field;
pub use flags::*;
pub use header_values::*;
pub use parts::*;

pub const MAGIC: [u8; 8] = *b"GGPROFSP";
pub const VERSION: u32 = 7;
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

/// No backend, scheduler, string, run …: numbering starts at 1.
pub const NONE: u32 = 0;

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
                #[inline]
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
        how: u8, what: u16, backend: u32, library: u32, detail: u32, reserved: u32, why: u32,
        reserved2: u32, instance: u32,
    }
    Instance = 0x10, 32 {
        flags: u8, reserved: u16, instance: u32, library: u32, version: u32, commit: u32,
        reserved2: u32, path: u32, llama: u32,
    }
    Synchronize = 0x11, 32 {
        flags: u8, reserved: u16, scheduler: u32, reserved2: u32, os_thread: u32,
        start: u64, end: u64,
    }
    /// A device's clock and the host's at one moment; the device's ticks are
    /// extended to 64 bits.
    DeviceClock = 0x12, 32 {
        reserved: u8, reserved2: u16, clock: u32, uncertainty_ns: u32, tick_ps: u32,
        device_ticks: u64, monotonic_ns: u64,
    }
    /// Work of the host that a device waits for and that is not an op.
    HostTask = 0x13, 32 {
        what: u8, reserved: u16, split: u32, name: u32, os_thread: u32, start: u64, end: u64,
    }
    /// The return of the call that a [`BatchBegin`] is of.
    BatchEnd = 0x14, 32 {
        flags: u8, reserved: u16, call: u32, status: i32, reserved2: u32, ticks: u64, reserved3: u64,
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
        flags: u8, reserved: u16, backend: u32, reserved2: u32, version: u32, reserved3: [u32; 4],
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
        name: u32, type_id: u32, flags: u32, reserved: [u32; 7],
        ne: [i64; 4], nb: [u64; 4], op_params: [u32; OP_PARAMS],
    }
    /// Which nodes a graph holds, in order; followed by `count` node numbers.
    GraphShape = 0x82, 32 {
        flags: u8, units: u16, shape: u32, first: u32, count: u32, reserved: [u32; 4],
    }
    /// Nodes that ran as one; followed by `count` positions, the first its own.
    Fusion = 0x83, 32 {
        flags: u8, units: u16, shape: u32, position: u32, count: u32, reserved: [u32; 4],
    }
    CopyEvent = 0x84, 64 {
        flags: u8, units: u16, run: u32, source: u32, target: u32, source_backend: u32,
        target_backend: u32, reserved: u32, source_memory: u16, target_memory: u16, bytes: u64,
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
        flags: u8, units: u16, reserved: u32, ports: u32, reserved2: u32, connection: u64,
        offset: u64, bytes: u64, start: u64, end: u64, reserved3: u64,
    }
    /// How much memory a device has, as it told the program.
    DeviceMemory = 0x8d, 32 {
        flags: u8, units: u16, device: u32, free: u64, total: u64, at_ns: u64,
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

/// The check word of a block head.
pub fn block_check(lane: u32, sequence: u32, index: u32) -> u32 {
    let mixed = (u64::from(lane) << 32 | u64::from(sequence)) ^ (u64::from(index) << 17);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
}

/// Units a record of so many bytes takes.
pub const fn units_for(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}
