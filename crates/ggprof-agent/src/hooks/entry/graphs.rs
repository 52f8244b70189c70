//! Schedulers, graphs, and the backends that compute them.

use std::ffi::c_int;

use super::{Entry, OnStack, Word};
use crate::clock;
use crate::ffi::api::Pointer;
use crate::hooks::BACKEND_HOOKS;
use crate::observe::fail_open::{contained, guard};
use crate::observe::run::Run;
use crate::observe::{backends, schedulers, ticking};
use crate::recorder::current;

pub(super) static ENTRIES: [&Entry; 9] = [
    &sched_new_real::ENTRY,
    &sched_free_real::ENTRY,
    &sched_synchronize_real::ENTRY,
    &sched_graph_compute_real::ENTRY,
    &sched_graph_compute_async_real::ENTRY,
    &graph_compute_real::ENTRY,
    &graph_compute_async_real::ENTRY,
    &dev_init_real::ENTRY,
    &backend_free_real::ENTRY,
];

/// ggml's `GGML_STATUS_FAILED`, for a function that cannot be found any more.
const FAILED: c_int = -1;

entry!(ggml_backend_sched_new, sched_new_real:
    fn(*const Pointer, Pointer, c_int, usize, Word, Word, OnStack) -> Pointer, sched_new);

/// The number of arguments grew over time, and may again.
unsafe extern "C-unwind" fn sched_new(
    members: *const Pointer,
    buffer_types: Pointer,
    n_members: c_int,
    graph_size: usize,
    parallel: Word,
    op_offload: Word,
    more: OnStack,
) -> Pointer {
    let Some(real) = sched_new_real::find() else { return std::ptr::null_mut() };
    // SAFETY: what the program would have called, with what it passed.
    let scheduler =
        unsafe { real(members, buffer_types, n_members, graph_size, parallel, op_offload, more) };
    guard((), |this| {
        if members.is_null() || scheduler.is_null() {
            return;
        }
        // SAFETY: ggml has just read as many backends from the array.
        let members = unsafe { std::slice::from_raw_parts(members, n_members.max(0) as usize) };
        schedulers::note_new(this, scheduler, members, real as usize, &BACKEND_HOOKS);
    });
    scheduler
}

entry!(ggml_backend_sched_free, sched_free_real:
    fn(Pointer, Word, Word, Word, Word, Word), sched_free);

unsafe extern "C-unwind" fn sched_free(
    scheduler: Pointer,
    w2: Word,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) {
    if let Some(real) = sched_free_real::find() {
        let was_last = guard(false, |this| schedulers::note_free(this, scheduler));
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(scheduler, w2, w3, w4, w5, w6) };
        if was_last {
            guard((), |_| current::after_last_scheduler());
        }
    }
}

entry!(ggml_backend_sched_synchronize, sched_synchronize_real:
    fn(Pointer, Word, Word, Word, Word, Word), sched_synchronize);

unsafe extern "C-unwind" fn sched_synchronize(
    scheduler: Pointer,
    w2: Word,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) {
    let start = clock::ticks();
    if let Some(real) = sched_synchronize_real::find() {
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(scheduler, w2, w3, w4, w5, w6) };
        guard((), |this| schedulers::note_synchronize(this, scheduler, start));
    }
}

entry!(ggml_backend_sched_graph_compute, sched_graph_compute_real:
    fn(Pointer, Pointer, Word, Word, Word, Word) -> c_int, sched_graph_compute);

unsafe extern "C-unwind" fn sched_graph_compute(
    scheduler: Pointer,
    graph: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> c_int {
    let Some(real) = sched_graph_compute_real::find() else { return FAILED };
    let run = guard(None, |this| Run::begin(this, scheduler));
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { real(scheduler, graph, w3, w4, w5, w6) };
    run.into_iter().for_each(|run| run.finish(status));
    status
}

entry!(ggml_backend_sched_graph_compute_async, sched_graph_compute_async_real:
    fn(Pointer, Pointer, Word, Word, Word, Word) -> c_int, sched_graph_compute_async);

unsafe extern "C-unwind" fn sched_graph_compute_async(
    scheduler: Pointer,
    graph: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> c_int {
    let Some(real) = sched_graph_compute_async_real::find() else { return FAILED };
    let run = guard(None, |this| Run::begin(this, scheduler));
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { real(scheduler, graph, w3, w4, w5, w6) };
    run.into_iter().for_each(|run| run.finish(status));
    status
}

entry!(ggml_backend_graph_compute, graph_compute_real:
    fn(Pointer, Pointer, Word, Word, Word, Word) -> c_int, graph_compute);

/// The backend's own function, reached behind this, records the graph; here a
/// backend that was made out of our sight is taken in.
unsafe extern "C-unwind" fn graph_compute(
    backend: Pointer,
    graph: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> c_int {
    let Some(real) = graph_compute_real::find() else { return FAILED };
    guard((), |this| _ = backends::adopt(this, backend, real as usize, &BACKEND_HOOKS));
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, graph, w3, w4, w5, w6) }
}

entry!(ggml_backend_graph_compute_async, graph_compute_async_real:
    fn(Pointer, Pointer, Word, Word, Word, Word) -> c_int, graph_compute_async);

unsafe extern "C-unwind" fn graph_compute_async(
    backend: Pointer,
    graph: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> c_int {
    let Some(real) = graph_compute_async_real::find() else { return FAILED };
    guard((), |this| _ = backends::adopt(this, backend, real as usize, &BACKEND_HOOKS));
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, graph, w3, w4, w5, w6) }
}

entry!(ggml_backend_dev_init, dev_init_real:
    fn(Pointer, Pointer, Word, Word, Word, Word) -> Pointer, dev_init);

unsafe extern "C-unwind" fn dev_init(
    device: Pointer,
    parameters: Pointer,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) -> Pointer {
    let Some(real) = dev_init_real::find() else { return std::ptr::null_mut() };
    // SAFETY: what the program would have called, with what it passed.
    let backend = unsafe { real(device, parameters, w3, w4, w5, w6) };
    guard((), |this| _ = backends::adopt(this, backend, real as usize, &BACKEND_HOOKS));
    backend
}

entry!(ggml_backend_free, backend_free_real: fn(Pointer), backend_free);

/// Not all backends have our function in their table: some are freed before they compute.
unsafe extern "C-unwind" fn backend_free(backend: Pointer) {
    if let Some(real) = backend_free_real::find() {
        contained((), || ticking::forget(backend));
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(backend) };
    }
}
