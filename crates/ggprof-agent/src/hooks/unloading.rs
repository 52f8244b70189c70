//! Libraries that the program closes: from then on, an address may mean something else. The loader
//! counts closed libraries too, but asking it means a walk through everything that is loaded, and a
//! token of a small model copies a dozen tensors, each of which has to know.

use std::ffi::{CStr, c_int, c_void};

use crate::patch::{loaded_object, scope};

/// # Safety
/// Called by programs as libc's own.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    // Counted before and after, because another thread may note this library while it is closed.
    loaded_object::note_closing();
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { scope::close(handle) };
    loaded_object::note_closing();
    status
}

/// The loader's function, with what stands in for it.
pub(super) fn stand_in() -> (&'static CStr, usize) {
    (c"dlclose", dlclose as *const () as usize)
}
