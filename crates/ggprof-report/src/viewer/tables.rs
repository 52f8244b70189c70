//! What repeats, as JSON: nodes, signatures, backends, phases, and the words of the head.

use super::depth::depth;
use super::device::{host_tasks, kernel_names};
use super::estimates::estimates;
use super::experts::expert_layers;
use super::levels;
use super::overview::overview;
use super::requests;
use super::signatures::Signatures;
use crate::caveat::caveats;
use crate::document::sentence;
use crate::{Block, documents};
use ggprof_analysis::{Gaps, Module, Peaks, Phases, Wall, gaps, phases, wall};
use ggprof_trace::{
    BackendIndex, Gap, GraphRun, GraphRunId, Measured, Process, ProcessIndex, Trace, done,
};
use serde_json::{Value, json};

pub(super) fn tables(
    trace: &Trace,
    name: &str,
    peaks: Option<&Peaks>,
    drawn: Option<usize>,
) -> Value {
    let (wall, phases) = (wall(trace), phases(trace));
    let signatures = Signatures::of(trace);
    json!({
        "title": name,
        "facts": facts(trace, name, &wall),
        "warnings": warnings(trace),
        "wall": trace.span_ns().map_or(0, |(start, end)| end - start),
        "unrecorded": unrecorded(trace, &gaps(trace)),
        "clock": trace.unix_ns(wall.start_ns).map(|unix_ns| unix_ns as f64 / 1e6),
        "drawn": drawn,
        "processes": processes(trace),
        "backends": backends(trace, &wall, peaks),
        "phases": phase_list(&phases, wall.start_ns),
        "requests": requests::requests(&phases, wall.start_ns),
        "runs": runs(trace, &phases, wall.start_ns),
        "nodes": nodes(trace),
        "ops": signatures.ops,
        "shapes": signatures.shapes,
        "signatures": signatures.json(trace),
        "kernels": kernel_names(trace).iter().map(|&name| trace.text(name)).collect::<Vec<_>>(),
        "tasks": host_tasks(trace, wall.start_ns),
        "experts": expert_layers(trace, &phases),
        "overview": overview(trace, &phases, peaks, wall.start_ns),
        "estimates": estimates(trace, &phases, &signatures),
        "levels": levels::rows(trace, wall.start_ns),
        "depth": depth(trace, &phases, wall.start_ns),
        "measured": Measured::ALL.map(Measured::name),
        "modules": Module::ALL.map(Module::name),
    })
}

/// As much of it as the page shows.
fn unrecorded(trace: &Trace, gaps: &[Gap]) -> Vec<Value> {
    let (first_ns, last_ns) = trace.span_ns().unwrap_or_default();
    let gap = |gap: &Gap| {
        let [start, end] = [gap.start_ns, gap.end_ns].map(|ns| ns.clamp(first_ns, last_ns));
        let value = json!({ "start": since(start, first_ns), "end": since(end, first_ns), "runs": gap.runs });
        (start < end).then_some(value)
    };
    gaps.iter().filter_map(gap).collect()
}

/// The time before a process began and after it was over, without what is not recorded anyway.
fn absent(trace: &Trace, process: &Process, gaps: &[Gap]) -> Vec<Value> {
    let (first_ns, last_ns) = trace.span_ns().unwrap_or_default();
    let Some((from_ns, to_ns)) = process.there_ns else { return Vec::new() };
    let unknown_until = gaps.first().filter(|gap| gap.start_ns <= first_ns).map(|gap| gap.end_ns);
    let unknown_from = gaps.last().filter(|gap| gap.end_ns >= last_ns).map(|gap| gap.start_ns);
    let before = (unknown_until.unwrap_or(first_ns), from_ns);
    let after = (to_ns, unknown_from.unwrap_or(last_ns));
    let span = |(start, end): (u64, u64)| {
        let [start, end] = [start, end].map(|ns| ns.clamp(first_ns, last_ns));
        let value =
            json!({ "start": since(start, first_ns), "end": since(end, first_ns), "runs": null });
        (start < end).then_some(value)
    };
    [before, after].into_iter().filter_map(span).collect()
}

fn facts(trace: &Trace, name: &str, wall: &Wall) -> Vec<Value> {
    let head = documents::head(trace, name, wall);
    let facts = head.blocks.iter().filter_map(|block| match block {
        Block::Fact { title, values, .. } => Some(json!([title, sentence(values, " · ")])),
        _ => None,
    });
    facts.collect()
}

fn warnings(trace: &Trace) -> Vec<Value> {
    let caveats = caveats(trace);
    caveats.iter().map(|one| json!({"text": one.sentence(), "loss": one.is_loss()})).collect()
}

/// The machine is named where there are several: by its processor, because recordings do not know
/// names of hosts.
fn processes(trace: &Trace) -> Vec<Value> {
    let gaps = Gaps::of(trace);
    let process = |(at, process): (usize, &Process)| {
        let is_here = process.machine == trace.processes[0].machine;
        let machine = if is_here { "" } else { "another machine, " };
        let host = trace.has_machines().then(|| format!("{machine}{}", process.cpu));
        let own = gaps.of_process(Some(ProcessIndex(at as u16)));
        let unrecorded = [unrecorded(trace, own), absent(trace, process, own)].concat();
        json!({"label": process.label(), "host": host, "unrecorded": unrecorded})
    };
    trace.processes.iter().enumerate().map(process).collect()
}

fn backends(trace: &Trace, wall: &Wall, peaks: Option<&Peaks>) -> Vec<Value> {
    let peak = |at: usize| peaks?.roof_of(trace, BackendIndex(at as u16));
    let backends = trace.backends.iter().enumerate().map(|(at, backend)| {
        let time = wall.backends.iter().find(|time| usize::from(time.backend.0) == at);
        json!({
            "label": backend.label(),
            "name": backend.name,
            "type": backend.device_type.name(),
            "device": backend.device_label(),
            "process": backend.process.map(|process| process.0),
            "busy": time.map(|time| time.busy_ns),
            "copying": time.map(|time| time.copying_ns),
            "estimated": time.map_or(0, |time| time.copying_estimated_ns),
            "idle": time.map(|time| time.idle_ns),
            "peak": peak(at).map(|roof| json!({
                "bandwidth": roof.read_bytes_per_s.map(|rate| rate / 1e9),
                "compute": roof.most_ops_per_s().map(|rate| rate / 1e9),
            })),
        })
    });
    backends.collect()
}

/// A time after the first event's start, or before: a graph run begins before its first op.
pub(super) fn since(ns: u64, start_ns: u64) -> i64 {
    ns.wrapping_sub(start_ns) as i64
}

fn phase_list(phases: &Phases, start_ns: u64) -> Vec<Value> {
    let phase = |phase: &ggprof_analysis::Phase| {
        json!({
            "label": phase.label(),
            "kind": phase.kind as u8,
            "start": since(phase.start_ns, start_ns),
            "end": since(phase.end_ns, start_ns),
            "runs": phase.runs,
            "tokens": phase.tokens,
            "rate": phase.tokens_per_second(),
        })
    };
    phases.phases.iter().map(phase).collect()
}

/// The graph runs as columns. Where a device computes, a run is `done` after the host's end of
/// it.
fn runs(trace: &Trace, phases: &Phases, start_ns: u64) -> Value {
    let runs = || trace.graph_runs.iter();
    let number = |(at, _): (u32, &GraphRun)| trace.run_number(GraphRunId(at));
    json!({
        "start": runs().map(|run| since(run.start_ns, start_ns)).collect::<Vec<_>>(),
        "end": runs().map(|run| since(run.end_ns, start_ns)).collect::<Vec<_>>(),
        "done": done(trace).iter().map(|&ns| since(ns, start_ns)).collect::<Vec<_>>(),
        "scheduler": runs().map(|run| run.scheduler).collect::<Vec<_>>(),
        "number": (0..).zip(runs()).map(number).collect::<Vec<_>>(),
        "phase": phases.phase_of_run,
        "tokens": phases.tokens_of_run,
        "requests": requests::of_runs(trace, phases),
    })
}

fn nodes(trace: &Trace) -> Value {
    let ids = || trace.nodes.ids();
    let sources = |id| -> Vec<&str> {
        trace.nodes.source_names(id).iter().map(|&name| trace.text(name)).collect()
    };
    json!({
        "signature": ids().map(|id| trace.node(id).signature.0).collect::<Vec<_>>(),
        "name": ids().map(|id| trace.tensor_name(id)).collect::<Vec<_>>(),
        "sources": ids().map(sources).collect::<Vec<_>>(),
    })
}
