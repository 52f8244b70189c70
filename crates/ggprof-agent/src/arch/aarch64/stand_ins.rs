//! Functions that stand in for others. All arguments reach the real function unchanged, whatever
//! they are and wherever they lie.

/// Defines a stand-in for a function whose arguments are not all known, or not all in registers:
/// every register an argument may be in is kept, our own function is called, and the real one is
/// jumped to. What our own is called with, in the order of its arguments:
///
/// * `asks observe(number)`: a number. It returns the real function;
/// * `asks observe(first, second, stack, number)`: the call's first two arguments and where the
///   others are (`sixth_behind_two_sizes`), and a number. It returns the real function;
/// * `asks observe(arguments, number)`: the call's first five arguments and the number of the entry
///   (`numbered_entries`) by which it came. It returns the real function;
/// * `tells observe(arguments), jumps table[slot]`: the call's arguments. The real function stands
///   in a table.
macro_rules! stand_in {
    ($(#[$attribute:meta])* fn $name:ident $(<$N:ident>)?, asks $observe:ident($number:expr)) => {
        $crate::arch::aarch64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [$($N)?] $observe, ["mov x16, x0"],
            ["mov w0, {number}"], number = const $number
        );
    };
    (
        $(#[$attribute:meta])*
        fn $name:ident $(<$N:ident>)?, asks $observe:ident(first, second, stack, $number:expr)
    ) => {
        $crate::arch::aarch64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [$($N)?] $observe, ["mov x16, x0"],
            ["mov x2, sp", "mov w3, {number}"], number = const $number
        );
    };
    ($(#[$attribute:meta])* fn $name:ident, asks $observe:ident(arguments, number)) => {
        $crate::arch::aarch64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [] $observe, ["mov x16, x0"], ["mov w5, w17"],
        );
    };
    (
        $(#[$attribute:meta])*
        fn $name:ident $(<$N:ident>)?,
        tells $observe:ident(arguments), jumps $real:ident[$slot:expr]
    ) => {
        $crate::arch::aarch64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [$($N)?] $observe,
            [$crate::arch::aarch64::registers::load_word!()], [],
            table = sym $real, offset = const $slot * size_of::<usize>()
        );
    };
    (
        @ [$(#[$attribute:meta])*] $name:ident [$($N:ident)?] $observe:ident, [$jump_to:expr],
        [$($setup:literal),*], $($operand:tt)*
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name $(<const $N: usize>)? () {
            std::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::aarch64::registers::keep_arguments!(),
                $($setup,)*
                "bl {observe}",
                $jump_to,
                $crate::arch::aarch64::registers::restore_arguments!(),
                "br x16",
                ".cfi_endproc",
                observe = sym $observe,
                $($operand)*
            )
        }
    };
}

/// Defines another name for a function.
macro_rules! jump_to {
    ($(#[$attribute:meta])* fn $name:ident, $to:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!("b {to}", to = sym $to)
        }
    };
}

/// Defines a function that notes where it was called from, in the word of this thread's memory at
/// an offset, and jumps to another.
macro_rules! note_caller_then_jump {
    ($(#[$attribute:meta])* $access:vis fn $name:ident, $offset:expr, $to:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $access unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                $crate::arch::aarch64::registers::find_this_thread!("x16", "x17"),
                "str x30, [x16, {offset}]",
                "b {to}",
                offset = const $offset,
                to = sym $to,
            )
        }
    };
}

/// The same for a call that arrived at the entry of a hooked function: it notes the address that
/// continues behind the hook (`jump_telling_way_past`), with one of its bits set. `x9` holds no argument, and is
/// free in a function that calls others, as all are that are hooked in this way.
macro_rules! note_way_past_then_jump {
    ($(#[$attribute:meta])* fn $name:ident, $bit:expr, $offset:expr, $to:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                "orr x17, x17, {bit}",
                $crate::arch::aarch64::registers::find_this_thread!("x16", "x9"),
                "str x17, [x16, {offset}]",
                "b {to}",
                bit = const 1_usize << $bit,
                offset = const $offset,
                to = sym $to,
            )
        }
    };
}

/// Bytes between the entries of `numbered_entries`.
pub(crate) const ENTRIES_APART: usize = 8;

/// Many functions that all lead to one and only pass on their own number. They are found by address
/// and not through a table of pointers, which the loader would have to fill in every process, even
/// without ggml.
macro_rules! numbered_entries {
    ($symbol:literal, $count:expr, $to:path) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.", $symbol, ",\"ax\",@progbits"),
            ".balign {apart}",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!($symbol, ":"),
            concat!(".set ", $symbol, "_number, 0"),
            ".rept {count}",
            ".balign {apart}",
            // mov w17, number
            concat!(".long 0x52800011 + (", $symbol, "_number << 5)"),
            "b {to}",
            concat!(".set ", $symbol, "_number, ", $symbol, "_number + 1"),
            ".endr",
            ".popsection",
            apart = const $crate::arch::ENTRIES_APART,
            count = const $count,
            to = sym $to,
        );
    };
}

pub(crate) use {
    jump_to, note_caller_then_jump, note_way_past_then_jump, numbered_entries, stand_in,
};
