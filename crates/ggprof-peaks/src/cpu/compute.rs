//! How fast the processor sums up products, with all threads, by the best instructions it has.

use crate::passes::Together;
use ggprof_analysis::peaks::{ComputeRate, Operands};

/// A loop over nothing but multiplications and additions in registers.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) operands: Operands,
    pub(super) by: &'static str,
    pub(super) ops_per_turn: u64,
    /// Takes so many turns. Only on a processor that has the instructions.
    pub(super) run: fn(turns: u64),
}

/// Some milliseconds.
const OPS_PER_PASS: u64 = 1 << 30;

pub(super) fn rates(together: Together) -> Vec<ComputeRate> {
    kernels().into_iter().map(|kernel| rate(kernel, together)).collect()
}

/// The best for each kind of operand.
fn kernels() -> [Kernel; 2] {
    #[cfg(target_arch = "x86_64")]
    return [super::x86_64::f32_products(), super::x86_64::int8_products()];
    #[cfg(not(target_arch = "x86_64"))]
    [super::portable::F32, super::portable::INT8]
}

fn rate(kernel: Kernel, together: Together) -> ComputeRate {
    let ops_per_s = together.best_rate(&|_, part| {
        let turns = OPS_PER_PASS / kernel.ops_per_turn / part.of as u64;
        (kernel.run)(turns);
        turns * kernel.ops_per_turn
    });
    ComputeRate { operands: kernel.operands, by: kernel.by.to_owned(), ops_per_s }
}
