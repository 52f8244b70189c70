//! What the page opens on: where each phase's time went, what costs time and what to change, and
//! which layers ran where.

use super::example::example;
use super::table_words;
use super::tables::since;
use crate::document::Point;
use crate::documents::{beside_findings, budget as budget_tables, tables_behind_findings};
use crate::{Block, Document, findings, spent_words};
use ggprof_analysis::placement::MapCell;
use ggprof_analysis::{
    Budget, Divided, Explained, Finding, NodeSums, Peaks, PhaseKind, Phases, divided, explained,
    placement, places,
};
use ggprof_trace::Trace;
use serde_json::{Value, json};

/// As many as a screen holds; all of them are in `ggprof explain`.
const FINDINGS: usize = 8;

/// Of columns that fit beside each other.
const MOST_RANK: u8 = 1;

pub(super) fn overview(
    trace: &Trace,
    phases: &Phases,
    peaks: Option<&Peaks>,
    start_ns: u64,
) -> Value {
    let places = places(trace);
    let sums = NodeSums::by_budget(trace, phases);
    let divided = divided(trace, phases, &places);
    let explained = explained(trace, phases, &places, &sums, &divided, peaks);
    let is_shown = |budget: &&Budget| budget_tables::is_shown(budget, &explained.budgets);
    let budgets = explained.budgets.iter().filter(is_shown);
    let worth = findings::points(trace, &explained, explained.worth_a_change(), FINDINGS);
    let worth: Vec<_> = worth.into_iter().filter(|(_, point)| !point.is_again).collect();
    let is_healthy = findings::is_healthy(trace, &explained);
    let nothing_found = worth.is_empty().then(|| findings::nothing_found(trace, &explained));
    let (small, limits) = beside_findings(trace, &explained);
    let small = small.iter().filter(|point| !point.is_again);
    let small: Vec<Value> =
        small.map(|point| json!({ "text": point.text, "lines": point.lines })).collect();
    json!({
        "budgets": budgets.map(|one| budget(trace, phases, one, start_ns)).collect::<Vec<_>>(),
        "findings": worth
            .iter()
            .map(|(found, point)| finding(trace, phases, (&divided, &explained), found, point, start_ns))
            .collect::<Vec<_>>(),
        "healthy": is_healthy,
        "nothingFound": nothing_found,
        "notSeen": findings::not_seen(trace, &explained),
        "placement": map(trace, phases),
        "small": small,
        "limits": limits,
        "tables": sections(&tables_behind_findings(trace, phases, (&divided, &explained), peaks)),
    })
}

/// Tables below their titles, with the sentences that follow them.
fn sections(document: &Document) -> Vec<Value> {
    let mut sections: Vec<Value> = Vec::new();
    for block in &document.blocks {
        if let Block::Heading { text, .. } = block {
            sections.push(json!({ "title": text, "table": null, "notes": [] }));
        }
        let Some(section) = sections.last_mut() else { continue };
        match block {
            Block::Table(table) => section["table"] = table_words::table(table, MOST_RANK),
            Block::Note { text, .. } => {
                section["notes"].as_array_mut().expect("made above").push(json!(text));
            }
            _ => {}
        }
    }
    sections
}

fn budget(trace: &Trace, phases: &Phases, budget: &Budget, start_ns: u64) -> Value {
    let rows = budget.rows.iter().map(|row| {
        json!({
            "spent": spent_words::key(row.spent),
            "backend": spent_words::backend(row.spent).map(|backend| backend.0),
            "words": spent_words::words(trace, row.spent),
            "ns": row.ns,
            "estimated": row.estimated_ns,
        })
    });
    json!({
        "title": budget_tables::title(budget),
        "unit": spent_words::unit(budget),
        "units": budget.units(),
        "wall": budget.wall_ns,
        "spans": spans(phases, budget, start_ns),
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// When its phases were: `[start, end]` each.
fn spans(phases: &Phases, budget: &Budget, start_ns: u64) -> Vec<Value> {
    let of = budget.phases.iter().filter_map(|&place| phases.phases.get(place as usize));
    of.map(|it| json!([since(it.start_ns, start_ns), since(it.end_ns, start_ns)])).collect()
}

fn finding(
    trace: &Trace,
    phases: &Phases,
    (divided, explained): (&Divided, &Explained),
    finding: &Finding,
    point: &Point,
    start_ns: u64,
) -> Value {
    let budget = &explained.budgets[finding.budget];
    let example = example(trace, phases, divided, budget, &finding.what);
    json!({
        "text": point.text,
        "lines": point.lines,
        "share": explained.share(finding),
        "spans": spans(phases, budget, start_ns),
        "example": example
            .map(|(from_ns, to_ns)| json!([since(from_ns, start_ns), since(to_ns, start_ns)])),
    })
}

/// For each kind of phase how long each backend computed each part of each layer.
fn map(trace: &Trace, phases: &Phases) -> Vec<Value> {
    let map = placement(trace, phases).map;
    let mut kinds: Vec<Option<PhaseKind>> = map.iter().map(|cell| cell.phase).collect();
    kinds.dedup();
    let of_kind = |kind: Option<PhaseKind>| {
        let cell = |cell: &MapCell| {
            let layer = cell.layer.map(|layer| layer.0);
            json!([
                layer,
                cell.module as u8,
                cell.backend.0,
                cell.own_ns,
                cell.calls,
                cell.estimated_ns
            ])
        };
        let cells = map.iter().filter(|cell| cell.phase == kind).map(cell);
        json!({ "kind": kind.map(|kind| kind as u8), "cells": cells.collect::<Vec<_>>() })
    };
    let work = kinds.into_iter().filter(|kind| *kind != Some(PhaseKind::WarmUp));
    work.map(of_kind).collect()
}
