//! The stand-in for the barrier in assembly: it runs twice for every op, on every thread.

/// Defines a stand-in for the function at which threads wait for each other, with one that asks
/// functions for the time where the system's counter is not the clock. Both go to the real function,
/// which is in a table, and keep every register. It has one argument in all versions, so none is on
/// the stack.
///
/// The first one notes itself when a thread arrives and leaves. A thread that is in no recorded op,
/// or has no other thread to wait for, goes straight to the real function.
macro_rules! barrier_stand_in {
    (
        $(#[$attribute:meta])*
        fn $name:ident, $(#[$slow:meta])* fn $slowly:ident;
        real: $real:path, has_counter: $has_counter:path, reach: $reach:path, leave: $leave:path;
        in this thread: inside $inside:expr, log $log:expr;
        in its log: n_threads $n_threads:expr, current $current:expr, reached $reached:expr,
            left $left:expr, inner_wait $inner_wait:expr;
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name<const LIBRARY: usize>() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::aarch64::registers::find_this_thread!("x16", "x17"),
                "ldrb w17, [x16, {inside}]",
                "cbnz w17, 5f",
                "ldr x16, [x16, {log}]",
                "cbz x16, 5f",
                "ldr w17, [x16, {n_threads}]",
                // Two or more, without changing the flags.
                "lsr w17, w17, #1",
                "cbz w17, 5f",
                "ldr x17, [x16, {current}]",
                "cbz x17, 5f",
                "adrp x17, {has_counter}",
                "ldrb w17, [x17, :lo12:{has_counter}]",
                "cbz w17, 4f",
                "stp x29, x30, [sp, #-32]!",
                ".cfi_adjust_cfa_offset 32",
                ".cfi_rel_offset x29, 0",
                ".cfi_rel_offset x30, 8",
                "mov x29, sp",
                "str x19, [sp, #16]",
                ".cfi_rel_offset x19, 16",
                "mov x19, x16",
                // The thread arrives. A barrier that it left before was inside the op.
                "mrs x16, cntvct_el0",
                "ldr x17, [x19, {reached}]",
                "str x16, [x19, {reached}]",
                "cbz x17, 2f",
                "ldr x16, [x19, {left}]",
                "sub x17, x17, x16",
                "ldr x16, [x19, {inner_wait}]",
                "sub x16, x16, x17",
                "str x16, [x19, {inner_wait}]",
                "b 3f",
                "2:",
                "str xzr, [x19, {inner_wait}]",
                "3:",
                $crate::arch::aarch64::registers::load_word!(),
                "blr x16",
                // The thread leaves.
                "mrs x16, cntvct_el0",
                "str x16, [x19, {left}]",
                "ldr x19, [sp, #16]",
                "ldp x29, x30, [sp], #32",
                ".cfi_adjust_cfa_offset -32",
                ".cfi_restore x19",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "ret",
                "4:",
                "b {slowly}",
                "5:",
                $crate::arch::aarch64::registers::load_word!(),
                "br x16",
                ".cfi_endproc",
                inside = const $inside,
                log = const $log,
                n_threads = const $n_threads,
                current = const $current,
                reached = const $reached,
                left = const $left,
                inner_wait = const $inner_wait,
                has_counter = sym $has_counter,
                slowly = sym $slowly::<LIBRARY>,
                table = sym $real,
                offset = const LIBRARY * size_of::<usize>(),
            )
        }

        $(#[$slow])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $slowly<const LIBRARY: usize>() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-32]!",
                ".cfi_adjust_cfa_offset 32",
                ".cfi_rel_offset x29, 0",
                ".cfi_rel_offset x30, 8",
                "mov x29, sp",
                "str x19, [sp, #16]",
                ".cfi_rel_offset x19, 16",
                $crate::arch::aarch64::registers::keep_registers!(),
                "bl {reach}",
                "and w19, w0, #0xff",
                $crate::arch::aarch64::registers::restore_registers!(),
                $crate::arch::aarch64::registers::load_word!(),
                "blr x16",
                "cbz w19, 2f",
                $crate::arch::aarch64::registers::keep_registers!(),
                "bl {leave}",
                $crate::arch::aarch64::registers::restore_registers!(),
                "2:",
                "ldr x19, [sp, #16]",
                "ldp x29, x30, [sp], #32",
                ".cfi_adjust_cfa_offset -32",
                ".cfi_restore x19",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "ret",
                ".cfi_endproc",
                reach = sym $reach,
                leave = sym $leave,
                table = sym $real,
                offset = const LIBRARY * size_of::<usize>(),
            )
        }
    };
}

pub(crate) use barrier_stand_in;
