//! A look as one line of JSON: raw numbers, `null` for what is not known.

use super::{dropped_key, ops_of, quantity};
use crate::render::printable;
use ggprof_analysis::live::{BackendNow, Frame, OpNow, Reading};
use serde_json::{Map, Value, json};

/// Enough to see what matters, and a line that can be read.
const MOST_OPS: usize = 20;

pub fn json_line(frame: &Frame) -> String {
    let seconds = frame.interval_ns as f64 / 1e9;
    let tokens = |speed: f64| frame.knows_tokens.then_some(speed);
    let standing = &frame.standing;
    let all = ops_of(frame, None);
    let sum_ns: u64 = all.iter().map(|op| op.total_ns).sum();
    let ops: Vec<Value> = all.iter().take(MOST_OPS).map(|it| op(it, sum_ns)).collect();
    let losses: Map<String, Value> = standing
        .dropped
        .iter()
        .map(|(dropped, count)| (dropped_key(*dropped).to_owned(), (*count).into()))
        .collect();
    let under_way = frame.under_way.map(|(tokens, ns)| json!({"tokens": tokens, "ns": ns}));
    json!({
        "pid": standing.pid,
        "program": printable(&standing.program),
        "recording": standing.is_recording,
        "seconds": seconds,
        "prompt_tokens_per_second": tokens(frame.prompt_speed),
        "generated_tokens_per_second": tokens(frame.generation_speed),
        "requests": frame.knows_tokens.then_some(frame.requests),
        "batch_tokens": frame.batch_tokens,
        "batch_under_way": under_way,
        "depth": frame.depth,
        "first_token_ns": percentiles(frame.first_token_ns),
        "between_tokens_ns": percentiles(frame.between_tokens_ns),
        "longest_gap_ns": frame.longest_gap.ns,
        "graph_runs": frame.runs,
        "longest_run_ns": frame.longest_run.map_or(0, |run| run.ns),
        "backends": frame.backends.iter().map(backend).collect::<Vec<_>>(),
        "ops": ops,
        "copied_bytes_per_second": frame.copied_bytes as f64 / seconds,
        "sensors": frame.readings.iter().map(reading).collect::<Vec<_>>(),
        "losses": losses,
        "missed_blocks": standing.missed_blocks,
    })
    .to_string()
}

fn percentiles(values: Option<(u64, u64)>) -> Value {
    values.map_or(Value::Null, |(p50, p95)| json!({"p50": p50, "p95": p95}))
}

fn backend(backend: &BackendNow) -> Value {
    let idle = backend.busy.map(|busy| (1.0 - busy - backend.copying).max(0.0));
    let causes = json!({
        "other_backends": backend.idle.elsewhere,
        "between_ops": backend.idle.between_ops,
        "outside_graphs": backend.idle.outside,
    });
    json!({
        "name": printable(&backend.name),
        "busy": backend.busy,
        "copying": backend.copying,
        "idle": idle,
        "idle_while": backend.busy.map(|_| causes),
    })
}

fn reading(reading: &Reading) -> Value {
    let (name, unit, scale) = quantity(reading.quantity);
    json!({
        "device": reading.device,
        "name": printable(&reading.name),
        "quantity": name,
        "unit": unit,
        "value": reading.value as f64 / scale,
    })
}

fn op(op: &OpNow, sum_ns: u64) -> Value {
    json!({
        "op": printable(&op.name),
        "backend": printable(&op.backend),
        "count": op.count,
        "total_ns": op.total_ns,
        "share": op.total_ns as f64 / sum_ns.max(1) as f64,
        "gigabytes_per_second": op.gigabytes_per_second(),
    })
}
