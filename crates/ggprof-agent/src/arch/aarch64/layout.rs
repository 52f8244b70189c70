//! Where the linker and the calling convention put things.

use std::arch::{asm, naked_asm};
use std::ops::Range;

use crate::arch::made_struct::{Arguments, MadeStruct};

/// Relocations that name a function: of slots for calls through the PLT (`R_AARCH64_JUMP_SLOT`),
/// and of slots without (`R_AARCH64_GLOB_DAT`).
const FUNCTION_SLOTS: [u32; 2] = [1026, 1025];

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
            "adrp {start}, __ehdr_start",
            "add {start}, {start}, :lo12:__ehdr_start",
            "adrp {end}, _end",
            "add {end}, {end}, :lo12:_end",
            start = out(reg) start,
            end = out(reg) end,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    start..end
}

/// A register that may hold an argument: all eight registers for arguments are passed on, because a
/// version or a fork may have added to a function's known arguments.
pub(crate) type Word = usize;

/// The two registers behind six known arguments. (A struct of two words is passed in two registers.)
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct BehindSix([Word; 2]);

/// A struct that is passed by value and is too large for registers: the caller made a copy of it, and
/// passes its address.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct StructByValue(*const Word);

impl StructByValue {
    /// Its words, as many as it has.
    pub(crate) fn words(&self) -> *const Word {
        self.0
    }
}

/// Calls the function that is the fifth argument with the first four, and tells it by `x8` to put what
/// it makes where the sixth points to.
#[unsafe(naked)]
unsafe extern "C" fn make_struct() {
    naked_asm!("mov x8, x5", "mov x16, x4", "br x16")
}

impl<A, B, C> Arguments for (A, B, C) {
    unsafe fn hand_to(self, function: usize, place: *mut MadeStruct) {
        let (a, b, c) = self;
        // SAFETY: the caller's contract; a fourth argument is not looked at.
        unsafe { (a, b, c, 0_usize).hand_to(function, place) };
    }
}

impl<A, B, C, D> Arguments for (A, B, C, D) {
    unsafe fn hand_to(self, function: usize, place: *mut MadeStruct) {
        type Makes<A, B, C, D> = unsafe extern "C" fn(A, B, C, D, usize, *mut MadeStruct);
        let (a, b, c, d) = self;
        // SAFETY: the caller's contract, and that of `make_struct`.
        unsafe {
            let make_struct: unsafe extern "C" fn() = make_struct;
            let call =
                std::mem::transmute::<unsafe extern "C" fn(), Makes<A, B, C, D>>(make_struct);
            call(a, b, c, d, function, place);
        }
    }
}

/// What a stand-in keeps of a call, as `registers::keep_arguments` puts it on the stack: `x0` to `x8`,
/// and where the call returns to.
const RETURNS_TO: usize = 9;

/// Where a call returns to.
///
/// # Safety
/// `stack` is what a stand-in was given for the call (`stand_in`), which has not returned.
pub(crate) unsafe fn caller_of(stack: *const usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { *stack.add(RETURNS_TO) }
}

/// The sixth argument of a call whose arguments are a pointer, two structs of three 32-bit numbers
/// each, a pointer and a size: each struct takes two registers, so it is in the last one, `x7`.
///
/// # Safety
/// `stack` is what a stand-in was given for such a call (`stand_in`), which has not returned.
pub(crate) unsafe fn sixth_behind_two_sizes(stack: *const usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { *stack.add(7) }
}

/// Whether a thread that was stopped by a fault was about to execute what is at the address.
pub(crate) fn is_call_of(context: &libc::ucontext_t, address: usize) -> bool {
    context.uc_mcontext.pc as usize == address
}

/// Lets the thread continue at the start of another function, which returns to the caller.
pub(crate) fn go_on_in(context: &mut libc::ucontext_t, function: usize) {
    context.uc_mcontext.pc = function as u64;
}
