//! How the time of a token grows with its context, for the plot of it.

use super::tables::since;
use ggprof_analysis::depth::{AttentionBy, RunAtDepth};
use ggprof_analysis::{AttentionChange, ByDepth, PhaseKind, Phases, depth as find_depth};
use ggprof_trace::Trace;
use serde_json::{Value, json};

pub(super) fn depth(trace: &Trace, phases: &Phases, start_ns: u64) -> Vec<Value> {
    let found = find_depth(trace, phases);
    found.iter().map(|depth| one(trace, depth, start_ns)).collect()
}

fn one(trace: &Trace, depth: &ByDepth, start_ns: u64) -> Value {
    let is_prompt = depth.kind == PhaseKind::Prompt;
    let points = || depth.points.iter();
    let column = |value: &dyn Fn(&RunAtDepth) -> Value| points().map(value).collect::<Vec<_>>();
    json!({
        "label": crate::documents::depth_label(depth),
        "exact": depth.is_exact,
        "slope": { "token": depth.token_slope, "attention": depth.attention_slope },
        "steps": depth.changes.iter().map(|change| told(trace, change)).collect::<Vec<_>>(),
        "points": {
            "depth": column(&|point| point.depth.into()),
            "start": column(&|point| since(point.start_ns, start_ns).into()),
            "parts": column(&|point| if is_prompt { point.tokens } else { 1 }.into()),
            "token": column(&|point| point.token_ns.into()),
            "attention": column(&|point| point.attention_ns.into()),
        },
    })
}

fn told(trace: &Trace, change: &AttentionChange) -> Value {
    let by = |computed: &AttentionBy| {
        let backends = computed.backends.iter().map(|&backend| trace.backend(backend).label());
        let kernels = computed.kernels.iter().map(|&kernel| trace.text(kernel));
        backends.map(String::from).chain(kernels.map(str::to_owned)).collect::<Vec<_>>().join(" ")
    };
    let text = format!("{}, before {}", by(&change.after), by(&change.before));
    json!({ "depth": change.depth, "text": text })
}
