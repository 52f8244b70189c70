//! Turns activity records into values: what ran, when, for which launch.

use std::ffi::{CStr, c_char};

use ggprof_spool::layout;

use super::Cupti;
use super::raw::{direction, kind, memory, offset};

/// A piece of a device's work, in CUPTI's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) what: What,
    /// 0 where the device gave no time.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) device: u32,
    pub(crate) stream: u32,
    /// The number of the call that handed it to the device.
    pub(crate) correlation: u32,
    /// The node of a CUDA graph, 0 outside one.
    pub(crate) graph_node: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The kernel's name as the compiler spells it; CUPTI keeps it while attached.
    Kernel(*const c_char),
    /// `direction` is one of the spool's; `memory` is the kind of memory on the host's side.
    Copy {
        direction: u8,
        memory: HostMemory,
        bytes: u64,
    },
    Fill {
        bytes: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostMemory {
    Pinned,
    Pageable,
    /// Neither side is the host's, or it is not known.
    None,
}

impl Activity {
    /// Neither zero nor running backwards.
    pub(crate) fn has_times(&self) -> bool {
        self.start != 0 && self.end >= self.start
    }

    /// The kernel's name, empty for other work.
    pub(crate) fn kernel_name(&self) -> &[u8] {
        match self.what {
            // SAFETY: CUPTI's name of a kernel is a C string that lives until
            // CUPTI is detached, which waits for this buffer.
            What::Kernel(name) if !name.is_null() => unsafe { CStr::from_ptr(name) }.to_bytes(),
            _ => b"",
        }
    }
}

/// Every piece of work in a buffer.
///
/// # Safety
/// The buffer holds `valid` bytes that CUPTI wrote and hands over now.
pub(crate) unsafe fn for_each(
    cupti: &Cupti,
    buffer: *mut u8,
    valid: usize,
    mut visit: impl FnMut(Activity),
) {
    let end = buffer as usize + valid;
    let mut record = std::ptr::null_mut();
    // SAFETY: the caller's contract; the record came from the call before.
    while let Some(next) = unsafe { cupti.next_record(buffer, valid, record) } {
        record = next;
        let left = end.saturating_sub(record as usize);
        // SAFETY: a record of CUPTI, with so many valid bytes from its start on.
        if let Some(activity) = unsafe { read(record, left) } {
            visit(activity);
        }
    }
}

/// # Safety
/// `record` is a whole record of CUPTI, followed by `left` valid bytes in all.
unsafe fn read(record: *const u8, left: usize) -> Option<Activity> {
    // SAFETY: every record begins with its kind.
    let record_kind = unsafe { record.cast::<u32>().read() };
    let bytes = match record_kind {
        kind::KERNEL | kind::CONCURRENT_KERNEL => offset::kernel::BYTES,
        kind::MEMCPY => offset::copy::BYTES,
        kind::MEMCPY2 => offset::peer_copy::BYTES,
        kind::MEMSET => offset::fill::BYTES,
        _ => return None,
    };
    if left < bytes {
        return None;
    }
    // SAFETY: all offsets lie inside the smallest record of their kind, whose
    // bytes were just seen to be there.
    unsafe {
        let field = Fields(record);
        let at = |device, stream, correlation, graph_node, what| Activity {
            what,
            start: field.word(offset::START),
            end: field.word(offset::END),
            device: field.half(device),
            stream: field.half(stream),
            correlation: field.half(correlation),
            graph_node: field.word(graph_node),
        };
        Some(match record_kind {
            kind::MEMCPY => {
                use offset::copy::{CORRELATION, COUNT, DEVICE, GRAPH_NODE, STREAM};
                at(DEVICE, STREAM, CORRELATION, GRAPH_NODE, field.copy(field.word(COUNT)))
            }
            kind::MEMCPY2 => {
                use offset::copy::{COUNT, DEVICE, STREAM};
                use offset::peer_copy::{CORRELATION, GRAPH_NODE};
                let what = What::Copy {
                    direction: layout::COPY_DEVICE_TO_DEVICE,
                    memory: HostMemory::None,
                    bytes: field.word(COUNT),
                };
                at(DEVICE, STREAM, CORRELATION, GRAPH_NODE, what)
            }
            kind::MEMSET => {
                use offset::fill::{CORRELATION, COUNT, DEVICE, GRAPH_NODE, STREAM};
                let what = What::Fill { bytes: field.word(COUNT) };
                at(DEVICE, STREAM, CORRELATION, GRAPH_NODE, what)
            }
            _ => {
                use offset::kernel::{CORRELATION, DEVICE, GRAPH_NODE, NAME, STREAM};
                let what = What::Kernel(field.word(NAME) as *const c_char);
                at(DEVICE, STREAM, CORRELATION, GRAPH_NODE, what)
            }
        })
    }
}

struct Fields(*const u8);

/// Each function: the offset lies inside the record (`read`).
impl Fields {
    unsafe fn word(&self, offset: usize) -> u64 {
        // SAFETY: see above.
        unsafe { self.0.add(offset).cast::<u64>().read_unaligned() }
    }

    unsafe fn half(&self, offset: usize) -> u32 {
        // SAFETY: see above.
        unsafe { self.0.add(offset).cast::<u32>().read_unaligned() }
    }

    unsafe fn byte(&self, offset: usize) -> u8 {
        // SAFETY: see above.
        unsafe { self.0.add(offset).read() }
    }

    unsafe fn copy(&self, bytes: u64) -> What {
        // SAFETY: see above.
        let (kind, source, target) = unsafe {
            use offset::copy::{DIRECTION, SOURCE_MEMORY, TARGET_MEMORY};
            (self.byte(DIRECTION), self.byte(SOURCE_MEMORY), self.byte(TARGET_MEMORY))
        };
        let (direction, host) = match kind {
            direction::HOST_TO_DEVICE => (layout::COPY_HOST_TO_DEVICE, source),
            direction::DEVICE_TO_HOST => (layout::COPY_DEVICE_TO_HOST, target),
            direction::HOST_TO_HOST => (layout::COPY_HOST_TO_HOST, source),
            _ => (layout::COPY_DEVICE_TO_DEVICE, 0),
        };
        let memory = match host {
            memory::PAGEABLE => HostMemory::Pageable,
            memory::PINNED => HostMemory::Pinned,
            _ => HostMemory::None,
        };
        What::Copy { direction, memory, bytes }
    }
}
