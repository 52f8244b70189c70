//! What holds until it changes: how much memory there was.

use super::tables::since;
use ggprof_analysis::memory;
use ggprof_trace::Trace;
use serde_json::{Value, json};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// A row for each, in groups: when it became what, in its unit.
pub(super) fn levels(trace: &Trace, start_ns: u64) -> Vec<Value> {
    let memory = memory(trace).devices.into_iter().map(|device| {
        let times: Vec<i64> = device.steps.iter().map(|step| since(step.ns, start_ns)).collect();
        let values = device.steps.iter().map(|step| step.bytes as f64 / MEBIBYTE);
        json!({
            "group": "Memory",
            "label": device.device,
            "unit": "MiB",
            "times": times,
            "values": values.collect::<Vec<_>>(),
        })
    });
    memory.collect()
}
