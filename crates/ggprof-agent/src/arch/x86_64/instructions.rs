//! Single instructions.

use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _rdtsc};
use std::ops::Range;

/// What the kernel calls its clock where it keeps time with the cycle counter.
pub(crate) const CLOCK_SOURCE: &[u8] = b"tsc";

/// The cycle counter.
///
/// # Safety
/// The kernel lets programs read it, as it does where it keeps time with it.
#[inline(always)]
pub(crate) unsafe fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; the rest is the caller's contract.
    unsafe { _rdtsc() }
}

/// Asks for memory to read, without waiting for it.
#[inline(always)]
pub(crate) fn ask_to_read<T>(at: *const T) {
    // SAFETY: a hint; any address will do.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// Asks for memory to write to, without waiting for it. Processors that do not know the
/// instruction ignore it.
#[inline(always)]
pub(crate) fn ask_to_write<T>(at: *const T) {
    // SAFETY: a hint; any address will do, and nothing is read or changed.
    unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags)) };
}

/// Makes instructions that were written as data visible to all processors that fetch them. These
/// processors see to it by themselves.
///
/// # Safety
/// The memory is mapped and can be read.
#[inline(always)]
pub(crate) unsafe fn publish_code(_written: Range<usize>) {}
