//! The stand-in for `ggml_barrier`, where a thread waits for the others: twice for every op, on
//! every thread, and all of them wait for the slowest. So it is written out here, in as few
//! instructions as it takes to note when the thread comes and when it goes on.
//!
//! It keeps every register. A compiler that sees all callers of a short function lets them count
//! on what the function leaves alone; and whatever arguments there are reach the real one.
//!
//! # Hot path: no allocation, no locks, no panics

use std::arch::naked_asm;
use std::sync::atomic::AtomicUsize;

use super::cpu_ops::{LIBRARIES, per_library};
use crate::arch::{call_with_stack, keep_registers, restore_registers};
use crate::clock;
use crate::observe::cpu_op;
use crate::observe::fail_open;
use crate::observe::this_thread::ThisThread;
use crate::recorder::thread_log::ThreadLog;

/// The real functions.
pub(crate) static BARRIER: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];

/// To be called in place of the function, or at its own entry
/// (`patch::inline::Hook::KeepsRegisters`).
pub(crate) fn hook(library: usize) -> usize {
    per_library!(barrier)[library] as usize
}

/// Keeps `rax` and `rdx`, and puts the cycle counter into `rax`.
macro_rules! count_cycles {
    () => {
        "push rax
         .cfi_adjust_cfa_offset 8
         push rdx
         .cfi_adjust_cfa_offset 8
         rdtsc
         shl rdx, 32
         or rax, rdx"
    };
}

/// Gives them back.
macro_rules! restore_counted {
    () => {
        "pop rdx
         .cfi_adjust_cfa_offset -8
         pop rax
         .cfi_adjust_cfa_offset -8"
    };
}

/// A thread that is in no recorded op, or has nobody to wait for, goes straight to the real
/// function. What is noted of others is what [`ThreadLog::reach_barrier`] and
/// [`ThreadLog::leave_barrier`] note.
#[unsafe(naked)]
unsafe extern "C-unwind" fn barrier<const LIBRARY: usize>() {
    naked_asm!(
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
        // It comes: a barrier that it left before was inside the op.
        count_cycles!(),
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
        restore_counted!(),
        call_with_stack!("[rip + {barrier} + {offset}]"),
        // It goes on.
        count_cycles!(),
        "mov qword ptr [rbx + {left}], rax",
        restore_counted!(),
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
        inside = const ThisThread::INSIDE,
        log = const ThisThread::LOG,
        n_threads = const ThreadLog::N_THREADS,
        current = const ThreadLog::CURRENT,
        reached = const ThreadLog::REACHED,
        left = const ThreadLog::LEFT,
        inner_wait = const ThreadLog::INNER_WAIT,
        has_counter = sym clock::COUNT_CYCLES,
        slowly = sym barrier_by_slow_clock::<LIBRARY>,
        barrier = sym BARRIER,
        offset = const LIBRARY * size_of::<AtomicUsize>(),
    )
}

/// The same where the cycle counter is not the clock.
#[unsafe(naked)]
unsafe extern "C-unwind" fn barrier_by_slow_clock<const LIBRARY: usize>() {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        keep_registers!(),
        "call {reach}",
        "mov ebx, eax",
        restore_registers!(),
        call_with_stack!("[rip + {barrier} + {offset}]"),
        "test bl, bl",
        "je 2f",
        keep_registers!(),
        "call {leave}",
        restore_registers!(),
        "2:",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "ret",
        ".cfi_endproc",
        reach = sym reach_barrier,
        leave = sym leave_barrier,
        barrier = sym BARRIER,
        offset = const LIBRARY * size_of::<AtomicUsize>(),
    )
}

extern "C" fn reach_barrier() -> bool {
    fail_open::hot(false, cpu_op::reach_barrier)
}

extern "C" fn leave_barrier() {
    fail_open::hot((), cpu_op::leave_barrier);
}
