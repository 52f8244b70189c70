//! The kernels of devices by name: which of them takes the time, and for which ops.

use ggprof_trace::{BackendIndex, StringId, Trace, WorkKind};
use hashbrown::HashMap;
use std::cmp::Reverse;

/// All launches of one kernel on one backend.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceKernel {
    pub name: StringId,
    pub backend: BackendIndex,
    pub count: u64,
    pub total_ns: u128,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Of all kernel time of the backend.
    pub share: f64,
    /// The ops it was launched for, the one with the most time first.
    pub ops: Vec<StringId>,
}

impl DeviceKernel {
    pub fn avg_ns(&self) -> f64 {
        self.total_ns as f64 / self.count as f64
    }
}

/// The time of one kernel for one op.
#[derive(Default)]
struct KernelSum {
    count: u64,
    total_ns: u128,
    longest: (u64, u64),
}

/// Kernels by total time, longest first. Copies and fills are not kernels.
pub fn device_kernels(trace: &Trace) -> Vec<DeviceKernel> {
    let mut sums: HashMap<(BackendIndex, StringId), HashMap<StringId, KernelSum>> = HashMap::new();
    let mut by_backend: HashMap<BackendIndex, u128> = HashMap::new();
    for work in trace.device_work.iter().filter(|work| work.kind == WorkKind::Kernel) {
        let event = trace.events.get(work.event);
        let op = trace.signature(event.node).op;
        let ops = sums.entry((event.backend, work.name)).or_default();
        ops.entry(op).or_default().add(work.charged_ns);
        *by_backend.entry(event.backend).or_default() += u128::from(work.charged_ns);
    }
    let mut kernels: Vec<DeviceKernel> = sums
        .into_iter()
        .map(|((backend, name), ops)| kernel(backend, name, ops, by_backend[&backend]))
        .collect();
    kernels.sort_by_key(|kernel| (Reverse(kernel.total_ns), kernel.backend, kernel.name));
    kernels
}

fn kernel(
    backend: BackendIndex,
    name: StringId,
    ops: HashMap<StringId, KernelSum>,
    all_ns: u128,
) -> DeviceKernel {
    let mut ops: Vec<(StringId, KernelSum)> = ops.into_iter().collect();
    ops.sort_by_key(|(op, sum)| (Reverse(sum.total_ns), *op));
    let total_ns = ops.iter().map(|(_, sum)| sum.total_ns).sum();
    DeviceKernel {
        name,
        backend,
        count: ops.iter().map(|(_, sum)| sum.count).sum(),
        total_ns,
        min_ns: ops.iter().map(|(_, sum)| sum.longest.0).min().unwrap_or(0),
        max_ns: ops.iter().map(|(_, sum)| sum.longest.1).max().unwrap_or(0),
        share: if all_ns > 0 { total_ns as f64 / all_ns as f64 } else { 0.0 },
        ops: ops.into_iter().map(|(op, _)| op).collect(),
    }
}

impl KernelSum {
    fn add(&mut self, ns: u64) {
        let (least, most) = if self.count == 0 { (ns, ns) } else { self.longest };
        self.longest = (least.min(ns), most.max(ns));
        self.count += 1;
        self.total_ns += u128::from(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn kernels_are_added_up_over_ops() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             op GPU MUL_MAT 0..100 q
             kernel mul_mat_vec 0..60
             kernel quantize 60..80
             op GPU MUL_MAT_ID 100..130 e
             kernel mul_mat_vec 100..130",
        );
        let kernels = device_kernels(&trace);
        let rows: Vec<_> = kernels
            .iter()
            .map(|kernel| (trace.text(kernel.name), kernel.count, kernel.total_ns))
            .collect();
        assert_eq!(rows, [("mul_mat_vec", 2, 90), ("quantize", 1, 20)]);
        let first = &kernels[0];
        assert_eq!((first.min_ns, first.max_ns, first.avg_ns()), (30, 60, 45.0));
        assert_eq!(first.share, 90.0 / 110.0);
        let ops: Vec<_> = first.ops.iter().map(|&op| trace.text(op)).collect();
        assert_eq!(ops, ["MUL_MAT", "MUL_MAT_ID"]);
    }
}
