//! The entry points of ggml and libllama that programs call across library borders. The dynamic
//! linker binds every caller to these, including libraries that are opened later.
//!
//! Behind each exported symbol is a stand-in of a few instructions. It notes where the call came from,
//! which Rust code cannot find out, and jumps to the function that does the work, with all
//! arguments unchanged.

use std::ffi::CStr;

pub(super) use crate::arch::{BehindSix, Word};

/// An entry point as `linked_in` and `late` hook it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) symbol: &'static CStr,
    /// Stands in for a function where it is called.
    pub(super) called: unsafe extern "C-unwind" fn(),
    /// Stands in for a function at its own address.
    pub(super) at_entry: unsafe extern "C-unwind" fn(),
}

/// Declares the exported stand-in, the real function's record, and its signature.
macro_rules! entry {
    ($symbol:ident, $real:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?, $body:path) => {
        $crate::arch::jump_to! {
            /// Stands in for ggml's function of this name.
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
                /// The same without an exported name: the address of an exported symbol is that of
                /// the first library in the process that exports it.
                pub(super) fn called, ThisThread::CALLER, $body
            }

            pub(super) type Signature = unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?;

            const SYMBOL: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($symbol), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("names end in one zero byte"),
            };

            static REAL: RealFunction = RealFunction::new();

            pub(super) const ENTRY: Entry = Entry { symbol: SYMBOL, called, at_entry: linked_in };

            $crate::arch::note_way_past_then_jump! {
                /// The same for a call that arrived at the function itself: it notes the address
                /// that continues behind the hook, marked as such.
                fn linked_in, PAST_A_HOOK.trailing_zeros(), ThisThread::CALLER, $body
            }

            /// The function the caller would have reached without the agent.
            pub(super) fn find() -> Option<Signature> {
                let caller = ThisThread::with(|this| this.caller.get());
                let address = REAL.for_caller(SYMBOL, caller);
                if address == 0 {
                    quiet_log::say(&[b"cannot find ", SYMBOL.to_bytes()]);
                }
                // SAFETY: the address of the symbol of this name in the caller's
                // scope, which has this signature in ggml's headers.
                unsafe { std::mem::transmute::<usize, Option<Signature>>(address) }
            }
        }
    };
}

/// The function that the program meant, to be called with all that the program passed.
pub(super) struct Real<F> {
    /// Tells which copy of ggml it is of.
    pub(super) address: usize,
    call: F,
}

impl<R, F: FnOnce() -> R> Real<F> {
    pub(super) fn call(self) -> R {
        (self.call)()
    }
}

/// Declares an entry point whose work is done by a Rust function: that gets the [`Real`] one and
/// the first arguments, as many as it asks for. Without a real one the result is `$otherwise`.
///
/// All registers for arguments are passed on, known or not, should a version or a fork have added
/// to the function's arguments.
macro_rules! passing_all_on {
    (
        $symbol:ident, $real:ident:
        $work:ident($($argument:ident: $type:ty),*) $(-> $result:ty, otherwise $otherwise:expr)?
    ) => {
        $crate::arch::words_beside! {
            [$($argument)*], passing_all_on! { @words } {
                $symbol, $real, $work, ($($argument: $type),*) $(-> $result, $otherwise)?
            }
        }
    };
    (
        @words [$($word:ident)*]
        $symbol:ident, $real:ident, $work:ident, ($($argument:ident: $type:ty),*)
        $(-> $result:ty, $otherwise:expr)?
    ) => {
        entry!($symbol, $real:
            fn($($type,)* $(passing_all_on!(@type $word)),*) $(-> $result)?,
            $symbol::passing_all_on);

        mod $symbol {
            use super::*;

            pub(super) unsafe extern "C-unwind" fn passing_all_on(
                $($argument: $type,)*
                $($word: passing_all_on!(@type $word)),*
            ) $(-> $result)? {
                let Some(real) = $real::find() else { return $($otherwise)? };
                // SAFETY: what the program would have called, with what it passed.
                let call = || unsafe { real($($argument,)* $($word),*) };
                let real = $crate::hooks::entry::Real { address: real as usize, call };
                $work(real, $($argument),*)
            }
        }
    };
    (@type $word:ident) => { $crate::arch::Word };
}

// After the macros, which these modules use.
mod batches;
mod buffers;
mod callbacks;
mod contexts;
mod graphs;
mod tensors;

pub(super) use callbacks::set_abort_callback;

/// All entry points.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    let groups: [&'static [Entry]; 6] = [
        &graphs::ENTRIES,
        &callbacks::ENTRIES,
        &tensors::ENTRIES,
        &buffers::ENTRIES,
        &batches::ENTRIES,
        &contexts::ENTRIES,
    ];
    groups.into_iter().flatten()
}

/// A number of 32 bits in a register.
fn number(word: Word) -> i32 {
    word as u32 as i32
}

/// A truth value in a register, of which only the lowest byte counts.
fn is_true(word: Word) -> bool {
    word as u8 != 0
}
