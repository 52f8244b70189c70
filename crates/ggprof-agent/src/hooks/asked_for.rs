//! Programs that ask the loader for libllama's functions one by one, as bindings of Python and
//! other languages do, call them past the dynamic linker. They are answered with our entry points.

use std::ffi::{CStr, c_char};

use super::entry::{self, Entry};
use crate::ffi::which_ggml;
use crate::observe::fail_open::guard;
use crate::recorder::current;

/// `dlsym`.
pub(super) type Ask = unsafe extern "C-unwind" fn(usize, *const c_char) -> usize;

/// The entry point for what is asked of a library. Not for questions that search by who asks
/// (`RTLD_DEFAULT`, `RTLD_NEXT`): those find us by themselves.
///
/// # Safety
/// `name` is what the program asks for: a C string.
pub(super) unsafe fn entry_for(handle: usize, name: *const c_char) -> Option<&'static Entry> {
    const LLAMAS: &[u8] = b"llama_";
    let by_caller = [libc::RTLD_DEFAULT, libc::RTLD_NEXT].map(|handle| handle as usize);
    if by_caller.contains(&handle) || name.is_null() {
        return None;
    }
    // SAFETY: the caller's contract: nothing is read behind the end.
    let is_llamas =
        LLAMAS.iter().enumerate().all(|(at, &byte)| unsafe { *name.add(at) as u8 == byte });
    // SAFETY: the caller's contract.
    let name = is_llamas.then(|| unsafe { CStr::from_ptr(name) })?;
    entry::all().find(|entry| entry.symbol == name)
}

/// What the loader answers, or our entry point where that leads to the very function: with several
/// copies of libllama it cannot tell by its caller which is meant.
pub(super) fn instead_of(found: usize, entry: &Entry) -> usize {
    guard(found, |_| {
        let is_wanted = found != 0 && current::is_on();
        let leads_there = is_wanted && which_ggml::find_anywhere(entry.symbol) == found;
        if leads_there { entry.called as *const () as usize } else { found }
    })
}
