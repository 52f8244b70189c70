//! Where the linker and the calling convention put things.

use std::arch::asm;
use std::ops::Range;

use crate::arch::made_struct::{Arguments, MadeStruct};

/// Relocations that name a function: of slots for calls through the PLT (`R_X86_64_JUMP_SLOT`),
/// and of slots without (`R_X86_64_GLOB_DAT`).
const FUNCTION_SLOTS: [u32; 2] = [7, 6];

/// Whether a relocation of this type fills in a slot by which functions are called.
pub(crate) fn is_function_slot(relocation: u32) -> bool {
    FUNCTION_SLOTS.contains(&relocation)
}

/// Where this library is, by what the linker knows.
pub(crate) fn own_bounds() -> Range<usize> {
    let (start, end): (usize, usize);
    // SAFETY: computes two addresses of this library, which the linker defines.
    unsafe {
        asm!(
            ".hidden __ehdr_start",
            ".hidden _end",
            "lea {start}, [rip + __ehdr_start]",
            "lea {end}, [rip + _end]",
            start = out(reg) start,
            end = out(reg) end,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    start..end
}

/// A register that may hold an argument: all six registers for arguments are passed on, because a
/// version or a fork may have added to a function's known arguments.
pub(crate) type Word = usize;

/// The same behind six known arguments, which fill the registers: on the stack.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct BehindSix([Word; 4]);

/// A struct that is passed by value and is too large for registers: it lies on the stack. The real
/// function gets as many words as this, however many of them are its own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct StructByValue([Word; 32]);

impl StructByValue {
    /// Its words, as many as it has.
    pub(crate) fn words(&self) -> *const Word {
        self.0.as_ptr()
    }
}

/// A function that makes a struct is told where to put it in front of its arguments.
macro_rules! arguments {
    ($($name:ident: $type:ident),*) => {
        impl<$($type),*> Arguments for ($($type,)*) {
            unsafe fn hand_to(self, function: usize, place: *mut MadeStruct) {
                type Makes<$($type),*> = unsafe extern "C" fn(*mut MadeStruct, $($type),*);
                let ($($name,)*) = self;
                // SAFETY: the caller's contract.
                unsafe {
                    let function = std::mem::transmute::<usize, Makes<$($type),*>>(function);
                    function(place, $($name),*);
                }
            }
        }
    };
}
arguments!(a: A, b: B, c: C);
arguments!(a: A, b: B, c: C, d: D);

/// Where a call returns to.
///
/// # Safety
/// `stack` is what a stand-in was given for the call (`stand_in`), which has not returned.
pub(crate) unsafe fn caller_of(stack: *const usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { *stack }
}

/// The sixth argument of a call whose arguments are a pointer, two structs of three 32-bit numbers
/// each, a pointer and a size. The first four take all registers; above the return address is the
/// fifth, and above that the sixth.
///
/// # Safety
/// `stack` is what a stand-in was given for such a call (`stand_in`), which has not returned.
pub(crate) unsafe fn sixth_behind_two_sizes(stack: *const usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { *stack.add(2) }
}

/// Whether a thread that a fault stopped was about to execute the instruction at the address.
pub(crate) fn is_call_of(context: &libc::ucontext_t, address: usize) -> bool {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize == address
}

/// Lets the thread continue at the start of another function, which returns to the caller.
pub(crate) fn go_on_in(context: &mut libc::ucontext_t, function: usize) {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = function as i64;
}
