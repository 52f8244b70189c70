//! The functions that CUPTI calls while it is attached: on the program's threads within its CUDA
//! calls, and on CUPTI's own thread to deliver records.

use std::ffi::c_void;

use super::cupti::session::{self, Callbacks};
use super::listening::{note_event, take_records};
use super::process::cupti;
use crate::clock;
use crate::fault::fault_point;
use crate::observe::fail_open;

pub(super) const CALLBACKS: Callbacks =
    Callbacks { event, buffer_requested, buffer_completed, timestamp };

/// A call of the program that hands work to a device, or a node of a CUDA graph.
extern "C-unwind" fn event(_: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    fail_open::guard((), |this| {
        let Some(cupti) = cupti() else { return };
        // SAFETY: CUPTI's own arguments, during its call.
        if let Some(event) = unsafe { session::decode(cupti, domain, id, data) } {
            fault_point!();
            note_event(this, event);
        }
    });
}

extern "C-unwind" fn buffer_requested(
    buffer: *mut *mut u8,
    bytes: *mut usize,
    most_records: *mut usize,
) {
    let (lent, size) = fail_open::contained((std::ptr::null_mut(), 0), session::lend_buffer);
    // SAFETY: CUPTI's places for the answer; 0 records means as many as fit.
    unsafe {
        buffer.write(lent);
        bytes.write(size);
        most_records.write(0);
    }
}

extern "C-unwind" fn buffer_completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _bytes: usize,
    valid_bytes: usize,
) {
    fail_open::contained((), || {
        if let Some(cupti) = cupti() {
            fault_point!();
            let dropped = session::dropped(cupti, context, stream);
            // SAFETY: CUPTI hands over the buffer with this much in it.
            unsafe { take_records(cupti, buffer, valid_bytes, dropped) };
        }
    });
    // SAFETY: lent by `buffer_requested`, and CUPTI is done with it.
    fail_open::contained((), || unsafe { session::take_buffer_back(buffer) });
}

/// CUPTI stamps with the host's clock, so that devices and host share one.
extern "C-unwind" fn timestamp() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}
