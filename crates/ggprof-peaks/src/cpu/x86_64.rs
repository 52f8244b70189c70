//! Loops of multiplications for x86-64, written as instructions: a compiler would have to be talked
//! out of leaving them away, and this way it is known what was measured.
//!
//! Each loop has as many independent sums as there are registers left, more than a processor needs
//! to start its multiplications without waiting for earlier ones. Registers are zeroed first: no
//! value slows a multiplication down, except denormal ones.

use super::compute::Kernel;
use super::portable;
use ggprof_analysis::peaks::Operands;
use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, CpuidResult};

/// Multiplications in a turn of every loop: as many sums.
const SUMS: u64 = 14;

/// The best that this processor has.
pub(super) fn f32_products() -> Kernel {
    let kernel = |by, lanes, run| {
        let ops_per_turn = SUMS * lanes * 2;
        Kernel { operands: Operands::F32, by, ops_per_turn, run }
    };
    if is_x86_feature_detected!("avx512f") {
        kernel("AVX-512", 16, avx512_f32)
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        kernel("AVX2 FMA", 8, fma_f32)
    } else {
        portable::F32
    }
}

pub(super) fn int8_products() -> Kernel {
    let kernel = |by, lanes, run| {
        let ops_per_turn = SUMS * lanes * 2;
        Kernel { operands: Operands::Int8, by, ops_per_turn, run }
    };
    if is_x86_feature_detected!("avx512vnni") {
        kernel("AVX-512 VNNI", 64, avx512_int8)
    } else if is_x86_feature_detected!("avx2") && has_avx_vnni() {
        kernel("AVX-VNNI", 32, avx_vnni_int8)
    } else if is_x86_feature_detected!("avx2") {
        kernel("AVX2", 32, avx2_int8)
    } else {
        portable::INT8
    }
}

/// AVX-VNNI: leaf 7, part 1, EAX bit 4.
fn has_avx_vnni() -> bool {
    features(0).eax >= 1 && features(1).eax & (1 << 4) != 0
}

/// A part of leaf 7; zeros where there is none.
pub(super) fn features(part: u32) -> CpuidResult {
    // Later versions of Rust than the oldest one that is supported call it without `unsafe`.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        __cpuid_count(7, part)
    }
}

/// Loads every word, two cache lines in a turn; at most a line at the end is left out. Wider loads are
/// no faster where memory is what they wait for.
pub(super) fn load(words: &[u64]) {
    const WORDS_PER_TURN: usize = 16;
    let turns = words.len() / WORDS_PER_TURN;
    if turns == 0 {
        return;
    }
    // SAFETY: reads 128 bytes a turn, all within the slice.
    unsafe {
        asm!(
            "2:",
            ".irp place, 0, 16, 32, 48, 64, 80, 96, 112",
            "movups {loaded}, [{at} + \\place]",
            ".endr",
            "add {at}, 128",
            "dec {turns}",
            "jnz 2b",
            at = inout(reg) words.as_ptr() => _,
            turns = inout(reg) turns => _,
            loaded = out(xmm_reg) _,
            options(readonly, nostack),
        );
    }
}

/// Makes a function that takes turns over some instructions, each of them repeated for the sums 0 to
/// 13 (`\\sum` in the text). Registers 14 and 15 are the factors.
macro_rules! loop_over {
    ($name:ident: $($instruction:literal),+) => {
        fn $name(turns: u64) {
            // SAFETY: chosen only on processors with these instructions, which touch the registers
            // that are named below, and no memory.
            unsafe {
                asm!(
                    ".irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                    "vpxor xmm\\register, xmm\\register, xmm\\register",
                    ".endr",
                    "2:",
                    ".irp sum, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13",
                    $($instruction,)+
                    ".endr",
                    "dec {turns}",
                    "jnz 2b",
                    "vzeroupper",
                    turns = inout(reg) turns.max(1) => _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nomem, nostack),
                );
            }
        }
    };
}

loop_over!(avx512_f32: "vfmadd231ps zmm\\sum, zmm14, zmm15");
loop_over!(fma_f32: "vfmadd231ps ymm\\sum, ymm14, ymm15");
loop_over!(avx512_int8: "vpdpbusd zmm\\sum, zmm14, zmm15");
loop_over!(avx_vnni_int8: "{{vex}} vpdpbusd ymm\\sum, ymm14, ymm15");
// Products of bytes in pairs, pairs of pairs, and the sum; 15 is written anew each time.
loop_over!(
    avx2_int8:
    "vpmaddubsw ymm15, ymm14, ymm14",
    "vpmaddwd ymm15, ymm15, ymm14",
    "vpaddd ymm\\sum, ymm\\sum, ymm15"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_beyond_the_end() {
        for words in [0, 15, 16, 100] {
            load(&vec![7; words]);
        }
    }

    #[test]
    fn every_loop_that_this_processor_has_ends() {
        (f32_products().run)(1000);
        (int8_products().run)(1000);
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            fma_f32(1000);
            avx2_int8(0);
        }
        if has_avx_vnni() {
            avx_vnni_int8(1000);
        }
    }
}
