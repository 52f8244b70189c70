//! Functions that move tensors between backends, and to and from the program.

use super::{Entry, Real};
use crate::clock;
use crate::ffi::api::Pointer;
use crate::observe::copies::{self, Copied, Underway};
use crate::observe::fail_open::guard;
use crate::observe::instance::Instance;
use crate::recorder::current;

pub(super) static ENTRIES: [Entry; 5] = [
    tensor_copy_real::ENTRY,
    tensor_set_async_real::ENTRY,
    tensor_set_real::ENTRY,
    tensor_get_real::ENTRY,
    tensor_get_async_real::ENTRY,
];

passing_all_on!(ggml_backend_tensor_copy, tensor_copy_real:
    tensor_copy(source: Pointer, target: Pointer));

fn tensor_copy(real: Real<impl FnOnce()>, source: Pointer, target: Pointer) {
    if current::is_out() {
        return real.call();
    }
    let address = real.address;
    let start = clock::ticks();
    let underway = Underway::new(copies::COPYING, start);
    real.call();
    drop(underway);
    guard(None, |this| {
        let copy = Copied {
            start,
            source,
            data: std::ptr::null_mut(),
            target,
            source_backend: std::ptr::null_mut(),
            target_backend: std::ptr::null_mut(),
            part: None,
            may_be_pending: false,
        };
        copies::note(this, |lane| Instance::holding(address, lane), copy)
    });
}

passing_all_on!(ggml_backend_tensor_set_async, tensor_set_async_real:
tensor_set_async(
    backend: Pointer, target: Pointer, data: Pointer, offset: usize, bytes: usize
));

/// Runs of experts are copied through this: each call is one event.
fn tensor_set_async(
    real: Real<impl FnOnce()>,
    backend: Pointer,
    target: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
) {
    if current::is_out() {
        return real.call();
    }
    let address = real.address;
    let start = clock::ticks();
    let underway = Underway::new(copies::WRITING, start);
    real.call();
    drop(underway);
    guard(None, |this| {
        let copy = Copied {
            start,
            source: std::ptr::null_mut(),
            data,
            target,
            source_backend: std::ptr::null_mut(),
            target_backend: backend,
            part: Some((offset, bytes)),
            may_be_pending: true,
        };
        copies::note(this, |lane| Instance::holding(address, lane), copy)
    });
}

passing_all_on!(ggml_backend_tensor_set, tensor_set_real: tensor_set());

/// Makes no event, because programs fill every weight through this. It only notes in which
/// direction a device copies.
fn tensor_set(real: Real<impl FnOnce()>) {
    let _underway = Underway::new(copies::WRITING, 0);
    real.call();
}

passing_all_on!(ggml_backend_tensor_get, tensor_get_real: tensor_get());

passing_all_on!(ggml_backend_tensor_get_async, tensor_get_async_real:
    tensor_get());

/// Makes no event either.
fn tensor_get(real: Real<impl FnOnce()>) {
    let _underway = Underway::new(copies::READING, 0);
    real.call();
}
