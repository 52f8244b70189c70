//! The unwinder, loaded only when it is needed. Otherwise every process would have to load it
//! because of the agent, which takes longer than loading the agent itself, and a process that does
//! not use ggml needs none.
//!
//! The functions that Rust's runtime calls for unwinding are defined here, for this library alone,
//! and call those of libgcc. A program that throws exceptions has libgcc loaded already, and the
//! agent uses the same one: an exception that passes through a hook is unwound by a single library.
//! Packages that bring their own libgcc give it another name (musllinux wheels do); if there is none
//! under the usual name, the functions are taken from whichever library shows them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::patch::exports;
use crate::patch::loaded_object::LoadedObject;
use crate::{arch, c_library, lock};

const LIBRARY: &CStr = c"libgcc_s.so.1";

/// The functions that Rust's runtime, and code that its compiler makes, call.
const NAMES: [&CStr; 13] = [
    c"_Unwind_Resume",
    c"_Unwind_RaiseException",
    c"_Unwind_DeleteException",
    c"_Unwind_Backtrace",
    c"_Unwind_GetIP",
    c"_Unwind_GetIPInfo",
    c"_Unwind_GetCFA",
    c"_Unwind_GetLanguageSpecificData",
    c"_Unwind_GetRegionStart",
    c"_Unwind_GetTextRelBase",
    c"_Unwind_GetDataRelBase",
    c"_Unwind_SetGR",
    c"_Unwind_SetIP",
];

static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

arch::hidden_names! {
    forward:
    "_Unwind_Resume" 0
    "_Unwind_RaiseException" 1
    "_Unwind_DeleteException" 2
    "_Unwind_Backtrace" 3
    "_Unwind_GetIP" 4
    "_Unwind_GetIPInfo" 5
    "_Unwind_GetCFA" 6
    "_Unwind_GetLanguageSpecificData" 7
    "_Unwind_GetRegionStart" 8
    "_Unwind_GetTextRelBase" 9
    "_Unwind_GetDataRelBase" 10
    "_Unwind_SetGR" 11
    "_Unwind_SetIP" 12
}

arch::stand_in! {
    /// The function finds its caller on the stack, so it must be reached with the stack as the
    /// caller left it.
    fn forward<NUMBER>, asks function(NUMBER)
}

extern "C-unwind" fn function(number: u32) -> usize {
    let found = FOUND.get(number as usize).map_or(0, |place| place.load(Ordering::Acquire));
    if found != 0 || load() {
        FOUND[number as usize].load(Ordering::Acquire)
    } else {
        std::process::abort()
    }
}

/// Loads it; false where there is none. The loader is asked, so no lock may be held.
pub(crate) fn load() -> bool {
    if FOUND[0].load(Ordering::Acquire) != 0 {
        return true;
    }
    lock::before_asking_the_loader();
    // SAFETY: a library that every system with a C++ compiler's programs has, opened for good.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY) };
    c_library::forget_loader_error(library.is_null());
    match library.is_null() {
        // SAFETY: look-ups by C strings in an open library.
        false => find_all(|name| unsafe { libc::dlsym(library, name.as_ptr()) } as usize),
        true => of_one_library(),
    }
}

/// Two unwinders must not be mixed.
fn of_one_library() -> bool {
    let first = exports::first(NAMES[0]).and_then(LoadedObject::containing);
    first.is_some_and(|library| {
        find_all(|name| exports::first(name).filter(|it| library.holds(*it)).unwrap_or(0))
    })
}

/// Whether all functions are found.
fn find_all(find: impl Fn(&CStr) -> usize) -> bool {
    // The first one last: it tells that all are there.
    NAMES.iter().zip(&FOUND).rev().all(|(name, place)| {
        let found = find(name);
        place.store(found, Ordering::Release);
        found != 0
    })
}
