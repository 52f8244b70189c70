//! The stand-in for the barrier in assembly: it runs twice for every op, on every thread.

/// Defines a stand-in for the function at which threads wait for each other, with one that asks
/// functions for the time where the cycle counter is not the clock. Both go to the real function,
/// which is in a table, and keep every register.
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
                "push rbx",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbx, 0",
                "mov rbx, qword ptr [rip + ggprof_this_thread@GOTTPOFF]",
                "cmp byte ptr fs:[rbx + {inside}], 0",
                "jne 5f",
                "mov rbx, qword ptr fs:[rbx + {log}]",
                "test rbx, rbx",
                "je 5f",
                "cmp dword ptr [rbx + {n_threads}], 1",
                "jbe 5f",
                "cmp qword ptr [rbx + {current}], 0",
                "je 5f",
                "cmp byte ptr [rip + {has_counter}], 0",
                "je 4f",
                // The thread arrives. A barrier that it left before was inside the op.
                $crate::arch::x86_64::registers::count_cycles!(),
                "mov rdx, qword ptr [rbx + {reached}]",
                "mov qword ptr [rbx + {reached}], rax",
                "test rdx, rdx",
                "je 2f",
                "sub rdx, qword ptr [rbx + {left}]",
                "sub qword ptr [rbx + {inner_wait}], rdx",
                "jmp 3f",
                "2:",
                "mov qword ptr [rbx + {inner_wait}], 0",
                "3:",
                $crate::arch::x86_64::registers::restore_counted!(),
                $crate::arch::x86_64::registers::call_with_stack!("[rip + {barrier} + {offset}]"),
                // The thread leaves.
                $crate::arch::x86_64::registers::count_cycles!(),
                "mov qword ptr [rbx + {left}], rax",
                $crate::arch::x86_64::registers::restore_counted!(),
                "pop rbx",
                ".cfi_remember_state",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbx",
                "ret",
                "4:",
                ".cfi_restore_state",
                "pop rbx",
                ".cfi_remember_state",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbx",
                "jmp {slowly}",
                "5:",
                ".cfi_restore_state",
                "pop rbx",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbx",
                "jmp qword ptr [rip + {barrier} + {offset}]",
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
                barrier = sym $real,
                offset = const LIBRARY * size_of::<usize>(),
            )
        }

        $(#[$slow])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $slowly<const LIBRARY: usize>() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "push rbx",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbx, 0",
                $crate::arch::x86_64::registers::keep_registers!(),
                "call {reach}",
                "mov ebx, eax",
                $crate::arch::x86_64::registers::restore_registers!(),
                $crate::arch::x86_64::registers::call_with_stack!("[rip + {barrier} + {offset}]"),
                "test bl, bl",
                "je 2f",
                $crate::arch::x86_64::registers::keep_registers!(),
                "call {leave}",
                $crate::arch::x86_64::registers::restore_registers!(),
                "2:",
                "pop rbx",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbx",
                "ret",
                ".cfi_endproc",
                reach = sym $reach,
                leave = sym $leave,
                barrier = sym $real,
                offset = const LIBRARY * size_of::<usize>(),
            )
        }
    };
}

pub(crate) use barrier_stand_in;
