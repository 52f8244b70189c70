//! What moves tensors: between backends, to and from the program.

use super::{Entry, Word};
use crate::clock;
use crate::ffi::api::Pointer;
use crate::observe::copies::{self, Copied, Underway};
use crate::observe::fail_open::guard;
use crate::observe::instance::Instance;

pub(super) static ENTRIES: [&Entry; 5] = [
    &tensor_copy_real::ENTRY,
    &tensor_set_async_real::ENTRY,
    &tensor_set_real::ENTRY,
    &tensor_get_real::ENTRY,
    &tensor_get_async_real::ENTRY,
];

entry!(ggml_backend_tensor_copy, tensor_copy_real:
    fn(Pointer, Pointer, Word, Word, Word, Word), tensor_copy);

unsafe extern "C-unwind" fn tensor_copy(
    source: Pointer,
    target: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) {
    let Some(real) = tensor_copy_real::find() else { return };
    let start = clock::ticks();
    let underway = Underway::new(copies::COPYING, start);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(source, target, w3, w4, w5, w6) };
    drop(underway);
    guard(None, |this| {
        let copy = Copied {
            start,
            source,
            target,
            source_backend: std::ptr::null_mut(),
            target_backend: std::ptr::null_mut(),
            part: None,
            may_be_pending: false,
        };
        copies::note(this, |lane| Instance::holding(real as usize, lane), copy)
    });
}

entry!(ggml_backend_tensor_set_async, tensor_set_async_real:
    fn(Pointer, Pointer, Pointer, usize, usize, Word), tensor_set_async);

/// Runs of experts are copied through this: each call is one event.
unsafe extern "C-unwind" fn tensor_set_async(
    backend: Pointer,
    target: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
    w6: Word,
) {
    let Some(real) = tensor_set_async_real::find() else { return };
    let start = clock::ticks();
    let underway = Underway::new(copies::WRITING, start);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, target, data, offset, bytes, w6) };
    drop(underway);
    guard(None, |this| {
        let copy = Copied {
            start,
            source: std::ptr::null_mut(),
            target,
            source_backend: std::ptr::null_mut(),
            target_backend: backend,
            part: Some((offset, bytes)),
            may_be_pending: true,
        };
        copies::note(this, |lane| Instance::holding(real as usize, lane), copy)
    });
}

entry!(ggml_backend_tensor_set, tensor_set_real:
    fn(Pointer, Pointer, usize, usize, Word, Word), tensor_set);

/// No event: programs fill every weight through this. It tells which way a device copies.
unsafe extern "C-unwind" fn tensor_set(
    target: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
    w5: Word,
    w6: Word,
) {
    let Some(real) = tensor_set_real::find() else { return };
    let _underway = Underway::new(copies::WRITING, 0);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(target, data, offset, bytes, w5, w6) };
}

entry!(ggml_backend_tensor_get, tensor_get_real:
    fn(Pointer, Pointer, usize, usize, Word, Word), tensor_get);

unsafe extern "C-unwind" fn tensor_get(
    source: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
    w5: Word,
    w6: Word,
) {
    let Some(real) = tensor_get_real::find() else { return };
    let _underway = Underway::new(copies::READING, 0);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(source, data, offset, bytes, w5, w6) };
}

entry!(ggml_backend_tensor_get_async, tensor_get_async_real:
    fn(Pointer, Pointer, Pointer, usize, usize, Word), tensor_get_async);

unsafe extern "C-unwind" fn tensor_get_async(
    backend: Pointer,
    source: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
    w6: Word,
) {
    let Some(real) = tensor_get_async_real::find() else { return };
    let _underway = Underway::new(copies::READING, 0);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, source, data, offset, bytes, w6) };
}
