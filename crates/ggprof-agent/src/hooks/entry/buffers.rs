//! What makes and frees memory for tensors, says what it is for, places tensors in it, and asks how much
//! there is.

use std::ffi::c_int;

use super::{Entry, Real, Word};
use crate::ffi::api::{GGML_STATUS_FAILED, Pointer};
use crate::observe::buffers::{self, Making};
use crate::observe::device_memory;
use crate::observe::fail_open::guard;
use crate::observe::instance;

pub(super) static ENTRIES: [Entry; 8] = [
    buft_alloc_buffer_real::ENTRY,
    alloc_buffer_real::ENTRY,
    buffer_from_host_ptr_real::ENTRY,
    cpu_buffer_from_ptr_real::ENTRY,
    buffer_free_real::ENTRY,
    buffer_set_usage_real::ENTRY,
    tallocr_alloc_real::ENTRY,
    dev_memory_real::ENTRY,
];

passing_all_on!(ggml_backend_buft_alloc_buffer, buft_alloc_buffer_real:
    make() -> Pointer, otherwise std::ptr::null_mut());

// A compiler may have inlined the function above into this one.
passing_all_on!(ggml_backend_alloc_buffer, alloc_buffer_real:
    make() -> Pointer, otherwise std::ptr::null_mut());

// For weights in a mapped file.
passing_all_on!(ggml_backend_dev_buffer_from_host_ptr, buffer_from_host_ptr_real:
    make() -> Pointer, otherwise std::ptr::null_mut());

// Also called by devices, for memory that they have pinned.
passing_all_on!(ggml_backend_cpu_buffer_from_ptr, cpu_buffer_from_ptr_real:
    make() -> Pointer, otherwise std::ptr::null_mut());

fn make(real: Real<impl FnOnce() -> Pointer>) -> Pointer {
    let (mut making, address) = (Making::begin(), real.address);
    guard((), |_| instance::foresee(address));
    let buffer = real.call();
    guard((), |this| making.note(this, buffer, address));
    buffer
}

passing_all_on!(ggml_backend_buffer_free, buffer_free_real: buffer_free(buffer: Pointer));

/// Noted first: another thread may get the same address as soon as it is free.
fn buffer_free(real: Real<impl FnOnce()>, buffer: Pointer) {
    guard((), |this| buffers::note_free(this, buffer));
    real.call();
}

passing_all_on!(ggml_backend_buffer_set_usage, buffer_set_usage_real:
    buffer_set_usage(buffer: Pointer, usage: c_int));

fn buffer_set_usage(real: Real<impl FnOnce()>, buffer: Pointer, usage: c_int) {
    real.call();
    guard((), |this| buffers::note_usage(this, buffer, usage));
}

passing_all_on!(ggml_tallocr_alloc, tallocr_alloc_real:
    tallocr_alloc(allocator: Pointer, tensor: Pointer) -> Word, otherwise GGML_STATUS_FAILED as Word);

/// Weights and caches are placed by this, the tensors of graphs are not.
fn tallocr_alloc(real: Real<impl FnOnce() -> Word>, _allocator: Pointer, tensor: Pointer) -> Word {
    let address = real.address;
    let status = real.call();
    guard(None, |this| buffers::note_placed(this, tensor, address));
    status
}

passing_all_on!(ggml_backend_dev_memory, dev_memory_real:
    dev_memory(device: Pointer, free: *mut usize, total: *mut usize));

/// Programs ask how much fits before they load a model. The agent does not ask by itself: some devices
/// change the state of the thread or wait for others to answer.
fn dev_memory(real: Real<impl FnOnce()>, device: Pointer, free: *mut usize, total: *mut usize) {
    let address = real.address;
    real.call();
    // SAFETY: where ggml has just written its answer for the program, aligned for such numbers.
    let read = |answer: *mut usize| unsafe { answer.cast_const().as_ref().copied() };
    let answers = read(free).zip(read(total));
    guard((), |this| {
        answers.into_iter().for_each(|told| device_memory::note(this, device, address, told));
    });
}
