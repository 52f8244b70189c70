//! Why a recording is as slow as it is: where each token's time goes, and what to change.

use super::{budget, copies, phases, placement, summary, what_if};
use crate::document::Point;
use crate::{Document, findings};
use ggprof_analysis::{
    Divided, Explained, Finding, NodeSums, PhaseKind, Phases, divided, explained, peaks::Peaks,
    phases as find_phases, places,
};
use ggprof_trace::Trace;

/// In the summary; all of them are in the explanation.
const IN_SUMMARY: usize = 5;

/// Of a phase; less reads as 0.0%.
const LEAST_NOTED: f64 = 0.0005;

/// The explanation of a recording that people know as `name`, held against what the machine can do
/// where that was measured.
pub fn explain(trace: &Trace, name: &str, peaks: Option<&Peaks>) -> Document {
    let mut document = Document::default();
    document.heading("explain", format!("ggprof explain: {name}"));
    summary::warn(&mut document, trace);
    let phases = find_phases(trace);
    let sums = NodeSums::by_budget(trace, &phases);
    let places = places(trace);
    let divided = divided(trace, &phases, &places);
    let explained = explained(trace, &phases, &places, &sums, &divided, peaks);
    phases::overview(&mut document, trace, &phases);
    budget::tables(&mut document, trace, &explained.budgets);
    placement_and_copies(&mut document, trace, (&phases, &divided), peaks);
    list(&mut document, trace, &explained, usize::MAX);
    what_if::tables(&mut document, trace, &explained);
    document
}

/// The tables behind the findings, for a page that has the rest in another form.
pub(crate) fn tables(
    trace: &Trace,
    phases: &Phases,
    (divided, explained): (&Divided, &Explained),
    peaks: Option<&Peaks>,
) -> Document {
    let mut document = Document::default();
    placement_and_copies(&mut document, trace, (phases, divided), peaks);
    what_if::tables(&mut document, trace, explained);
    document
}

/// A trial is of interest only where there is nothing else.
fn placement_and_copies(
    document: &mut Document,
    trace: &Trace,
    (phases, divided): (&Phases, &Divided),
    peaks: Option<&Peaks>,
) {
    let are_trials = phases.phases.iter().all(|phase| phase.kind == PhaseKind::WarmUp);
    let is_wanted = |kind| are_trials || kind != Some(PhaseKind::WarmUp);
    placement::why(document, trace, phases, is_wanted);
    if trace.events.copies().next().is_some() {
        copies::of_phases(document, trace, (phases, &divided.exposed), peaks, is_wanted);
    }
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

/// What costs too little to be worth a change, in words, and how far each phase is from what its device can do.
pub(crate) fn beside_findings(trace: &Trace, explained: &Explained) -> (Vec<Point>, Vec<String>) {
    let limits = explained.rates.iter().map(|rate| findings::limit(trace, explained, rate));
    let is_healthy = findings::is_healthy(trace, explained);
    (small(trace, explained), if is_healthy { Vec::new() } else { limits.collect() })
}

fn small(trace: &Trace, explained: &Explained) -> Vec<Point> {
    let is_small = |finding: &&Finding| {
        let share = explained.share(finding);
        (LEAST_NOTED..ggprof_analysis::findings::LEAST_SHARE).contains(&share)
    };
    points(trace, explained, explained.findings.iter().filter(is_small), usize::MAX)
}

fn points<'f>(
    trace: &Trace,
    explained: &Explained,
    found: impl Iterator<Item = &'f Finding>,
    most: usize,
) -> Vec<Point> {
    let points = findings::points(trace, explained, found, most);
    points.into_iter().map(|(_, point)| point).collect()
}

/// The findings that are worth a change, or that there are none; all others below, where all are
/// wanted.
fn list(document: &mut Document, trace: &Trace, explained: &Explained, most: usize) {
    let worth = points(trace, explained, explained.worth_a_change(), most);
    document.heading("findings", "What costs time, and what to change");
    match (worth.is_empty(), findings::is_healthy(trace, explained)) {
        (false, _) => document.points("findings", worth),
        (true, true) => document.note("healthy", findings::nothing_found(trace, explained)),
        (true, false) => document.note("nothing_found", findings::nothing_found(trace, explained)),
    }
    for sentence in findings::not_seen(trace, explained) {
        document.note("not_seen", sentence);
    }
    if most == usize::MAX {
        let (notes, limits) = beside_findings(trace, explained);
        if !notes.is_empty() {
            document.heading("notes", "Below 5% of a phase");
            document.points("notes", notes);
        }
        limits.into_iter().for_each(|limit| document.note("limit", limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Style, console};
    use ggprof_trace::text_fixture;

    #[test]
    fn why_ops_are_on_the_host_stands_before_what_to_change() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             memory w CPU_Mapped weights host
             memory c CPU compute host
             batch 0..1000 0:3+1!1
             run 0..1000 batch=0
             op GPU MUL_MAT 0..200 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
             op CPU MUL_MAT 200..1000 Qcur-1 f32[8] <- q4_0[32,8] f32[32] run=0 split=1
             placed w,c out=c GPU=yes",
        );
        let text = console(&explain(&trace, "p", None), &Style::PLAIN);
        let (_, behind) = text.split_once("Why on the host although there is a device").unwrap();
        let (table, _) = behind.split_once("What costs time").unwrap();
        assert!(table.contains("weight in host memory; batch too small to offload (CPU_Mapped)"));
    }
}
