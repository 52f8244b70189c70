//! Schedulers, graphs, and the backends that compute them.

use std::ffi::c_int;

use super::{BehindSix, Entry, Real, Word};
use crate::clock;
use crate::ffi::api::{GGML_STATUS_FAILED, Pointer};
use crate::hooks::BACKEND_HOOKS;
use crate::observe::begun::{self, Kind, Mark};
use crate::observe::fail_open::{contained, guard};
use crate::observe::run::Run;
use crate::observe::{backends, schedulers, ticking};
use crate::recorder::current;

pub(super) static ENTRIES: [Entry; 9] = [
    sched_new_real::ENTRY,
    sched_free_real::ENTRY,
    sched_synchronize_real::ENTRY,
    sched_graph_compute_real::ENTRY,
    sched_graph_compute_async_real::ENTRY,
    graph_compute_real::ENTRY,
    graph_compute_async_real::ENTRY,
    dev_init_real::ENTRY,
    backend_free_real::ENTRY,
];

entry!(ggml_backend_sched_new, sched_new_real:
    fn(*const Pointer, Pointer, c_int, usize, Word, Word, BehindSix) -> Pointer, sched_new);

/// The number of arguments grew over time, and may again.
unsafe extern "C-unwind" fn sched_new(
    members: *const Pointer,
    buffer_types: Pointer,
    n_members: c_int,
    graph_size: usize,
    parallel: Word,
    op_offload: Word,
    more: BehindSix,
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

passing_all_on!(ggml_backend_sched_free, sched_free_real:
    sched_free(scheduler: Pointer));

fn sched_free(real: Real<impl FnOnce()>, scheduler: Pointer) {
    let was_last = guard(false, |this| schedulers::note_free(this, scheduler));
    real.call();
    if was_last {
        guard((), |_| current::after_last_scheduler());
    }
}

passing_all_on!(ggml_backend_sched_synchronize, sched_synchronize_real:
    sched_synchronize(scheduler: Pointer));

fn sched_synchronize(real: Real<impl FnOnce()>, scheduler: Pointer) {
    let start = clock::ticks();
    real.call();
    guard((), |this| schedulers::note_synchronize(this, scheduler, start));
}

passing_all_on!(ggml_backend_sched_graph_compute, sched_graph_compute_real:
    sched_graph_compute(scheduler: Pointer) -> c_int, otherwise GGML_STATUS_FAILED);

passing_all_on!(ggml_backend_sched_graph_compute_async, sched_graph_compute_async_real:
    sched_graph_compute(scheduler: Pointer) -> c_int, otherwise GGML_STATUS_FAILED);

fn sched_graph_compute(real: Real<impl FnOnce() -> c_int>, scheduler: Pointer) -> c_int {
    let mark = Mark::new(Kind::Run);
    begun::end_left(mark.frame());
    let run = guard(None, |this| {
        schedulers::note_use(this, scheduler, real.address, &BACKEND_HOOKS);
        Run::begin(this, mark.frame(), scheduler)
    });
    let status = real.call();
    run.into_iter().for_each(|run| run.finish(status));
    status
}

passing_all_on!(ggml_backend_graph_compute, graph_compute_real:
    graph_compute(backend: Pointer) -> c_int, otherwise GGML_STATUS_FAILED);

passing_all_on!(ggml_backend_graph_compute_async, graph_compute_async_real:
    graph_compute(backend: Pointer) -> c_int, otherwise GGML_STATUS_FAILED);

/// The backend's own function, which this one calls, records the graph. A backend whose creation
/// was not seen has no hooks yet: it gets them here.
fn graph_compute(real: Real<impl FnOnce() -> c_int>, backend: Pointer) -> c_int {
    guard((), |this| _ = backends::adopt(this, backend, real.address, &BACKEND_HOOKS));
    real.call()
}

passing_all_on!(ggml_backend_dev_init, dev_init_real:
    dev_init() -> Pointer, otherwise std::ptr::null_mut());

fn dev_init(real: Real<impl FnOnce() -> Pointer>) -> Pointer {
    let address = real.address;
    let backend = real.call();
    guard((), |this| _ = backends::adopt(this, backend, address, &BACKEND_HOOKS));
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
