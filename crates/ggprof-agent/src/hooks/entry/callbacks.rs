//! The two ways in which a program sets its abort callback.

use std::ffi::c_char;

use super::Entry;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::hooks::abort_callback;
use crate::observe::fail_open::guard;
use crate::observe::ticking::{self, AbortCallback};

pub(super) static ENTRIES: [Entry; 2] =
    [get_proc_address_real::ENTRY, set_abort_callback_real::ENTRY];

entry!(ggml_backend_reg_get_proc_address, get_proc_address_real:
    fn(Pointer, *const c_char) -> Pointer, get_proc_address);

unsafe extern "C-unwind" fn get_proc_address(registry: Pointer, name: *const c_char) -> Pointer {
    let Some(real) = get_proc_address_real::find() else { return std::ptr::null_mut() };
    // SAFETY: what the program would have called, with what it passed.
    let function = unsafe { real(registry, name) };
    guard(function, |_| abort_callback::stand_in(name, function))
}

entry!(ggml_backend_cpu_set_abort_callback, set_abort_callback_real:
    fn(Pointer, Option<AbortCallback>, Pointer), set_abort_callback);

pub(in crate::hooks) unsafe extern "C-unwind" fn set_abort_callback(
    backend: Pointer,
    callback: Option<AbortCallback>,
    data: Pointer,
) {
    let real = guard(None, |_| {
        // First: whatever fails behind it, the agent never gives ggml another one than the program's.
        ticking::note_program_callback(backend, callback, data);
        fault_point!();
        ticking::setter_of(backend)
    });
    if let Some(real) = real.or_else(set_abort_callback_real::find) {
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(backend, callback, data) };
    }
}
