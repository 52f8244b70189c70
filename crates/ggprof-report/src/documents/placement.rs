//! Which parts of the model ran where, and why the processor computed what it did.

use super::phases::kind_name;
use crate::document::Block;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::placement::{Caused, Offload, PlacementRow, Placements, Reason};
use ggprof_analysis::{Layer, PhaseKind, Phases, phases, placement};
use ggprof_trace::{BackendIndex, Trace, shape_text};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const WHERE: [Column; 10] = [
    Column::left("phase", "phase", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 0),
    Column::left("module", "part", 0),
    Column::left("layers", "layers", 1),
    Column::right("calls", "ops", 2),
    Column::right("own_ns", "time", 0),
    Column::right("estimated_ns", "estimated", 1),
    Column::right("share_of_phase", "% phase", 0),
    Column::right("ns_per_token", "per token", 1),
];

const WHY: [Column; 19] = [
    Column::left("phase", "phase", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "", 9),
    Column::left("module", "part", 1),
    Column::left("op", "operation", 0),
    Column::left("layers", "layers", 1),
    Column::left("reason", "", 9),
    Column::left("why", "why on the host", 0),
    Column::right("calls", "ops", 4),
    Column::right("own_ns", "time", 0),
    Column::right("copies", "copies", 3),
    Column::right("copy_bytes", "copied", 3),
    Column::right("copy_ns", "copying", 1),
    Column::right("estimated_ns", "estimated", 1),
    Column::right("splits", "splits", 2),
    Column::right("cost_ns", "", 9),
    Column::right("cost_share_of_phase", "% phase", 0),
    Column::right("cost_ns_per_token", "per token", 2),
    Column::left("example", "longest: sources", 5),
];

const REASONS: [Column; 14] = [
    Column::left("phase", "phase", 0),
    Column::left("reason", "", 9),
    Column::left("why", "why on the host", 0),
    Column::left("layers", "layers", 1),
    Column::right("calls", "ops", 3),
    Column::right("own_ns", "time", 0),
    Column::right("copies", "copies", 2),
    Column::right("copy_bytes", "copied", 2),
    Column::right("copy_ns", "copying", 1),
    Column::right("estimated_ns", "estimated", 1),
    Column::right("splits", "splits", 1),
    Column::right("cost_ns", "", 9),
    Column::right("cost_share_of_phase", "% phase", 0),
    Column::right("cost_ns_per_token", "per token", 1),
];

const UNEXPLAINED: &str = "Why ops are on the host is not known: that is in recordings of ggprof's \
                           own from format 5 on, of graphs that a scheduler computed.";

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let phases = phases(trace);
    let found = placement(trace, &phases);
    if found.has_device && !found.is_explained {
        document.blocks.push(Block::Warning(UNEXPLAINED.to_owned()));
    }
    document.heading("placement", "What was computed where");
    document.table(table_of_places(trace, &phases, &found));
    if found.has_device {
        reasons(document, trace, &phases, &found);
        document.heading("on_host", "Ops on the host, by cost");
        let rows = found.on_host(trace).map(|row| why_row(trace, &phases, row)).collect();
        document.table(Table { key: "on_host", columns: WHY.to_vec(), rows });
    }
}

/// Why the processor computes what it does beside a device, where that is known, in phases that are
/// wanted.
pub(super) fn why(
    document: &mut Document,
    trace: &Trace,
    phases: &Phases,
    is_wanted: impl Fn(Option<PhaseKind>) -> bool,
) {
    if trace.placements.is_empty() {
        return;
    }
    let mut found = placement(trace, phases);
    found.rows.retain(|row| is_wanted(row.phase));
    if found.on_host(trace).next().is_some() {
        reasons(document, trace, phases, &found);
    }
}

fn reasons(document: &mut Document, trace: &Trace, phases: &Phases, found: &Placements) {
    document.heading("reasons", "Why on the host although there is a device");
    document.table(table_of_reasons(trace, phases, found));
}

/// Rows of the same part and backend together.
fn table_of_places(trace: &Trace, phases: &Phases, found: &Placements) -> Table {
    #[derive(Default)]
    struct PlacesSum {
        layers: Vec<Layer>,
        calls: u64,
        own_ns: u64,
        estimated_ns: u64,
    }
    let mut sums: BTreeMap<_, PlacesSum> = BTreeMap::new();
    for cell in &found.map {
        let sum = sums.entry((cell.phase, cell.backend, cell.module)).or_default();
        sum.layers.extend(cell.layer);
        sum.calls += cell.calls;
        sum.own_ns = sum.own_ns.saturating_add(cell.own_ns);
        sum.estimated_ns = sum.estimated_ns.saturating_add(cell.estimated_ns);
    }
    let rows = sums.into_iter().map(|((phase, backend, module), sum)| {
        let PlacesSum { mut layers, calls, own_ns, estimated_ns } = sum;
        layers.sort_unstable();
        layers.dedup();
        let [id, name] = backend_cells(trace, backend);
        let (share, per_token) = in_phase(phases, phase, own_ns);
        vec![
            phase_cell(phase),
            id,
            name,
            Cell::text(module.name()),
            Cell::text(ranges(&layers)),
            Cell::Count(calls.into()),
            Cell::Nanos(own_ns as f64),
            estimated(estimated_ns),
            share,
            per_token,
        ]
    });
    Table { key: "placement", columns: WHERE.to_vec(), rows: rows.collect() }
}

/// Rows of the same phase and reason together, the most expensive first, with the reason in words.
fn by_reason(trace: &Trace, found: &Placements) -> Vec<(PlacementRow, String)> {
    let mut sums: Vec<(PlacementRow, String)> = Vec::new();
    for row in found.on_host(trace) {
        let words = words_of(trace, row);
        let known = sums.iter_mut().find(|(sum, known)| sum.phase == row.phase && *known == words);
        match known {
            Some((sum, _)) => sum.add(row),
            None => sums.push((row.clone(), words)),
        }
    }
    sums.sort_by_key(|(sum, _)| (sum.phase, Reverse(sum.cost_ns())));
    sums
}

/// The reasons that cost a hundredth of their phase or more, the most expensive first:
/// `generation 27.4%: layer 31: weight in host memory (CPU_Mapped)`.
pub(super) fn reasons_in_short(trace: &Trace, phases: &Phases) -> Vec<String> {
    let found = placement(trace, phases);
    let mut costs: Vec<(f64, String)> = Vec::new();
    let reasons = if found.has_device { by_reason(trace, &found) } else { Vec::new() };
    for (sum, words) in reasons {
        let Some(kind) = sum.phase else { continue };
        let wall_ns = phases.sum(kind).map_or(0, |all| all.sum.wall_ns());
        let share = sum.cost_ns() as f64 / wall_ns.max(1) as f64;
        let layers = match ranges(&sum.layers) {
            none if none.is_empty() => none,
            layer if sum.layers.len() == 1 => format!("layer {layer}: "),
            layers => format!("layers {layers}: "),
        };
        let percent = Cell::Share(share).words();
        let why = if sum.reason == Reason::Unknown { "why was not recorded" } else { &words };
        costs.push((share, format!("{} {percent}: {layers}{why}", kind_name(kind))));
    }
    costs.retain(|(share, _)| *share >= 0.01);
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    costs.into_iter().map(|(_, text)| text).collect()
}

fn table_of_reasons(trace: &Trace, phases: &Phases, found: &Placements) -> Table {
    let sums = by_reason(trace, found);
    let rows = sums.iter().map(|(sum, words)| {
        let (share, per_token) = in_phase(phases, sum.phase, sum.cost_ns());
        vec![
            phase_cell(sum.phase),
            Cell::text(key_of(sum.reason)),
            Cell::text(words),
            Cell::text(ranges(&sum.layers)),
            Cell::Count(sum.calls.into()),
            Cell::Nanos(sum.own_ns as f64),
            Cell::Count(sum.caused.copies.into()),
            Cell::Bytes(sum.caused.copy_bytes.into()),
            copying(&sum.caused),
            estimated(sum.estimated_cost_ns()),
            Cell::Count(sum.caused.splits.into()),
            Cell::Nanos(sum.cost_ns() as f64),
            share,
            per_token,
        ]
    });
    Table { key: "reasons", columns: REASONS.to_vec(), rows: rows.collect() }
}

fn why_row(trace: &Trace, phases: &Phases, row: &PlacementRow) -> Vec<Cell> {
    let [id, name] = backend_cells(trace, row.backend);
    let (share, per_token) = in_phase(phases, row.phase, row.cost_ns());
    let caused = &row.caused;
    vec![
        phase_cell(row.phase),
        id,
        name,
        Cell::text(row.module.name()),
        Cell::text(&row.op),
        Cell::text(ranges(&row.layers)),
        Cell::text(key_of(row.reason)),
        Cell::text(words_of(trace, row)),
        Cell::Count(row.calls.into()),
        Cell::Nanos(row.own_ns as f64),
        Cell::Count(caused.copies.into()),
        Cell::Bytes(caused.copy_bytes.into()),
        copying(caused),
        estimated(row.estimated_cost_ns()),
        Cell::Count(caused.splits.into()),
        Cell::Nanos(row.cost_ns() as f64),
        share,
        per_token,
        Cell::text(shape_text::sources(trace.signature(row.example), &trace.types)),
    ]
}

/// The part of a time that was not measured.
fn estimated(ns: u64) -> Cell {
    Cell::or_nothing((ns > 0).then_some(ns), |ns| Cell::Nanos(ns as f64))
}

/// No time where nothing is known but that of the calls.
fn copying(caused: &Caused) -> Cell {
    let is_known = caused.copies == 0 || caused.copy_ns > 0;
    Cell::or_nothing(is_known.then_some(caused.copy_ns), |ns| Cell::Nanos(ns as f64))
}

fn backend_cells(trace: &Trace, backend: BackendIndex) -> [Cell; 2] {
    let backend = trace.backend(backend);
    [Cell::Number(backend.id.into()), Cell::text(backend.label())]
}

fn phase_cell(phase: Option<PhaseKind>) -> Cell {
    Cell::or_nothing(phase, |phase| Cell::text(kind_name(phase)))
}

/// A time as a share of all phases of a kind, and for each of their tokens.
fn in_phase(phases: &Phases, phase: Option<PhaseKind>, ns: u64) -> (Cell, Cell) {
    let Some(all) = phase.and_then(|phase| phases.sum(phase)) else {
        return (Cell::Nothing, Cell::Nothing);
    };
    let (wall, tokens) = (all.sum.wall_ns(), all.sum.tokens);
    let share = (wall > 0).then(|| ns as f64 / wall as f64);
    let per_token = (tokens > 0).then(|| ns as f64 / tokens as f64);
    (Cell::or_nothing(share, Cell::Share), Cell::or_nothing(per_token, Cell::Nanos))
}

/// `0–3, 7`.
pub(super) fn ranges(layers: &[Layer]) -> String {
    let runs = layers.chunk_by(|a, b| a.0 + 1 == b.0);
    let runs = runs.map(|run| match run {
        [only] => only.0.to_string(),
        _ => format!("{}–{}", run[0].0, run[run.len() - 1].0),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// For programs.
fn key_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Unsupported => "unsupported",
        Reason::GraphInput => "graph_input",
        Reason::WeightOnHost { offload: Offload::Declined, .. } => "weight_on_host_batch_small",
        Reason::WeightOnHost { offload: Offload::SwitchedOff, .. } => "weight_on_host_offload_off",
        Reason::WeightOnHost { offload: Offload::Unknown, .. } => "weight_on_host",
        Reason::CacheOnHost { .. } => "cache_on_host",
        Reason::Neighbours => "neighbours",
        Reason::Unknown => "unknown",
        Reason::OnlyBackend => "only_backend",
        Reason::OnDevice => "on_device",
    }
}

fn words_of(trace: &Trace, row: &PlacementRow) -> String {
    let type_name = |memory| &trace.memory_kind(memory).type_name;
    match row.reason {
        Reason::Unsupported => {
            let answers = trace.placement(row.example, row.backend).map(|it| &it.answers[..]);
            let answers = answers.unwrap_or_default().iter();
            let names: Vec<&str> =
                answers.map(|answer| trace.backend(answer.backend).label()).collect();
            format!("{} cannot compute it", names.join(", "))
        }
        Reason::GraphInput => "looks up the graph's input".to_owned(),
        Reason::WeightOnHost { memory, offload } => {
            let beside = match offload {
                Offload::Declined => "; batch too small to offload",
                Offload::SwitchedOff => "; offloading is off",
                Offload::Unknown => "",
            };
            format!("weight in host memory{beside} ({})", type_name(memory))
        }
        Reason::CacheOnHost { memory } => format!("cache in host memory ({})", type_name(memory)),
        Reason::Neighbours => "stays with its neighbours".to_owned(),
        Reason::Unknown => "not known".to_owned(),
        Reason::OnlyBackend | Reason::OnDevice => String::new(),
    }
}
