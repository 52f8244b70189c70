//! Runs recorded ops alone, each in a process of its own: one that ends its process loses one row.

mod libraries;
mod nodes;
mod worker;

use crate::cli::OpBenchArgs;
use crate::messages;
use ggprof_analysis::DistinctOp;
use ggprof_ops::{Libraries, Node, Trial};
use ggprof_report::documents::{LeastOp, OpBenchRow};
use ggprof_trace::{Backend, Trace};
use std::collections::BTreeSet;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// How long an op is measured, each way.
const MEASURE_MS: u64 = 300;
/// More than the caches of any device hold.
const COLD_BYTES_OF_DEVICES: u64 = 256 << 20;
/// Processors that do not say what theirs hold get as much.
const COLD_BYTES: u64 = 128 << 20;

/// All ops on every ggml that was named, and what the least op takes on each of their backends.
pub(crate) fn run(
    trace: &Trace,
    ops: &[DistinctOp],
    arguments: &OpBenchArgs,
) -> anyhow::Result<(Vec<OpBenchRow>, Vec<LeastOp>)> {
    let (mut rows, mut least): (Vec<OpBenchRow>, Vec<LeastOp>) = Default::default();
    let limit = arguments.limit.unwrap_or(LIMIT);
    let mut replaced = BTreeSet::new();
    for (at, op) in ops.iter().enumerate() {
        let backend = trace.backend(op.backend);
        for (ggml, libraries) in libraries::choices(trace, backend, &arguments.ggml)? {
            let (number, name) = (at + 1, trace.op_name(op.node));
            messages::progress(&format!("operation {number} of {}: {name}", ops.len()));
            let measured = |nodes: Vec<Node>| {
                let libraries = libraries.clone()?;
                let threads = arguments.threads.or(op.threads);
                worker::measured(&trial(trace, backend, libraries, threads, nodes), limit)
            };
            let outcome = nodes::of(trace, op).and_then(&measured);
            let is_known = |it: &LeastOp| it.backend == op.backend && it.ggml == ggml;
            if outcome.is_ok() && !least.iter().any(is_known) {
                let ns = measured(vec![Node::scale([1; 4])]).ok().map(|it| it.warm_ns);
                least.push(LeastOp { backend: op.backend, ggml: ggml.clone(), ns });
            }
            if let (Ok(measured), Ok(libraries), true) = (&outcome, &libraries, ggml.is_empty()) {
                replaced.extend(libraries::replaced(trace, &libraries.base, &measured.version));
            }
            let outcome = outcome.map(|it| (it.warm_ns, it.cold_ns, it.weight_memory));
            rows.push(OpBenchRow { op: op.clone(), ggml, outcome });
        }
    }
    messages::progress_is_over();
    replaced.iter().for_each(|sentence| messages::warning(sentence));
    Ok((rows, least))
}

fn trial(
    trace: &Trace,
    backend: &Backend,
    libraries: Libraries,
    threads: Option<u32>,
    nodes: Vec<Node>,
) -> Trial {
    Trial {
        libraries,
        device: backend.label().to_owned(),
        threads,
        weight_memory: weight_memory(trace),
        nodes,
        cold_bytes: cold_bytes(backend),
        measure_ms: MEASURE_MS,
    }
}

/// The kinds of memory that the program had weights in.
fn weight_memory(trace: &Trace) -> Vec<String> {
    let names: BTreeSet<&String> = trace.buffers.iter().map(|buffer| &buffer.type_name).collect();
    names.into_iter().cloned().collect()
}

fn cold_bytes(backend: &Backend) -> u64 {
    match backend.device_type {
        ggprof_trace::DeviceType::Cpu => {
            let caches = processor_cache().map_or(COLD_BYTES, |bytes| bytes * 2);
            caches.clamp(COLD_BYTES / 2, COLD_BYTES_OF_DEVICES * 2)
        }
        _ => COLD_BYTES_OF_DEVICES,
    }
}

/// The bytes of the largest cache of a processor.
fn processor_cache() -> Option<u64> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?.flatten();
    let size = |cache: std::fs::DirEntry| {
        let text = std::fs::read_to_string(cache.path().join("size")).ok()?;
        Some(text.trim().strip_suffix('K')?.parse::<u64>().ok()? * 1024)
    };
    caches.filter_map(size).max()
}
