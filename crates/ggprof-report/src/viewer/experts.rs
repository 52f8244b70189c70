//! How often each expert was used, for the page's map of their heat.

use crate::documents;
use ggprof_analysis::Phases;
use ggprof_analysis::experts::{ExpertLayer, SeenBy, experts};
use ggprof_trace::Trace;
use serde_json::{Value, json};

pub(super) fn expert_layers(trace: &Trace, phases: &Phases) -> Vec<Value> {
    let layer = |layer: &ExpertLayer| {
        json!({
            "phase": layer.phase.map(documents::phase_name),
            "layer": layer.layer.map(|layer| layer.0),
            "byCopies": layer.seen_by == SeenBy::Copies,
            "runs": layer.graph_runs,
            "tokens": layer.tokens,
            "read": layer.tokens_read,
            "evenness": layer.evenness(),
            "uses": layer.uses,
        })
    };
    experts(trace, phases).iter().map(layer).collect()
}
