//! Stand-ins for functions of a backend's own table. `observe::adopted` keeps the real ones; a
//! stand-in is installed only after its real function was stored.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::clock;
use crate::ffi::api::{GGML_STATUS_FAILED, Pointer};
use crate::ffi::backend_table::{CpyTensorAsync, Free, GraphCompute, More, Synchronize, original};
use crate::observe::adopted::Adopted;
use crate::observe::backends;
use crate::observe::begun::{self, Kind, Mark};
use crate::observe::copies::{self, Copied, Underway};
use crate::observe::fail_open::guard;
use crate::observe::serialize;
use crate::observe::split::Split;
use crate::recorder::current;

pub(crate) unsafe extern "C-unwind" fn graph_compute(
    backend: Pointer,
    graph: Pointer,
    w3: usize,
    w4: usize,
    w5: usize,
    w6: usize,
) -> c_int {
    let Some(adopted) = backends::originals_of(backend) else { return GGML_STATUS_FAILED };
    // SAFETY: taken from this slot of a backend's table.
    let Some(real) = (unsafe { original::<GraphCompute>(&adopted.graph_compute) }) else {
        return GGML_STATUS_FAILED;
    };
    let mark = Mark::new(Kind::Split);
    begun::end_left(mark.frame());
    let split = guard(None, |this| Split::begin(this, mark.frame(), adopted, (backend, graph)));
    if let Some(status) =
        compute_serialized(split.as_ref(), adopted, (backend, graph, [w3, w4, w5, w6]), real)
    {
        split.into_iter().for_each(|split| split.finish(status));
        return status;
    }
    // SAFETY: what ggml would have called, with what it passed.
    let status = unsafe { real(backend, graph, w3, w4, w5, w6) };
    split.into_iter().for_each(|split| split.finish(status));
    status
}

fn compute_serialized(
    split: Option<&Split>,
    adopted: &Adopted,
    arguments: (Pointer, Pointer, More),
    real: GraphCompute,
) -> Option<c_int> {
    let split = split?;
    let asked = split.recorded().is_some_and(|(_, _, lane)| lane.recorder.serialize);
    let seen = adopted.ops_seen.load(Ordering::Relaxed) || adopted.tick_setter().is_some();
    if seen || !(asked || adopted.is_host_accelerator()) {
        return None;
    }
    // SAFETY: taken from this slot of a backend's table; optional in ggml.
    let synchronize = unsafe { original::<Synchronize>(&adopted.synchronize) };
    serialize::compute(split, adopted, arguments, real, synchronize)
}

pub(crate) unsafe extern "C-unwind" fn cpy_tensor_async(
    source_backend: Pointer,
    target_backend: Pointer,
    source: Pointer,
    target: Pointer,
    w5: usize,
    w6: usize,
) -> bool {
    // ggml calls the function of the target's table.
    let Some(adopted) = backends::originals_of(target_backend) else { return false };
    // SAFETY: taken from this slot of a backend's table.
    let Some(real) = (unsafe { original::<CpyTensorAsync>(&adopted.cpy_tensor_async) }) else {
        return false;
    };
    let start = clock::ticks();
    let underway = Underway::new(copies::COPYING, start);
    // SAFETY: what ggml would have called, with what it passed.
    let copied = unsafe { real(source_backend, target_backend, source, target, w5, w6) };
    drop(underway);
    if copied && !current::is_out() {
        let copy = Copied {
            start,
            source,
            data: std::ptr::null_mut(),
            target,
            source_backend,
            target_backend,
            part: None,
            may_be_pending: true,
        };
        guard(None, |this| copies::note(this, |_| adopted.instance(), copy));
    }
    copied
}

pub(crate) unsafe extern "C-unwind" fn free(backend: Pointer) {
    let Some(adopted) = backends::originals_of(backend) else { return };
    // SAFETY: taken from this slot of a backend's table.
    let real = unsafe { original::<Free>(&adopted.free) };
    if adopted.is_of(backend) {
        guard((), |this| adopted.note_free(this));
    }
    if let Some(real) = real {
        // SAFETY: what ggml would have called, with what it passed.
        unsafe { real(backend) };
    }
}
