//! Small numbers and bits in the fields of records.

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

/// Types of devices, where code decides by them; the other numbers are those of ggml.
pub const DEVICE_CPU: u8 = 0;
pub const DEVICE_ACCELERATOR: u8 = 3;
pub const DEVICE_UNKNOWN: u8 = u8::MAX;

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
/// No call of libllama was seen: the graph run that begins then has tokens at these positions. Which
/// sequences they are of is not known; positions that follow each other are listed together.
pub const BATCH_FROM_POSITIONS: u8 = 1 << 5;
/// Most sequences that a batch's record lists: libllama takes no more. (Older versions do; recordings of
/// before listed 64.)
pub const BATCH_MOST_SEQUENCES: usize = 256;

/// What happened to a context.
pub const CONTEXT_CLEARED: u8 = 0;
pub const CONTEXT_REMOVED: u8 = 1;
pub const CONTEXT_SHIFTED: u8 = 2;
pub const CONTEXT_COPIED: u8 = 3;
pub const CONTEXT_WARM_UP: u8 = 4;
pub const CONTEXT_WARMED_UP: u8 = 5;
pub const CONTEXT_FREED: u8 = 6;
/// The program looked at the embeddings of a call, whose number is `other`.
pub const CONTEXT_EMBEDDINGS_READ: u8 = 7;
/// All sequences but one were removed.
pub const CONTEXT_KEPT: u8 = 8;
/// Positions were divided by `other`.
pub const CONTEXT_DIVIDED: u8 = 9;

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

/// Bits of a [`Transfer`](super::Transfer)'s flags: the bytes came from the other end; the connection
/// was seen from its beginning.
pub const TRANSFER_RECEIVED: u8 = 1;
pub const TRANSFER_WHOLE: u8 = 2;

/// What a [`Machine`](super::Machine) record tells of.
pub const MACHINE_SYSTEM: u8 = 1;
pub const MACHINE_DRIVER: u8 = 2;
pub const MACHINE_DAY_CLOCK: u8 = 3;
