//! Whether the dynamic linker can be called in a forked child. Another thread may have been inside
//! it when the process forked. Then the child keeps a change that was only half made, or a lock
//! that nobody will release. Programs whose children do not call the linker are fine even so; ld.so
//! ends a process that calls it in the middle of a change.

use std::ffi::{c_int, c_long, c_void};
use std::ptr;

use super::rehearsal;
use crate::c_library;
use crate::patch::scope::Scope;

const CONSISTENT: c_int = 0;

/// An answer takes microseconds.
const LONGEST_MICROSECONDS: c_long = 200_000;

/// Must be called once in a child, while it has a single thread.
pub(crate) fn can_be_asked() -> bool {
    is_consistent() && rehearsal::rehearse(|_| ask()).is_ok()
}

/// Whether this is what `dlopen` gives for the program itself.
pub(crate) fn is_main_program(handle: usize) -> bool {
    // SAFETY: as below; the first object of the list is the program, and never leaves it.
    let first = unsafe { (&raw const (*c_library::told_debuggers()).first_object).read_volatile() };
    handle != 0 && first as usize == handle
}

fn is_consistent() -> bool {
    // SAFETY: the loader keeps it for debuggers; these fields have never changed.
    unsafe { (&raw const (*c_library::told_debuggers()).state).read_volatile() == CONSISTENT }
}

/// Makes every kind of call that the agent needs, in a process that may wait for ever.
fn ask() {
    extern "C" fn pass(_: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        0
    }
    // SAFETY: zero is a value of the struct; it is this process's own timer, and the callback
    // needs nothing.
    unsafe {
        let mut limit: libc::itimerval = std::mem::zeroed();
        limit.it_value.tv_usec = LONGEST_MICROSECONDS;
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &limit, 0);
        libc::dl_iterate_phdr(Some(pass), ptr::null_mut());
    }
    // musl knows itself by this name, too.
    drop(Scope::of(c"libc.so.6"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_where_nobody_is_inside() {
        assert!(can_be_asked());
    }
}
