//! Why a recording is as slow as it is: where each token's time goes, and what to change.

use super::{budget, copies, phases, summary, what_if};
use crate::document::Point;
use crate::{Document, findings};
use ggprof_analysis::{
    Explained, NodeSums, Phases, divided, explained, peaks::Peaks, phases as find_phases, places,
};
use ggprof_trace::Trace;

/// In the summary; all of them are in the explanation.
const IN_SUMMARY: usize = 5;

/// The explanation of a recording that people know as `name`, held against what the machine can do
/// where that was measured.
pub fn explain(trace: &Trace, name: &str, peaks: Option<&Peaks>) -> Document {
    let mut document = Document::default();
    document.heading("explain", format!("ggprof explain: {name}"));
    summary::warn(&mut document, trace);
    let phases = find_phases(trace);
    let sums = NodeSums::by_budget(trace, &phases);
    let explained = explain_phases(trace, &phases, &sums, peaks);
    phases::overview(&mut document, trace, &phases);
    budget::tables(&mut document, trace, &explained.budgets);
    if trace.events.copies().next().is_some() {
        copies::of_phases(&mut document, trace, &phases, peaks);
    }
    list(&mut document, trace, &explained, usize::MAX);
    limits(&mut document, trace, &explained);
    what_if::table(&mut document, trace, &explained);
    document
}

/// What the summary says of it.
pub(super) fn overview(
    document: &mut Document,
    trace: &Trace,
    phases: &Phases,
    sums: &NodeSums,
    peaks: Option<&Peaks>,
) {
    let explained = explain_phases(trace, phases, sums, peaks);
    budget::tables(document, trace, &explained.budgets);
    list(document, trace, &explained, IN_SUMMARY);
}

/// `sums` are those by budget.
pub(crate) fn explain_phases(
    trace: &Trace,
    phases: &Phases,
    sums: &NodeSums,
    peaks: Option<&Peaks>,
) -> Explained {
    let places = places(trace);
    explained(trace, phases, &places, sums, &divided(trace, phases, &places), peaks)
}

/// The findings that are worth a change, or that there are none; all others below, where all are
/// wanted.
fn list(document: &mut Document, trace: &Trace, explained: &Explained, most: usize) {
    let point = |finding| findings::point(trace, explained, finding);
    let worth: Vec<Point> = explained.worth_a_change().take(most).map(point).collect();
    document.heading("findings", "What costs time, and what to change");
    match worth.is_empty() {
        true => document.note("healthy", findings::healthy(trace, explained)),
        false => document.points("findings", worth),
    }
    let is_small = |finding: &&ggprof_analysis::Finding| {
        explained.share(finding) < ggprof_analysis::findings::LEAST_SHARE
    };
    let notes: Vec<Point> = explained.findings.iter().filter(is_small).map(point).collect();
    if most == usize::MAX && !notes.is_empty() {
        document.heading("notes", "Below 5% of a phase");
        document.points("notes", notes);
    }
}

fn limits(document: &mut Document, trace: &Trace, explained: &Explained) {
    if explained.worth_a_change().next().is_none() {
        return;
    }
    for rate in &explained.rates {
        document.note("limit", findings::limit(trace, explained, rate));
    }
}
