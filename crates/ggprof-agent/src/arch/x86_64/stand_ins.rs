//! Functions that stand in for others. All arguments reach the real function unchanged, whatever
//! they are and wherever they lie.

/// Defines a stand-in for a function whose arguments are not all known, or not all in registers:
/// every register an argument may be in is kept, our own function is called, and the real one is
/// jumped to. What our own is called with, in the order of its arguments:
///
/// * `asks observe(number)`: a number. It returns the real function;
/// * `asks observe(first, second, stack, number)`: the call's first two arguments and its stack
///   (`sixth_behind_two_sizes`), and a number. It returns the real function;
/// * `asks observe(arguments, number)`: the call's first five arguments and the number of the entry
///   (`numbered_entries`) by which it came. It returns the real function;
/// * `tells observe(arguments), jumps table[slot]`: the call's arguments. The real function stands
///   in a table.
macro_rules! stand_in {
    ($(#[$attribute:meta])* fn $name:ident $(<$N:ident>)?, asks $observe:ident($number:expr)) => {
        $crate::arch::x86_64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [$($N)?] $observe, ["mov r11, rax"],
            ["mov edi, {number}"], number = const $number
        );
    };
    (
        $(#[$attribute:meta])*
        fn $name:ident $(<$N:ident>)?, asks $observe:ident(first, second, stack, $number:expr)
    ) => {
        $crate::arch::x86_64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [$($N)?] $observe, ["mov r11, rax"],
            ["lea rdx, [rsp + 0xb8]", "mov ecx, {number}"], number = const $number
        );
    };
    ($(#[$attribute:meta])* fn $name:ident, asks $observe:ident(arguments, number)) => {
        $crate::arch::x86_64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [] $observe, ["mov r11, rax"], ["mov r9d, r11d"],
        );
    };
    (
        $(#[$attribute:meta])*
        fn $name:ident $(<$N:ident>)?,
        tells $observe:ident(arguments), jumps $real:ident[$slot:expr]
    ) => {
        $crate::arch::x86_64::stand_ins::stand_in!(
            @ [$(#[$attribute])*] $name [$($N)?] $observe,
            ["mov r11, qword ptr [rip + {real} + {offset}]"], [],
            real = sym $real, offset = const $slot * size_of::<usize>()
        );
    };
    (
        @ [$(#[$attribute:meta])*] $name:ident [$($N:ident)?] $observe:ident, [$jump_to:literal],
        [$($setup:literal),*], $($operand:tt)*
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name $(<const $N: usize>)? () {
            std::arch::naked_asm!(
                "sub rsp, 0xb8",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov [rsp + 48], rax",
                "movups [rsp + 56], xmm0",
                "movups [rsp + 72], xmm1",
                "movups [rsp + 88], xmm2",
                "movups [rsp + 104], xmm3",
                "movups [rsp + 120], xmm4",
                "movups [rsp + 136], xmm5",
                "movups [rsp + 152], xmm6",
                "movups [rsp + 168], xmm7",
                $($setup,)*
                "call {observe}",
                $jump_to,
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "mov rax, [rsp + 48]",
                "movups xmm0, [rsp + 56]",
                "movups xmm1, [rsp + 72]",
                "movups xmm2, [rsp + 88]",
                "movups xmm3, [rsp + 104]",
                "movups xmm4, [rsp + 120]",
                "movups xmm5, [rsp + 136]",
                "movups xmm6, [rsp + 152]",
                "movups xmm7, [rsp + 168]",
                "add rsp, 0xb8",
                "jmp r11",
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
            std::arch::naked_asm!("jmp {to}", to = sym $to)
        }
    };
}

/// Defines a function that notes where it was called from, in the word of this thread's memory at
/// an offset, and jumps to another. Neither `r11` nor `rax` is an argument.
macro_rules! note_caller_then_jump {
    ($(#[$attribute:meta])* $access:vis fn $name:ident, $offset:expr, $to:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $access unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                "mov r11, [rsp]",
                "mov rax, qword ptr [rip + ggprof_this_thread@GOTTPOFF]",
                "mov qword ptr fs:[rax + {offset}], r11",
                "jmp {to}",
                offset = const $offset,
                to = sym $to,
            )
        }
    };
}

/// The same for a call that arrived at the entry of a hooked function: it notes the address that
/// continues behind the hook (`jump_telling_way_past`), with one of its bits set.
macro_rules! note_way_past_then_jump {
    ($(#[$attribute:meta])* fn $name:ident, $bit:expr, $offset:expr, $to:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                "bts r11, {bit}",
                "mov rax, qword ptr [rip + ggprof_this_thread@GOTTPOFF]",
                "mov qword ptr fs:[rax + {offset}], r11",
                "jmp {to}",
                bit = const $bit,
                offset = const $offset,
                to = sym $to,
            )
        }
    };
}

/// Bytes between the entries of `numbered_entries`.
pub(crate) const ENTRIES_APART: usize = 16;

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
            // mov r11d, number
            ".byte 0x41, 0xbb",
            concat!(".long ", $symbol, "_number"),
            "jmp {to}",
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
