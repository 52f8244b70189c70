//! The names, numbers and layouts of CUPTI that the agent uses, for the versions
//! of CUDA 12 and 13. Functions are looked up by name, and each may be missing.

use std::ffi::{CStr, c_char, c_void};

/// 0 is success, everything else an error.
pub(super) type Status = u32;

/// The library's versions with the layouts below: CUDA 12.0 counts 18, later ones
/// of CUDA 12 up; from CUDA 13 on the number is the CUDA version and a count.
pub(super) const KNOWN_VERSIONS: [std::ops::RangeInclusive<u32>; 2] = [18..=99, 130_000..=139_999];

/// No more records in a buffer.
pub(super) const MAX_LIMIT_REACHED: Status = 12;
/// Another tool traces this process.
pub(super) const MULTIPLE_SUBSCRIBERS: Status = 39;
pub(super) const INSUFFICIENT_PRIVILEGES: [Status; 2] = [35, 40];
/// Delivers unfinished records as well.
pub(super) const FLUSH_FORCED: u32 = 1;

/// Kinds of activity records.
pub(super) mod kind {
    pub(crate) const MEMCPY: u32 = 1;
    pub(crate) const MEMSET: u32 = 2;
    pub(crate) const KERNEL: u32 = 3;
    pub(crate) const CONCURRENT_KERNEL: u32 = 10;
    /// Between two devices.
    pub(crate) const MEMCPY2: u32 = 22;
}

/// Domains of callbacks.
pub(crate) mod domain {
    pub(crate) const DRIVER: u32 = 1;
    pub(crate) const RUNTIME: u32 = 2;
    pub(crate) const RESOURCE: u32 = 3;
}

/// Callbacks of the resource domain.
pub(crate) mod resource {
    pub(crate) const GRAPHNODE_CREATED: u32 = 13;
    pub(crate) const GRAPHNODE_CLONED: u32 = 20;
}

/// Calls of the runtime that hand work to a device, with their variants for the
/// per-thread default stream. Numbers are only ever appended to.
pub(super) const RUNTIME_WORK: &[u32] = &[
    31, 32, 41, 44, 49, 51, 52, 161, 163, 215, 216, 225, 228, 233, 235, 236,
    250, // copies, fills
    211, 214, 269, 270, 430, 431, 505, 506, // kernels
];
/// Calls of the runtime that launch a whole CUDA graph.
pub(super) const RUNTIME_GRAPH: &[u32] = &[311, 312];

/// The same of the driver, which libraries such as cuBLAS call directly.
pub(super) const DRIVER_WORK: &[u32] = &[
    216, 220, 277, 279, 281, 289, 306, 319, 418, 421, 422, 423, 424, 426, 428,
    430, // copies, fills
    307, 442, 477, 478, 652, 653, // kernels
];
pub(super) const DRIVER_GRAPH: &[u32] = &[514, 515];

/// Where the fields are that the agent reads. Records grew at their ends only
/// from CUDA 12.0 to 13.4, so one set of offsets serves all of them.
pub(super) mod offset {
    /// All records of work begin alike.
    pub(crate) const START: usize = 16;
    pub(crate) const END: usize = 24;
    pub(crate) mod kernel {
        pub(crate) const DEVICE: usize = 40;
        pub(crate) const STREAM: usize = 48;
        pub(crate) const CORRELATION: usize = 92;
        pub(crate) const NAME: usize = 104;
        pub(crate) const GRAPH_NODE: usize = 144;
        pub(crate) const BYTES: usize = 208;
    }
    pub(crate) mod copy {
        pub(crate) const DIRECTION: usize = 4;
        pub(crate) const SOURCE_MEMORY: usize = 5;
        pub(crate) const TARGET_MEMORY: usize = 6;
        pub(crate) const COUNT: usize = 8;
        pub(crate) const DEVICE: usize = 32;
        pub(crate) const STREAM: usize = 40;
        pub(crate) const CORRELATION: usize = 44;
        pub(crate) const GRAPH_NODE: usize = 64;
        pub(crate) const BYTES: usize = 88;
    }
    pub(crate) mod peer_copy {
        pub(crate) const CORRELATION: usize = 60;
        pub(crate) const GRAPH_NODE: usize = 72;
        pub(crate) const BYTES: usize = 96;
    }
    pub(crate) mod fill {
        pub(crate) const COUNT: usize = 8;
        pub(crate) const DEVICE: usize = 32;
        pub(crate) const STREAM: usize = 40;
        pub(crate) const CORRELATION: usize = 44;
        pub(crate) const GRAPH_NODE: usize = 64;
        pub(crate) const BYTES: usize = 88;
    }
}

/// Directions of copies; a few more concern arrays, which ggml does not use.
pub(super) mod direction {
    pub(crate) const HOST_TO_DEVICE: u8 = 1;
    pub(crate) const DEVICE_TO_HOST: u8 = 2;
    pub(crate) const HOST_TO_HOST: u8 = 9;
}

/// What kind of memory a copy reads or writes.
pub(super) mod memory {
    pub(crate) const PAGEABLE: u8 = 1;
    pub(crate) const PINNED: u8 = 2;
}

/// The callback's data for calls of the runtime and the driver.
#[repr(C)]
#[derive(Debug)]
pub(super) struct CallData {
    pub(super) site: u32,
    _pad: u32,
    _function_name: *const c_char,
    _parameters: *const c_void,
    _return_value: *mut c_void,
    _symbol_name: *const c_char,
    _context: *mut c_void,
    _context_number: u32,
    _correlation_data: *mut u64,
    pub(super) correlation: u32,
}

const _: () = assert!(std::mem::offset_of!(CallData, correlation) == 64);

pub(super) const SITE_ENTER: u32 = 0;

/// The callback's data for resources.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ResourceData {
    _context: *mut c_void,
    _stream: *mut c_void,
    pub(super) descriptor: *const GraphData,
}

/// A node of a CUDA graph that was made or copied.
#[repr(C)]
#[derive(Debug)]
pub(super) struct GraphData {
    _graph: *mut c_void,
    _original_graph: *mut c_void,
    pub(super) node: *mut c_void,
    pub(super) original_node: *mut c_void,
}

pub(super) type CuptiCallback =
    extern "C-unwind" fn(user: *mut c_void, domain: u32, id: u32, data: *const c_void);
pub(super) type BufferRequested =
    extern "C-unwind" fn(buffer: *mut *mut u8, bytes: *mut usize, most_records: *mut usize);
pub(super) type BufferCompleted = extern "C-unwind" fn(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    bytes: usize,
    valid_bytes: usize,
);
pub(super) type Timestamp = extern "C-unwind" fn() -> u64;

macro_rules! symbols {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// CUPTI's functions, as far as the library found has them.
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case, clippy::type_complexity)]
        pub(super) struct CuptiFunctions {
            $(pub(super) $name: Option<unsafe extern "C-unwind" fn($($argument),*) -> Status>,)*
        }

        impl CuptiFunctions {
            /// # Safety
            /// `find` looks symbols up in NVIDIA's libcupti, or in one that acts
            /// like it.
            pub(super) unsafe fn find(find: impl Fn(&CStr) -> usize) -> CuptiFunctions {
                // SAFETY: the symbols have these signatures in CUPTI's headers of
                // CUDA 12 and 13; an address of 0 becomes `None`.
                unsafe { CuptiFunctions {
                    $($name: std::mem::transmute::<usize, Option<_>>(find(
                        const { crate::ffi::api::as_c_str(concat!(stringify!($name), "\0")) })),)*
                } }
            }
        }
    };
}

symbols! {
    cuptiGetVersion: fn(*mut u32);
    cuptiSubscribe: fn(*mut *mut c_void, CuptiCallback, *mut c_void);
    cuptiUnsubscribe: fn(*mut c_void);
    cuptiEnableCallback: fn(u32, *mut c_void, u32, u32);
    cuptiGetGraphNodeId: fn(*mut c_void, *mut u64);
    cuptiActivityRegisterCallbacks: fn(BufferRequested, BufferCompleted);
    cuptiActivityRegisterTimestampCallback: fn(Timestamp);
    cuptiActivityEnable: fn(u32);
    cuptiActivityDisable: fn(u32);
    cuptiActivityFlushAll: fn(u32);
    cuptiActivityGetNextRecord: fn(*mut u8, usize, *mut *mut u8);
    cuptiActivityGetNumDroppedRecords: fn(*mut c_void, u32, *mut usize);
    cuptiFinalize: fn();
}
