//! Stand-ins inside a CPU backend's library. They run for every op on every
//! thread. Each library has its own set (`LIBRARY` is its number), so that the
//! real function is found by a constant index: several builds of the backend
//! may be loaded at once, and their address ranges come and go.
//!
//! # Hot path: no allocation, no locks, no panics

use std::arch::naked_asm;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::library;
use super::shim::{
    call_with_stack, keep_arguments, keep_registers, observe_then_jump, restore_arguments,
    restore_registers,
};
use crate::fail_open;
use crate::observe::cpu_op::{self, ComputeParams};
use crate::recorder::this_thread::ThisThread;
use crate::recorder::thread_log::ThreadLog;

/// Libraries with ops hooked at the same time.
pub(crate) const LIBRARIES: usize = 8;
/// `ggml_compute_forward_*` slots over all libraries: a build has about 120.
pub(crate) const FORWARDS: usize = 512;

pub(crate) static EXTRA: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];
pub(crate) static BARRIER: [AtomicUsize; LIBRARIES] = [const { AtomicUsize::new(0) }; LIBRARIES];
pub(crate) static FORWARD: [AtomicUsize; FORWARDS] = [const { AtomicUsize::new(0) }; FORWARDS];

macro_rules! per_library {
    ($hook:ident) => {
        [
            $hook::<0> as *const (),
            $hook::<1> as *const (),
            $hook::<2> as *const (),
            $hook::<3> as *const (),
            $hook::<4> as *const (),
            $hook::<5> as *const (),
            $hook::<6> as *const (),
            $hook::<7> as *const (),
        ]
    };
}

pub(crate) fn extra_hook(library: usize) -> usize {
    per_library!(extra_compute_forward)[library] as usize
}

pub(crate) fn barrier_hook(library: usize) -> usize {
    per_library!(barrier)[library] as usize
}

/// For `patch::inline::Hook::KeepsRegisters`.
pub(crate) fn barrier_hook_at_entry(library: usize) -> usize {
    per_library!(barrier_at_entry)[library] as usize
}

/// `ggml_cpu_extra_compute_forward`: the first thing ggml calls for every node
/// it is about to compute, on every thread.
#[unsafe(naked)]
unsafe extern "C-unwind" fn extra_compute_forward<const LIBRARY: usize>() {
    observe_then_jump!(announced, LIBRARY, "mov edx, {slot}")
}

/// Returns the real function, which `library::hook_ops` stored before it installed the hook. That
/// the arguments are these shows where the second one is a node of a running graph.
extern "C-unwind" fn announced(params: *const ComputeParams, tensor: usize, library: u32) -> usize {
    fail_open::hot((), |this| cpu_op::begin(this, params, tensor));
    EXTRA.get(library as usize).map_or(0, |real| real.load(Ordering::Relaxed))
}

/// `ggml_barrier`: where a thread waits for the others. Its arguments are passed on as they are,
/// and a thread that has nobody to wait for goes straight to the real one.
#[unsafe(naked)]
unsafe extern "C-unwind" fn barrier<const LIBRARY: usize>() {
    naked_asm!(
        ".cfi_startproc",
        "mov rax, qword ptr [rip + ggprof_this_thread@GOTTPOFF]",
        "mov rax, qword ptr fs:[rax + {log}]",
        "test rax, rax",
        "je 3f",
        "cmp dword ptr [rax + {n_threads}], 1",
        "jbe 3f",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        keep_arguments!(),
        "call {reach}",
        "mov ebx, eax",
        restore_arguments!(),
        call_with_stack!("[rip + {barrier} + {offset}]"),
        "test bl, bl",
        "je 2f",
        "call {leave}",
        "2:",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "ret",
        "3:",
        "jmp qword ptr [rip + {barrier} + {offset}]",
        ".cfi_endproc",
        log = const ThisThread::LOG,
        n_threads = const ThreadLog::N_THREADS,
        reach = sym reach_barrier,
        leave = sym leave_barrier,
        barrier = sym BARRIER,
        offset = const LIBRARY * size_of::<AtomicUsize>(),
    )
}

/// The same at the function's own entry. There callers may count on all registers that the
/// real function, which is short and calls nobody, leaves as they were.
#[unsafe(naked)]
unsafe extern "C-unwind" fn barrier_at_entry<const LIBRARY: usize>() {
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

/// One of `ggml_compute_forward_*`. Its signature is not known (a fusion takes
/// several tensors), so every register an argument may be in is kept and the
/// real function is jumped to, as if nobody had been there.
#[unsafe(naked)]
unsafe extern "C-unwind" fn forward<const SLOT: usize>() {
    observe_then_jump!(forward_called, SLOT, "mov r9d, {slot}")
}

/// Returns the real function for `forward` to jump to. Of the arguments only
/// the first is known to be what it seems; the others are compared with the
/// graph's nodes and never followed.
extern "C-unwind" fn forward_called(
    params: *const ComputeParams,
    tensor: usize,
    second: usize,
    third: usize,
    fourth: usize,
    slot: u32,
) -> usize {
    let others = [second, third, fourth];
    let news = fail_open::hot(None, |this| cpu_op::begin_unannounced(this, params, tensor, others));
    if let Some(news) = news {
        note_use(slot as usize, news);
    }
    FORWARD[slot as usize].load(Ordering::Relaxed)
}

/// After this many calls without news a hook is taken out.
const IDLE_CALLS: u32 = 1000;
/// The count of a hook that had news once: it stays.
const USEFUL: u32 = u32::MAX;

static CALLS_WITHOUT_NEWS: [AtomicU32; FORWARDS] = [const { AtomicU32::new(0) }; FORWARDS];

#[inline(always)]
fn note_use(slot: usize, news: bool) {
    // Threads may count over each other; the number is a rough one.
    let Some(calls) = CALLS_WITHOUT_NEWS.get(slot) else { return };
    let before = calls.load(Ordering::Relaxed);
    if before == USEFUL {
        return;
    }
    calls.store(if news { USEFUL } else { before + 1 }, Ordering::Relaxed);
    if before == IDLE_CALLS {
        fail_open::guard((), |_| library::unhook_forward(slot));
    }
}

/// A slot that is used anew has everything to tell again.
pub(crate) fn forget_use(slot: usize) {
    CALLS_WITHOUT_NEWS[slot].store(0, Ordering::Relaxed);
}

pub(crate) fn forward_hook(slot: usize) -> usize {
    FORWARD_HOOKS[slot] as *const () as usize
}

type Forward = unsafe extern "C-unwind" fn();

/// Sixteen functions from `$start` on.
macro_rules! sixteen {
    ($start:expr) => {
        [
            forward::<{ $start }> as Forward,
            forward::<{ $start + 1 }>,
            forward::<{ $start + 2 }>,
            forward::<{ $start + 3 }>,
            forward::<{ $start + 4 }>,
            forward::<{ $start + 5 }>,
            forward::<{ $start + 6 }>,
            forward::<{ $start + 7 }>,
            forward::<{ $start + 8 }>,
            forward::<{ $start + 9 }>,
            forward::<{ $start + 10 }>,
            forward::<{ $start + 11 }>,
            forward::<{ $start + 12 }>,
            forward::<{ $start + 13 }>,
            forward::<{ $start + 14 }>,
            forward::<{ $start + 15 }>,
        ]
    };
}

static FORWARD_HOOKS: [Forward; FORWARDS] = {
    let groups: [[Forward; 16]; FORWARDS / 16] = [
        sixteen!(0),
        sixteen!(16),
        sixteen!(32),
        sixteen!(48),
        sixteen!(64),
        sixteen!(80),
        sixteen!(96),
        sixteen!(112),
        sixteen!(128),
        sixteen!(144),
        sixteen!(160),
        sixteen!(176),
        sixteen!(192),
        sixteen!(208),
        sixteen!(224),
        sixteen!(240),
        sixteen!(256),
        sixteen!(272),
        sixteen!(288),
        sixteen!(304),
        sixteen!(320),
        sixteen!(336),
        sixteen!(352),
        sixteen!(368),
        sixteen!(384),
        sixteen!(400),
        sixteen!(416),
        sixteen!(432),
        sixteen!(448),
        sixteen!(464),
        sixteen!(480),
        sixteen!(496),
    ];
    let mut all = [groups[0][0]; FORWARDS];
    let mut i = 0;
    while i < FORWARDS {
        all[i] = groups[i / 16][i % 16];
        i += 1;
    }
    all
};
