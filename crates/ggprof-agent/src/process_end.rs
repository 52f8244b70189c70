//! Ways to end a program that run no exit handlers: `_exit`, as llama.cpp's tools call it at the
//! second Ctrl-C. The profile for `GGML_PROFILE` must still be written then, and the Vulkan
//! manifest removed.

use std::ffi::c_int;

use crate::lifecycle;

/// # Safety
/// Called by programs as libc's own.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    lifecycle::before_immediate_exit();
    loop {
        // SAFETY: what libc's function does.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// # Safety
/// As `_exit`, under the name that ISO C gives it.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same function.
    unsafe { _exit(status) }
}
