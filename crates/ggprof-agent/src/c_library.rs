//! What differs between the C libraries that programs are linked to: glibc and musl. Everything else
//! uses what both have.

use std::ffi::{CStr, c_char, c_int};

/// What only glibc has. A program that looks whether there is such a function must find none in musl.
macro_rules! only_in_glibc {
    ($($item:item)*) => { $(#[cfg(target_env = "gnu")] $item)* };
}
pub(crate) use only_in_glibc;

/// An address inside the C library: that of a function which no program replaces with its own.
pub(crate) fn address_inside() -> usize {
    #[cfg(target_env = "gnu")]
    let function = libc::gnu_get_libc_version as *const ();
    #[cfg(target_env = "musl")]
    let function = libc::getauxval as *const ();
    function as usize
}

/// Whether the loader's list begins with the program itself, given the first name in it. glibc has
/// no name for the program, and other programs' names begin the lists of `dlmopen`. musl has neither
/// such lists nor a rule for the name.
pub(crate) fn begins_with_program(first_name: &[u8]) -> bool {
    cfg!(target_env = "musl") || first_name.is_empty()
}

/// What the loader's functions are in before glibc 2.34: a library of their own, which a program may do
/// without. The C library itself opens libraries by a function that it has until then.
pub(crate) const LIBRARY_OF_LOADER: &CStr = c"libdl.so.2";
pub(crate) const OPENS_FOR_LIBC: &CStr = c"__libc_dlopen_mode";
/// Says to that function that nothing is missing in the mode (`__RTLD_DLOPEN`).
pub(crate) const MODE_OF_LIBC: c_int = c_int::MIN;

/// The agent asked the loader for something, and `failed` says whether in vain. A program asks for the last
/// error to find out whether its own question failed: glibc forgets an error at the next question, musl
/// only when it is asked for.
pub(crate) fn forget_loader_error(failed: bool) {
    if cfg!(target_env = "musl") && failed {
        // SAFETY: gives this thread's last error, and forgets it.
        unsafe { libc::dlerror() };
    }
}

/// Whether a thread that gives up asks the system for its number. musl keeps that in memory, and so does
/// glibc before 2.24.
pub(crate) fn asks_which_thread_gives_up() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: a constant text.
    return is_at_least(unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }, [2, 24]);
    #[cfg(target_env = "musl")]
    return false;
}

#[cfg(target_env = "gnu")]
fn is_at_least(version: &CStr, wanted: [u32; 2]) -> bool {
    let numbers = version.to_bytes().split(|byte| *byte == b'.');
    let mut numbers = numbers.map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let mut next = || numbers.next().flatten();
    matches!((next(), next()), (Some(major), Some(minor)) if [major, minor] >= wanted)
}

/// Has these called at every fork: before it, after it in the parent, after it in the child. They live as
/// long as the agent, which is never closed.
pub(crate) fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // glibc puts a `pthread_atfork` into every library, which calls this. The page that it is on would be
    // touched in every process.
    #[cfg(target_env = "gnu")]
    unsafe extern "C" {
        fn __register_atfork(
            before: extern "C" fn(),
            parent: extern "C" fn(),
            child: extern "C" fn(),
            library: *const std::ffi::c_void,
        ) -> c_int;
    }
    // SAFETY: no library, because none is ever to be closed.
    #[cfg(target_env = "gnu")]
    unsafe {
        __register_atfork(before, parent, child, std::ptr::null())
    };
    // SAFETY: functions without arguments, which stay.
    #[cfg(target_env = "musl")]
    unsafe {
        libc::pthread_atfork(Some(before), Some(parent), Some(child))
    };
}

/// What the loader tells debuggers, at the beginning of `r_debug`.
#[repr(C)]
pub(crate) struct ToldDebuggers {
    version: c_int,
    pub(crate) first_object: *const ToldObject,
    called_at_changes: usize,
    pub(crate) state: c_int,
}

/// A loaded object as debuggers are told of it, at the beginning of `link_map`.
#[repr(C)]
pub(crate) struct ToldObject {
    pub(crate) base: usize,
    name: *const c_char,
    /// Its dynamic section.
    pub(crate) dynamic: usize,
    next: *const ToldObject,
}

/// All of them, in the order of loading.
///
/// # Safety
/// No other thread opens or closes libraries meanwhile.
pub(crate) unsafe fn told_objects() -> impl Iterator<Item = &'static ToldObject> {
    // SAFETY: the loader keeps the struct for debuggers, who follow the list in the same way.
    let first = unsafe { (*told_debuggers()).first_object.as_ref() };
    // SAFETY: the caller's contract: the list stays as it is.
    std::iter::successors(first, |object| unsafe { object.next.as_ref() })
}

/// The address of that struct, which never changes.
pub(crate) fn told_debuggers() -> *const ToldDebuggers {
    #[cfg(target_env = "gnu")]
    unsafe extern "C" {
        static _r_debug: ToldDebuggers;
    }
    #[cfg(target_env = "gnu")]
    return &raw const _r_debug;

    #[cfg(target_env = "musl")]
    unsafe extern "C" {
        static _dl_debug_addr: *const ToldDebuggers;
    }
    // SAFETY: set by the loader before any other code runs, and not changed.
    #[cfg(target_env = "musl")]
    return unsafe { _dl_debug_addr };
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, is_it) in [
            (c"2.24", true),
            (c"2.36", true),
            (c"2.100", true),
            (c"3.0", true),
            (c"2.23", false),
            (c"2.9", false),
            (c"2", false),
            (c"stable", false),
        ] {
            assert_eq!(is_at_least(version, [2, 24]), is_it, "{version:?}");
        }
    }
}
