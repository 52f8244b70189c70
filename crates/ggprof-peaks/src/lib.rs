//! Measures what this machine can do at most: how fast its processor and its devices read memory,
//! copy and multiply. `ggprof-analysis` says what a recording makes of it.
//!
//! Every figure is the best of several passes: others may use the machine meanwhile, and what they
//! take away is not what it cannot do.

mod cpu;
mod cuda;
mod library;
mod passes;
mod vulkan;

use ggprof_analysis::peaks::{Peaks, VERSION};
use std::time::{SystemTime, UNIX_EPOCH};

/// Measures everything that is found, and says before each step what it is. The sentences say why
/// figures may be missing or too low.
pub fn measure(say: &dyn Fn(&str)) -> (Peaks, Vec<String>) {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut problems = Vec::new();
    problems.extend(cpu::disturbance());
    let cpu = cpu::measure(say);
    let mut devices = Vec::new();
    for measure in [cuda::measure, vulkan::measure] {
        let (found, failed) = measure(say);
        devices.extend(found);
        problems.extend(failed);
    }
    (Peaks { version: VERSION, measured_at_unix_s: since_1970.as_secs(), cpu, devices }, problems)
}
