//! The entry points of ggml that programs call across library borders. The
//! dynamic linker binds every caller to these, libraries opened later included.
//!
//! Behind each exported symbol is a shim of a few instructions: it notes where the
//! call came from, which Rust cannot ask, and jumps to the function that does the
//! work, with every argument where it was.

use std::ffi::CStr;

pub(super) use crate::arch::{OnStack, Word};

/// An entry point as `linked_in` and `late` hook it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) symbol: &'static CStr,
    /// Stands in for a function where it is called.
    pub(super) called: unsafe extern "C-unwind" fn(),
    /// Stands in for a function at its own address.
    pub(super) shim: unsafe extern "C-unwind" fn(),
}

/// Declares the exported shim, the real function's record, and its signature.
macro_rules! entry {
    ($symbol:ident, $real:ident: fn($($argument:ty),*) $(-> $result:ty)?, $body:ident) => {
        $crate::arch::jump_to! {
            /// The shim that stands in for ggml's function of this name.
            ///
            /// # Safety
            /// Called by programs as ggml's own; never from Rust.
            #[unsafe(no_mangle)]
            fn $symbol, $real::called
        }

        #[allow(non_snake_case)]
        mod $real {
            use super::*;
            use std::ffi::CStr;
            use crate::hooks::real_function::{PAST_A_HOOK, RealFunction};
            use crate::hooks::entry::Entry;
            use crate::quiet_log;
            use crate::observe::this_thread::ThisThread;

            $crate::arch::note_caller_then_jump! {
                /// The same under no exported name: the address of an exported one is that of
                /// whoever comes first in the process.
                pub(super) fn called, ThisThread::CALLER, $body
            }

            pub(super) type Function = unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?;

            const SYMBOL: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($symbol), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("names end in one zero byte"),
            };

            static REAL: RealFunction = RealFunction::new();

            pub(super) static ENTRY: Entry = Entry { symbol: SYMBOL, called, shim: linked_in };

            $crate::arch::note_way_past_then_jump! {
                /// The same for a call that arrived at the function itself: what is noted is the
                /// way past the hook, marked as such.
                fn linked_in, PAST_A_HOOK.trailing_zeros(), ThisThread::CALLER, $body
            }

            /// The function the caller would have reached without us.
            pub(super) fn find() -> Option<Function> {
                let caller = ThisThread::with(|this| this.caller.get());
                let address = REAL.for_caller(SYMBOL, caller);
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

// Behind the macros, which they use.
mod buffers;
mod callbacks;
mod graphs;
mod tensors;

pub(super) use callbacks::set_abort_callback;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    let groups: [&'static [&'static Entry]; 4] =
        [&graphs::ENTRIES, &callbacks::ENTRIES, &tensors::ENTRIES, &buffers::ENTRIES];
    groups.into_iter().flatten().copied()
}
