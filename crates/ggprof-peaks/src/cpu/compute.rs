//! How fast the processor sums up products, with all threads, by the best instructions it has.

use crate::passes::Together;
use ggprof_analysis::peaks::{ComputeRate, Operands};
use std::time::{Duration, Instant};

/// A loop over nothing but multiplications and additions in registers.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) operands: Operands,
    pub(super) by: &'static str,
    pub(super) ops_per_turn: u64,
    /// Takes so many turns. Only on a processor that has the instructions.
    pub(super) run: fn(turns: u64),
}

/// Of the longest passes; the others take an eighth, and an eighth of that.
const PASS: Duration = Duration::from_millis(16);
/// To find out how many turns that is.
const FIRST_TURNS: u64 = 100_000;

pub(super) fn rates(together: Together) -> Vec<ComputeRate> {
    kernels().into_iter().map(|kernel| rate(kernel, together)).collect()
}

/// The best of a processor's usual registers for each kind of operand, and what else it has.
fn kernels() -> Vec<Kernel> {
    #[cfg(target_arch = "x86_64")]
    let kernels = {
        let usual = [super::x86_64::f32_products(), super::x86_64::int8_products()];
        usual.into_iter().chain(super::amx::int8_products()).collect()
    };
    #[cfg(not(target_arch = "x86_64"))]
    let kernels = vec![super::portable::F32, super::portable::INT8];
    kernels
}

fn rate(kernel: Kernel, together: Together) -> ComputeRate {
    let turns_per_pass = turns_in(PASS, kernel);
    let ops_per_s = together.best_rate(&|_, part| {
        let turns = turns_per_pass / part.of as u64;
        (kernel.run)(turns);
        turns * kernel.ops_per_turn
    });
    ComputeRate { operands: kernel.operands, by: kernel.by.to_owned(), ops_per_s }
}

fn turns_in(time: Duration, kernel: Kernel) -> u64 {
    // The shortest of a few: whoever interrupts it makes it look long.
    let shortest = (0..5).map(|_| {
        let start = Instant::now();
        (kernel.run)(FIRST_TURNS);
        start.elapsed()
    });
    let shortest = shortest.min().unwrap_or(time).max(Duration::from_micros(1));
    (time.as_secs_f64() / shortest.as_secs_f64() * FIRST_TURNS as f64) as u64
}
