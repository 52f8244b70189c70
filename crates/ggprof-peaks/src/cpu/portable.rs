//! The same in plain Rust, for processors whose instructions this crate does not name: what the
//! compiler makes of it for the oldest processor of its kind.

use super::compute::Kernel;
use ggprof_analysis::peaks::Operands;
use std::hint::black_box;

const LANES: usize = 64;
const BY: &str = "portable code";

pub(super) const F32: Kernel =
    Kernel { operands: Operands::F32, by: BY, ops_per_turn: 2 * LANES as u64, run: f32_products };

pub(super) const INT8: Kernel =
    Kernel { operands: Operands::Int8, by: BY, ops_per_turn: 2 * LANES as u64, run: int8_products };

/// Sums the words up, so that none can be left away.
#[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "has instructions of its own"))]
pub(super) fn load(words: &[u64]) {
    let mut sums = [0u64; LANES];
    for block in words.chunks(LANES) {
        for (sum, word) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*word);
        }
    }
    black_box(sums);
}

fn f32_products(turns: u64) {
    let (a, b) = (black_box([1.5f32; LANES]), black_box([0.5f32; LANES]));
    let mut sums = [0f32; LANES];
    for _ in 0..turns {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
        black_box(&mut sums);
    }
}

fn int8_products(turns: u64) {
    let (a, b) = (black_box([3i8; LANES]), black_box([5i8; LANES]));
    let mut sums = [0i32; LANES];
    for _ in 0..turns {
        for lane in 0..LANES {
            let product = i16::from(a[lane]) * i16::from(b[lane]);
            sums[lane] = sums[lane].wrapping_add(i32::from(product));
        }
        black_box(&mut sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end() {
        (F32.run)(3);
        (INT8.run)(3);
    }
}
