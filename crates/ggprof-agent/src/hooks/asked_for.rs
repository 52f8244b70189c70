//! Programs that ask the loader for libllama's functions one by one, as bindings of Python and
//! other languages do, call them past the dynamic linker. They are answered with our entry points.
//! Programs that ask whether a function exists are answered as if the agent were not there.

use std::ffi::{CStr, c_char};

use super::entry::{self, Entry};
use crate::fault::fault_point;
use crate::ffi::{loader, which_ggml};
use crate::observe::fail_open::guard;
use crate::patch::exports;
use crate::recorder::current;

/// `dlsym`.
pub(super) type Ask = unsafe extern "C-unwind" fn(usize, *const c_char) -> usize;

/// Who answers when a program asks for one of our entry points.
pub(super) enum AnsweredBy {
    /// The loader, which finds what it would find without us, or our entry point in its place.
    Loader,
    /// Our entry point, if the loader finds the function that it leads to.
    Us(&'static Entry),
    /// Nobody, with null: the program must not learn of a function that only the agent has.
    Nobody,
}

/// # Safety
/// `name` is what the program asks for: a C string.
pub(super) unsafe fn answer_to(handle: usize, name: *const c_char) -> AnsweredBy {
    // SAFETY: the caller's contract.
    let Some(entry) = (unsafe { entry_called(name) }) else { return AnsweredBy::Loader };
    let finds_us = handle == libc::RTLD_DEFAULT as usize
        || handle == libc::RTLD_NEXT as usize
        || loader::is_main_program(handle);
    if finds_us {
        // Not in a forked child, where the loader may have been interrupted by the fork.
        let is_nobodys = || current::is_on() && exports::behind_us(entry.symbol).is_none();
        // Where it cannot be found out: so the program gets the function behind us, if there is one.
        return guard(AnsweredBy::Nobody, |_| {
            fault_point!();
            match is_nobodys() {
                true => AnsweredBy::Nobody,
                false => AnsweredBy::Loader,
            }
        });
    }
    match entry.symbol.to_bytes().starts_with(LLAMAS) {
        true => AnsweredBy::Us(entry),
        false => AnsweredBy::Loader,
    }
}

const LLAMAS: &[u8] = b"llama_";
const GGMLS: &[u8] = b"ggml_";

/// # Safety
/// As above.
unsafe fn entry_called(name: *const c_char) -> Option<&'static Entry> {
    // SAFETY: the caller's contract: nothing is read behind the end.
    let is_at = |at: usize, byte: u8| unsafe { *name.cast::<u8>().add(at) == byte };
    let begins_with = |start: &[u8]| start.iter().enumerate().all(|(at, &byte)| is_at(at, byte));
    let may_be = !name.is_null() && (begins_with(LLAMAS) || begins_with(GGMLS));
    // SAFETY: the caller's contract.
    let name = may_be.then(|| unsafe { CStr::from_ptr(name) })?;
    entry::all().find(|entry| entry.symbol == name)
}

/// What the loader answers, or our entry point where that leads to the very function: with several
/// copies of libllama it cannot tell by its caller which is meant.
pub(super) fn instead_of(found: usize, entry: &Entry) -> usize {
    guard(found, |_| {
        fault_point!();
        let is_wanted = found != 0 && current::is_on();
        let leads_there = is_wanted && which_ggml::find_anywhere(entry.symbol) == found;
        if leads_there { entry.called as *const () as usize } else { found }
    })
}
