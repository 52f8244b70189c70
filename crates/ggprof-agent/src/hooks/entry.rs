//! The entry points of ggml that programs call across library borders. The
//! dynamic linker binds every caller to these, libraries opened later included.
//!
//! Behind each exported symbol is a shim of a few instructions: it notes where the
//! call came from, which Rust cannot ask, and jumps to the function that does the
//! work, with every argument where it was.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int};

use super::abort_callback::{self, Callback};
use crate::clock;
use crate::fail_open::guard;
use crate::ffi::api::Pointer;
use crate::ffi::real_function::RealFunction;
use crate::observe::copies::{self, Copied, Underway};
use crate::observe::run::Run;
use crate::observe::{backends, schedulers};
use crate::recorder::this_thread::ThisThread;
use crate::{lifecycle, quiet_log};

extern "C" fn note_caller(return_address: usize) {
    ThisThread::with(|this| this.caller.set(return_address));
}

/// A shim: notes where the call came from, then jumps to the function that does
/// the work.
macro_rules! shim {
    ($caller:literal, $body:ident) => {
        naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 8",
            $caller,
            "call {note}",
            "add rsp, 8",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp {body}",
            note = sym note_caller,
            body = sym $body,
        )
    };
}

/// An entry point as `linked_in` and `late` hook it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) symbol: &'static CStr,
    /// Stands in for a function where it is called.
    pub(super) called: unsafe extern "C-unwind" fn(),
    /// Stands in for a function at its own address.
    pub(super) shim: unsafe extern "C-unwind" fn(),
    pub(super) real: &'static RealFunction,
}

/// Declares the exported shim, the real function's record, and its signature.
macro_rules! entry {
    ($symbol:ident, $real:ident: fn($($argument:ty),*) $(-> $result:ty)?, $body:ident) => {
        /// The shim that stands in for ggml's function of this name.
        ///
        /// # Safety
        /// Called by programs as ggml's own; never from Rust.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $symbol() {
            naked_asm!("jmp {called}", called = sym $real::called)
        }

        #[allow(non_snake_case)]
        mod $real {
            use super::*;

            /// The same under no exported name: the address of an exported one is that of
            /// whoever comes first in the process.
            #[unsafe(naked)]
            pub(super) unsafe extern "C-unwind" fn called() {
                shim!("mov rdi, [rsp + 56]", $body)
            }

            pub(super) type Function = unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?;

            const SYMBOL: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($symbol), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("names end in one zero byte"),
            };

            static REAL: RealFunction = RealFunction::new(SYMBOL);

            pub(super) static ENTRY: Entry = Entry {
                symbol: SYMBOL,
                called,
                shim: linked_in,
                real: &REAL,
            };

            /// The same for a call that arrived at the function itself.
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn linked_in() {
                // `real_function::LINKED_IN`, which is no address.
                shim!("mov edi, 1", $body)
            }

            /// The function the caller would have reached without us.
            pub(super) fn find() -> Option<Function> {
                let address = REAL.for_caller(ThisThread::with(|this| this.caller.get()));
                if address == 0 {
                    quiet_log::say(&[b"cannot find ", stringify!($symbol).as_bytes()]);
                }
                // SAFETY: the address of the symbol of this name in the caller's
                // scope, which has this signature in ggml's headers.
                unsafe { std::mem::transmute::<usize, Option<Function>>(address) }
            }
        }
    };
}

/// All of them.
pub(super) static ENTRIES: [&Entry; 16] = [
    &sched_new_real::ENTRY,
    &sched_free_real::ENTRY,
    &sched_reset_real::ENTRY,
    &sched_synchronize_real::ENTRY,
    &sched_graph_compute_real::ENTRY,
    &sched_graph_compute_async_real::ENTRY,
    &graph_compute_real::ENTRY,
    &graph_compute_async_real::ENTRY,
    &dev_init_real::ENTRY,
    &get_proc_address_real::ENTRY,
    &set_abort_callback_real::ENTRY,
    &tensor_copy_real::ENTRY,
    &tensor_set_async_real::ENTRY,
    &tensor_set_real::ENTRY,
    &tensor_get_real::ENTRY,
    &tensor_get_async_real::ENTRY,
];

/// ggml's `GGML_STATUS_FAILED`, for a function that cannot be found any more.
const FAILED: c_int = -1;

entry!(ggml_backend_sched_new, sched_new_real:
    fn(*const Pointer, Pointer, c_int, usize, bool, bool) -> Pointer, sched_new);

/// Older versions take one argument less; a register too many does no harm.
unsafe extern "C-unwind" fn sched_new(
    members: *const Pointer,
    buffer_types: Pointer,
    n_members: c_int,
    graph_size: usize,
    parallel: bool,
    op_offload: bool,
) -> Pointer {
    let Some(real) = sched_new_real::find() else { return std::ptr::null_mut() };
    // SAFETY: what the program would have called, with what it passed.
    let scheduler =
        unsafe { real(members, buffer_types, n_members, graph_size, parallel, op_offload) };
    guard((), |this| {
        if members.is_null() || scheduler.is_null() {
            return;
        }
        // SAFETY: ggml has just read as many backends from the array.
        let members = unsafe { std::slice::from_raw_parts(members, n_members.max(0) as usize) };
        schedulers::note_new(this, scheduler, members, real as usize);
    });
    scheduler
}

entry!(ggml_backend_sched_free, sched_free_real: fn(Pointer), sched_free);

unsafe extern "C-unwind" fn sched_free(scheduler: Pointer) {
    if let Some(real) = sched_free_real::find() {
        let was_last = guard(false, |this| schedulers::note_free(this, scheduler));
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(scheduler) };
        if was_last {
            guard((), |_| lifecycle::between_schedulers());
        }
    }
}

entry!(ggml_backend_sched_reset, sched_reset_real: fn(Pointer), sched_reset);

unsafe extern "C-unwind" fn sched_reset(scheduler: Pointer) {
    if let Some(real) = sched_reset_real::find() {
        guard((), |this| schedulers::note_reset(this, scheduler));
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(scheduler) };
    }
}

entry!(ggml_backend_sched_synchronize, sched_synchronize_real: fn(Pointer), sched_synchronize);

unsafe extern "C-unwind" fn sched_synchronize(scheduler: Pointer) {
    let start = clock::ticks();
    if let Some(real) = sched_synchronize_real::find() {
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(scheduler) };
        guard((), |this| schedulers::note_synchronize(this, scheduler, start));
    }
}

entry!(ggml_backend_sched_graph_compute, sched_graph_compute_real:
    fn(Pointer, Pointer) -> c_int, sched_graph_compute);

unsafe extern "C-unwind" fn sched_graph_compute(scheduler: Pointer, graph: Pointer) -> c_int {
    let Some(real) = sched_graph_compute_real::find() else { return FAILED };
    let run = guard(None, |this| Run::begin(this, scheduler));
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { real(scheduler, graph) };
    run.into_iter().for_each(|run| run.finish(status));
    status
}

entry!(ggml_backend_sched_graph_compute_async, sched_graph_compute_async_real:
    fn(Pointer, Pointer) -> c_int, sched_graph_compute_async);

unsafe extern "C-unwind" fn sched_graph_compute_async(scheduler: Pointer, graph: Pointer) -> c_int {
    let Some(real) = sched_graph_compute_async_real::find() else { return FAILED };
    let run = guard(None, |this| Run::begin(this, scheduler));
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { real(scheduler, graph) };
    run.into_iter().for_each(|run| run.finish(status));
    status
}

entry!(ggml_backend_graph_compute, graph_compute_real:
    fn(Pointer, Pointer) -> c_int, graph_compute);

/// The backend's own function, reached behind this, records the graph; here a
/// backend that was made out of our sight is taken in.
unsafe extern "C-unwind" fn graph_compute(backend: Pointer, graph: Pointer) -> c_int {
    let Some(real) = graph_compute_real::find() else { return FAILED };
    guard((), |this| _ = backends::adopt(this, backend, real as usize));
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, graph) }
}

entry!(ggml_backend_graph_compute_async, graph_compute_async_real:
    fn(Pointer, Pointer) -> c_int, graph_compute_async);

unsafe extern "C-unwind" fn graph_compute_async(backend: Pointer, graph: Pointer) -> c_int {
    let Some(real) = graph_compute_async_real::find() else { return FAILED };
    guard((), |this| _ = backends::adopt(this, backend, real as usize));
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, graph) }
}

entry!(ggml_backend_dev_init, dev_init_real: fn(Pointer, Pointer) -> Pointer, dev_init);

unsafe extern "C-unwind" fn dev_init(device: Pointer, parameters: Pointer) -> Pointer {
    let Some(real) = dev_init_real::find() else { return std::ptr::null_mut() };
    // SAFETY: what the program would have called, with what it passed.
    let backend = unsafe { real(device, parameters) };
    guard((), |this| _ = backends::adopt(this, backend, real as usize));
    backend
}

entry!(ggml_backend_reg_get_proc_address, get_proc_address_real:
    fn(Pointer, *const c_char) -> Pointer, get_proc_address);

unsafe extern "C-unwind" fn get_proc_address(registry: Pointer, name: *const c_char) -> Pointer {
    let Some(real) = get_proc_address_real::find() else { return std::ptr::null_mut() };
    // SAFETY: what the program would have called, with what it passed.
    let function = unsafe { real(registry, name) };
    guard(function, |_| abort_callback::stand_in(name, function))
}

entry!(ggml_backend_cpu_set_abort_callback, set_abort_callback_real:
    fn(Pointer, Option<Callback>, Pointer), set_abort_callback);

pub(super) unsafe extern "C-unwind" fn set_abort_callback(
    backend: Pointer,
    callback: Option<Callback>,
    data: Pointer,
) {
    let real = guard(None, |_| {
        abort_callback::note_programs(backend, callback, data);
        abort_callback::setter_of(backend)
    });
    if let Some(real) = real.or_else(set_abort_callback_real::find) {
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(backend, callback, data) };
    }
}

entry!(ggml_backend_tensor_copy, tensor_copy_real: fn(Pointer, Pointer), tensor_copy);

unsafe extern "C-unwind" fn tensor_copy(source: Pointer, target: Pointer) {
    let Some(real) = tensor_copy_real::find() else { return };
    let start = clock::ticks();
    let underway = Underway::new(copies::COPYING, start);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(source, target) };
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
        copies::note(this, real as usize, copy)
    });
}

entry!(ggml_backend_tensor_set_async, tensor_set_async_real:
    fn(Pointer, Pointer, Pointer, usize, usize), tensor_set_async);

/// Runs of experts are copied through this: each call is one event.
unsafe extern "C-unwind" fn tensor_set_async(
    backend: Pointer,
    target: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
) {
    let Some(real) = tensor_set_async_real::find() else { return };
    let start = clock::ticks();
    let underway = Underway::new(copies::WRITING, start);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, target, data, offset, bytes) };
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
        copies::note(this, real as usize, copy)
    });
}

entry!(ggml_backend_tensor_set, tensor_set_real:
    fn(Pointer, Pointer, usize, usize), tensor_set);

/// No event: programs fill every weight through this. It tells which way a device copies.
unsafe extern "C-unwind" fn tensor_set(
    target: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
) {
    let Some(real) = tensor_set_real::find() else { return };
    let _underway = Underway::new(copies::WRITING, 0);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(target, data, offset, bytes) };
}

entry!(ggml_backend_tensor_get, tensor_get_real:
    fn(Pointer, Pointer, usize, usize), tensor_get);

unsafe extern "C-unwind" fn tensor_get(
    source: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
) {
    let Some(real) = tensor_get_real::find() else { return };
    let _underway = Underway::new(copies::READING, 0);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(source, data, offset, bytes) };
}

entry!(ggml_backend_tensor_get_async, tensor_get_async_real:
    fn(Pointer, Pointer, Pointer, usize, usize), tensor_get_async);

unsafe extern "C-unwind" fn tensor_get_async(
    backend: Pointer,
    source: Pointer,
    data: Pointer,
    offset: usize,
    bytes: usize,
) {
    let Some(real) = tensor_get_async_real::find() else { return };
    let _underway = Underway::new(copies::READING, 0);
    // SAFETY: what the program would have called, with what it passed.
    unsafe { real(backend, source, data, offset, bytes) };
}
