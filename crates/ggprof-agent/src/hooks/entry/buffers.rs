//! What makes and frees memory for tensors, says what it is for, and places tensors in it.

use std::ffi::c_int;

use super::{Entry, Word};
use crate::ffi::api::Pointer;
use crate::observe::buffers::{self, Making};
use crate::observe::fail_open::guard;

pub(super) static ENTRIES: [&Entry; 7] = [
    &buft_alloc_buffer_real::ENTRY,
    &alloc_buffer_real::ENTRY,
    &buffer_from_host_ptr_real::ENTRY,
    &cpu_buffer_from_ptr_real::ENTRY,
    &buffer_free_real::ENTRY,
    &buffer_set_usage_real::ENTRY,
    &tallocr_alloc_real::ENTRY,
];

/// ggml's `GGML_STATUS_FAILED`, for a function that cannot be found any more.
const FAILED: Word = Word::MAX;

entry!(ggml_backend_buft_alloc_buffer, buft_alloc_buffer_real:
    fn(Pointer, usize, Word, Word, Word, Word) -> Pointer, buft_alloc_buffer);

unsafe extern "C-unwind" fn buft_alloc_buffer(
    buffer_type: Pointer,
    bytes: usize,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> Pointer {
    let Some(real) = buft_alloc_buffer_real::find() else { return std::ptr::null_mut() };
    let mut making = Making::begin();
    // SAFETY: what the program would have called, with what it passed.
    let buffer = unsafe { real(buffer_type, bytes, w3, w4, w5, w6) };
    guard((), |this| making.note(this, buffer, real as usize));
    buffer
}

entry!(ggml_backend_alloc_buffer, alloc_buffer_real:
    fn(Pointer, usize, Word, Word, Word, Word) -> Pointer, alloc_buffer);

/// A compiler may have put the function above into this one.
unsafe extern "C-unwind" fn alloc_buffer(
    backend: Pointer,
    bytes: usize,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> Pointer {
    let Some(real) = alloc_buffer_real::find() else { return std::ptr::null_mut() };
    let mut making = Making::begin();
    // SAFETY: what the program would have called, with what it passed.
    let buffer = unsafe { real(backend, bytes, w3, w4, w5, w6) };
    guard((), |this| making.note(this, buffer, real as usize));
    buffer
}

entry!(ggml_backend_dev_buffer_from_host_ptr, buffer_from_host_ptr_real:
    fn(Pointer, Pointer, usize, usize, Word, Word) -> Pointer, buffer_from_host_ptr);

/// Weights in a mapped file.
unsafe extern "C-unwind" fn buffer_from_host_ptr(
    device: Pointer,
    memory: Pointer,
    bytes: usize,
    most_of_a_tensor: usize,
    w5: Word,
    w6: Word,
) -> Pointer {
    let Some(real) = buffer_from_host_ptr_real::find() else { return std::ptr::null_mut() };
    let mut making = Making::begin();
    // SAFETY: what the program would have called, with what it passed.
    let buffer = unsafe { real(device, memory, bytes, most_of_a_tensor, w5, w6) };
    guard((), |this| making.note(this, buffer, real as usize));
    buffer
}

entry!(ggml_backend_cpu_buffer_from_ptr, cpu_buffer_from_ptr_real:
    fn(Pointer, usize, Word, Word, Word, Word) -> Pointer, cpu_buffer_from_ptr);

/// Also by devices, for memory that they have pinned.
unsafe extern "C-unwind" fn cpu_buffer_from_ptr(
    memory: Pointer,
    bytes: usize,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> Pointer {
    let Some(real) = cpu_buffer_from_ptr_real::find() else { return std::ptr::null_mut() };
    let mut making = Making::begin();
    // SAFETY: what the program would have called, with what it passed.
    let buffer = unsafe { real(memory, bytes, w3, w4, w5, w6) };
    guard((), |this| making.note(this, buffer, real as usize));
    buffer
}

entry!(ggml_backend_buffer_free, buffer_free_real: fn(Pointer), buffer_free);

/// Noted first: another thread may get the same address as soon as it is free.
unsafe extern "C-unwind" fn buffer_free(buffer: Pointer) {
    if let Some(real) = buffer_free_real::find() {
        guard((), |this| buffers::note_free(this, buffer));
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(buffer) };
    }
}

entry!(ggml_backend_buffer_set_usage, buffer_set_usage_real:
    fn(Pointer, c_int, Word, Word, Word, Word), buffer_set_usage);

unsafe extern "C-unwind" fn buffer_set_usage(
    buffer: Pointer,
    usage: c_int,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) {
    if let Some(real) = buffer_set_usage_real::find() {
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(buffer, usage, w3, w4, w5, w6) };
        guard((), |this| buffers::note_usage(this, buffer, usage));
    }
}

entry!(ggml_tallocr_alloc, tallocr_alloc_real:
    fn(Pointer, Pointer, Word, Word, Word, Word) -> Word, tallocr_alloc);

/// Weights and caches are placed by this, the tensors of graphs are not.
unsafe extern "C-unwind" fn tallocr_alloc(
    allocator: Pointer,
    tensor: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> Word {
    let Some(real) = tallocr_alloc_real::find() else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { real(allocator, tensor, w3, w4, w5, w6) };
    guard(None, |this| buffers::note_placed(this, tensor, real as usize));
    status
}
