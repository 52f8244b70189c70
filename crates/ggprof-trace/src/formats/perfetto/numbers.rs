//! Numbers of the fields in Perfetto's published schema (`protos/perfetto/trace`).

pub(super) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

pub(super) mod packet {
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const TRACE_STATS: u32 = 35;
    pub(crate) const GPU_RENDER_STAGE_EVENT: u32 = 53;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const MACHINE_ID: u32 = 98;
    pub(crate) const REMOTE_CLOCK_SYNC: u32 = 107;
}

pub(super) mod defaults {
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
}

pub(super) mod snapshot {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY_TRACE_CLOCK: u32 = 2;
}

pub(super) mod sync {
    pub(crate) const SYNCED_CLOCKS: u32 = 1;
    /// Of these, each as in a snapshot.
    pub(crate) const CLIENT_CLOCKS: u32 = 2;
    pub(crate) const HOST_CLOCKS: u32 = 3;
}

pub(super) mod clock {
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
}

pub(super) mod descriptor {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const SIBLING_ORDER_RANK: u32 = 12;
    /// A child ordering.
    pub(crate) const EXPLICIT: u64 = 3;
}

pub(super) mod process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const NAME: u32 = 6;
}

pub(super) mod counter {
    pub(crate) const UNIT_NAME: u32 = 6;
}

pub(super) mod event {
    pub(crate) const CATEGORY_IIDS: u32 = 3;
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
    /// Types.
    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

pub(super) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const UINT_VALUE: u32 = 3;
    pub(crate) const STRING_VALUE_IID: u32 = 17;
}

pub(super) mod interned {
    pub(crate) const EVENT_CATEGORIES: u32 = 1;
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(crate) const GRAPHICS_CONTEXTS: u32 = 23;
    pub(crate) const GPU_SPECIFICATIONS: u32 = 24;
    pub(crate) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
    /// Of what is described.
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}

pub(super) mod specification {
    pub(crate) const CATEGORY: u32 = 4;
    pub(crate) const COMPUTE: u64 = 2;
}

pub(super) mod context {
    pub(crate) const PID: u32 = 2;
    pub(crate) const API: u32 = 3;
    pub(crate) const VULKAN: u64 = 2;
    pub(crate) const CUDA: u64 = 4;
    pub(crate) const HIP: u64 = 5;
}

pub(super) mod stage {
    pub(crate) const EVENT_ID: u32 = 1;
    pub(crate) const DURATION: u32 = 2;
    pub(crate) const CONTEXT: u32 = 5;
    pub(crate) const EXTRA_DATA: u32 = 6;
    pub(crate) const GPU_ID: u32 = 11;
    pub(crate) const HW_QUEUE_IID: u32 = 13;
    pub(crate) const STAGE_IID: u32 = 14;
}

pub(super) mod extra {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

pub(super) mod stats {
    pub(crate) const BUFFER_STATS: u32 = 1;
    pub(crate) const TOTAL_BUFFERS: u32 = 7;
    /// Of a buffer.
    pub(crate) const TRACE_WRITER_PACKET_LOSS: u32 = 19;
}
