//! Prompt processing and generation.

use super::columns::{self, head};
use crate::document::Fact;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::phases::median_and_p95;
use ggprof_analysis::{Phase, PhaseKind, Phases, by_phase, phases};
use ggprof_trace::Trace;

/// More phases than this are summed up by kind in the summary.
const MOST_PHASES: usize = 6;

const PHASES: [Column; 8] = [
    Column::left("phase", "phase", 0),
    Column::left("kind", "", 9),
    Column::right("runs", "graph runs", 1),
    Column::right("tokens", "tokens", 1),
    Column::right("sequences", "", 9),
    Column::right("start_ns", "", 9),
    Column::right("wall_ns", "wall", 0),
    Column::right("tokens_per_s", "speed", 0),
];

const KEY: [Column; 5] = [
    Column::left("phase", "phase", 0),
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let phases = phases(trace);
    document.heading("phases", "Phases");
    document.table(table(&phases.phases));
    latencies(document, &phases);
    let rows = by_phase(trace, &phases)
        .iter()
        .map(|line| {
            let backend = trace.backend(line.backend);
            let key = vec![
                Cell::text(kind_name(line.phase)),
                columns::kind(line.kind),
                Cell::text(trace.text(line.op)),
                Cell::Number(backend.id.into()),
                Cell::text(backend.label()),
            ];
            columns::row([
                columns::shares(&line.totals).to_vec(),
                key,
                columns::totals(&line.totals).to_vec(),
            ])
        })
        .collect();
    document.heading("operations", "Operations by phase");
    let columns = head(&[&columns::SHARES, &KEY, &columns::TOTALS]);
    document.table(Table { key: "operations", columns, rows });
}

/// The phases themselves, summed up if there are many; nothing if shapes tell none.
pub(super) fn overview(document: &mut Document, phases: &Phases) {
    if phases.phases.iter().all(|phase| phase.kind == PhaseKind::Unknown) {
        return;
    }
    document.heading("phases", "Phases");
    if phases.phases.len() <= MOST_PHASES {
        document.table(table(&phases.phases));
    } else {
        let kinds =
            [PhaseKind::WarmUp, PhaseKind::Prompt, PhaseKind::Generation, PhaseKind::Unknown];
        let sums = kinds.into_iter().map(|kind| phases.sum(kind)).filter(|(count, _)| *count > 0);
        let rows = sums.map(|(count, sum)| {
            let label = format!("{count} x {}", kind_name(sum.kind));
            row(label, &sum)
        });
        let columns = PHASES.to_vec();
        document.table(Table { key: "phases", columns, rows: rows.collect() });
    }
    latencies(document, phases);
}

fn table(phases: &[Phase]) -> Table {
    let rows = phases.iter().map(|phase| row(phase.label(), phase)).collect();
    Table { key: "phases", columns: PHASES.to_vec(), rows }
}

fn row(label: String, phase: &Phase) -> Vec<Cell> {
    vec![
        Cell::Text(label),
        Cell::text(kind_name(phase.kind)),
        Cell::Count(phase.runs.into()),
        Cell::Count(phase.tokens.into()),
        Cell::Count(phase.sequences.into()),
        Cell::Nanos(phase.start_ns as f64),
        Cell::Nanos(phase.wall_ns() as f64),
        Cell::or_nothing(phase.tokens_per_second(), Cell::TokensPerSecond),
    ]
}

fn latencies(document: &mut Document, phases: &Phases) {
    for (key, title, values) in [
        ("first_token", "time to first token", &phases.first_token_ns),
        ("between_tokens", "between tokens", &phases.between_tokens_ns),
    ] {
        if values.is_empty() {
            continue;
        }
        let (p50, p95) = median_and_p95(values);
        document.fact(
            key,
            title,
            vec![
                Fact::new("p50_ns", Cell::Nanos(p50 as f64), "p50 {}"),
                Fact::new("p95_ns", Cell::Nanos(p95 as f64), "p95 {}"),
                Fact::new("count", Cell::Count(values.len() as u128), "of {}"),
            ],
        );
    }
}

pub(super) fn kind_name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::WarmUp => "warm-up",
        PhaseKind::Prompt => "prompt",
        PhaseKind::Generation => "generation",
        PhaseKind::Unknown => "unknown",
    }
}
