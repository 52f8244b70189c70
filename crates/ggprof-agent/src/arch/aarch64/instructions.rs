//! Single instructions.

use std::arch::asm;
use std::ops::Range;

/// What the kernel calls its clock where it keeps time with the counter.
pub(crate) const CLOCK_SOURCE: &[u8] = b"arch_sys_counter";

/// The system's counter, which all processors share. It counts at the rate that the firmware set, from
/// 24 MHz to 1 GHz; the kernel's own clock has no finer steps.
///
/// # Safety
/// The kernel lets programs read it, as it does where it keeps time with it.
#[inline(always)]
pub(crate) unsafe fn cycles() -> u64 {
    let count: u64;
    // SAFETY: reads a register; that it may be read is the caller's contract.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags)) };
    count
}

/// Asks for memory to read, without waiting for it.
#[inline(always)]
pub(crate) fn ask_to_read<T>(at: *const T) {
    // SAFETY: a hint; any address will do, and nothing is read or changed.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags)) };
}

/// Asks for memory to write to, without waiting for it.
#[inline(always)]
pub(crate) fn ask_to_write<T>(at: *const T) {
    // SAFETY: a hint; any address will do, and nothing is read or changed.
    unsafe { asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags)) };
}

/// Makes instructions that were written as data visible to all processors that fetch them: caches of
/// data and of instructions do not know of each other. (The kernel does the same for a page that
/// becomes executable, but does not promise it.)
///
/// # Safety
/// The memory is mapped and can be read.
pub(crate) unsafe fn publish_code(written: Range<usize>) {
    let kinds: usize;
    // SAFETY: a register that Linux lets programs read.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) kinds, options(nomem, nostack, preserves_flags)) };
    /// The bits with the logarithm of a cache line's length, in words.
    const OF_DATA: usize = 16;
    const OF_INSTRUCTIONS: usize = 0;
    let lines = |bits: usize| {
        let bytes = 4 << (kinds >> bits & 0xf);
        (written.start & !(bytes - 1)..written.end).step_by(bytes)
    };
    for line in lines(OF_DATA) {
        // SAFETY: writes a line of readable memory back, which changes no bytes.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: waits.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in lines(OF_INSTRUCTIONS) {
        // SAFETY: forgets what was fetched from a line of readable memory.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: waits, and fetches anew.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}
