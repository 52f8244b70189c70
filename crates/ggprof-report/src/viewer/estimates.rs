//! What is estimated beyond what was measured, for each row of the page's table of totals. A row's
//! error is not that of the rows in it together, so every row has its own.

use super::signatures::Signatures;
use ggprof_analysis::{Estimate, Phases, estimates_in_parts, places};
use ggprof_trace::{Event, Trace};
use serde_json::{Value, json};

/// The groups that a row is in, from the outermost on, by the page's numbers.
type Path = Vec<u64>;

/// For each way to group: `[path, ns, error_ns, calls, covers]`: the calls that it adds, and all whose
/// time it is. It is below zero for the splits that were timed as wholes.
pub(super) fn estimates(trace: &Trace, phases: &Phases, signatures: &Signatures) -> Value {
    let places = places(trace);
    let op = |event: &Event| u64::from(signatures.numbers(trace, event).op);
    // As the columns of events have it.
    let layer = |event: &Event| places.of(event).layer.map_or(0, |layer| u64::from(layer.0) + 1);
    let by_op = |event: &Event| {
        let shape = u64::from(signatures.numbers(trace, event).shape);
        beginnings(&[op(event), u64::from(event.backend.0), shape])
    };
    let of_all = |keys_of: &dyn Fn(&Event) -> Vec<Path>| {
        rows(estimates_in_parts(trace, |_| Path::new(), keys_of))
    };
    let phase = |event: &Event| {
        let phase = event.graph_run.and_then(|run| phases.phase_of_run.get(run.0 as usize));
        vec![phase.map_or(0, |&phase| u64::from(phase.wrapping_add(1)))]
    };
    json!({
        "op": of_all(&by_op),
        "layer": of_all(&|event| beginnings(&[layer(event), op(event)])),
        "phase": rows(estimates_in_parts(trace, phase, |event| [vec![], vec![op(event)]])),
    })
}

/// A path's row and those above it.
fn beginnings(path: &[u64]) -> Vec<Path> {
    (1..=path.len()).map(|length| path[..length].to_vec()).collect()
}

/// In the order of paths, so that a page is the same each time.
fn rows(estimates: impl IntoIterator<Item = ((Path, Path), Estimate)>) -> Vec<Value> {
    let joined = estimates.into_iter().map(|((outer, inner), it)| ([outer, inner].concat(), it));
    let mut rows: Vec<(Path, Estimate)> = joined.collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    let row =
        |(path, it): &(Path, Estimate)| json!([path, it.ns, it.error_ns, it.calls, it.covers]);
    rows.iter().map(row).collect()
}
