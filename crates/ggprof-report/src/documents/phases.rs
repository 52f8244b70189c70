//! What the program did: prompts, generation, embeddings, graphs.

use super::columns::{self, head};
use super::requests::{clock, note_part, since_start};
use crate::document::Fact;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::phases::median_and_p95;
use ggprof_analysis::{PhaseGroup, PhaseKind, Phases, by_phase, phases};
use ggprof_trace::Trace;
use hashbrown::HashMap;

/// More different phases than this are summed up by kind in the summary.
const MOST_PHASES: usize = 8;

const PHASES: [Column; 14] = [
    Column::left("phase", "phase", 0),
    Column::left("kind", "", 9),
    Column::right("context", "context", 2),
    Column::right("count", "", 9),
    Column::right("runs", "graph runs", 1),
    Column::right("tokens", "tokens", 1),
    Column::right("sequences", "", 9),
    Column::right("depth", "", 9),
    Column::right("clock_unix_ns", "from", 3),
    Column::right("since_start_ns", "since start", 3),
    Column::right("start_ns", "", 9),
    Column::right("wall_ns", "wall", 0),
    Column::right("tokens_per_s", "speed", 0),
    Column::right("tokens_per_s_deviation", "±", 1),
];

const KEY: [Column; 5] = [
    Column::left("phase", "phase", 0),
    Column::left("type", "", 9),
    Column::left("op", "operation", 0),
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 1),
];

/// In the summary, the times of day of phases are only for those who look for them.
fn columns_of_summary() -> Vec<Column> {
    let is_time = |column: &Column| ["clock_unix_ns", "since_start_ns"].contains(&column.key);
    let hidden = |column: Column| match is_time(&column) {
        true => Column::right(column.key, "", 9),
        false => column,
    };
    PHASES.map(hidden).to_vec()
}

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let phases = phases(trace);
    document.heading("phases", "Phases");
    let groups = phases.groups();
    document.table(table(trace, &phases, &groups, PHASES.to_vec()));
    beside(document, trace, &phases);
    if groups.len() < phases.phases.len() {
        in_order(document, trace, &phases);
    }
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

/// One by one, where some were alike.
fn in_order(document: &mut Document, trace: &Trace, phases: &Phases) {
    document.heading("phases_in_order", "Phases one by one");
    let each = phases.each();
    let rows = each.iter().map(|phase| {
        let label = phase.first_label.clone();
        row(trace, whose(trace, phases, phase, label), phase.sum.context(), phase)
    });
    let columns = PHASES.to_vec();
    document.table(Table { key: "phases_in_order", columns, rows: rows.collect() });
    note_part(document, each.len());
}

/// The phases themselves, summed up if there are many; nothing of a program without tokens.
pub(super) fn overview(document: &mut Document, trace: &Trace, phases: &Phases) {
    if phases.phases.iter().all(|phase| phase.kind == PhaseKind::Graph) {
        return;
    }
    document.heading("phases", "Phases");
    let groups = phases.groups();
    if groups.len() <= MOST_PHASES {
        document.table(table(trace, phases, &groups, columns_of_summary()));
    } else {
        let mut sums = phases.kind_groups();
        sums.sort_by_key(|group| (group.sum.process, group.sum.kind));
        let rows = sums.iter().map(|group| {
            let label = format!("{} x {}", group.count, kind_name(group.sum.kind));
            row(trace, whose(trace, phases, group, label), None, group)
        });
        let columns = columns_of_summary();
        document.table(Table { key: "phases", columns, rows: rows.collect() });
    }
    beside(document, trace, phases);
}

/// What phases are called, with their process where there are phases of several.
fn whose(trace: &Trace, phases: &Phases, group: &PhaseGroup, label: String) -> String {
    match phases.owner(trace, &group.sum) {
        Some(process) => format!("{label} of {}", process.label()),
        None => label,
    }
}

fn table(trace: &Trace, phases: &Phases, groups: &[PhaseGroup], columns: Vec<Column>) -> Table {
    let label = |group: &PhaseGroup| match group.count {
        1 => group.first_label.clone(),
        count => format!("{} x {count}", group.first_label),
    };
    let name = |group: &PhaseGroup| (group.sum.process, group.first_label.clone());
    let mut contexts: HashMap<_, u64> = HashMap::new();
    groups.iter().for_each(|group| *contexts.entry(name(group)).or_default() += 1);
    // Where nothing else tells rows apart.
    let row = |group: &PhaseGroup| {
        let context = group.sum.context().filter(|_| contexts[&name(group)] > 1);
        row(trace, whose(trace, phases, group, label(group)), context, group)
    };
    let rows = groups.iter().map(row).collect();
    Table { key: "phases", columns, rows }
}

fn row(trace: &Trace, label: String, context: Option<u32>, group: &PhaseGroup) -> Vec<Cell> {
    let sum = &group.sum;
    let has_tokens = sum.kind != PhaseKind::Graph;
    let speed = group.tokens_per_second;
    let deviation = speed.filter(|_| group.count > 1).map(|(_, deviation)| deviation);
    vec![
        Cell::Text(label),
        Cell::text(kind_name(sum.kind)),
        Cell::or_nothing(context, |context| Cell::Number(context.into())),
        Cell::Count(group.count.into()),
        Cell::Count(sum.runs.into()),
        Cell::or_nothing(Some(sum.tokens).filter(|_| has_tokens), |it| Cell::Count(it.into())),
        Cell::Count(sum.sequences.into()),
        Cell::or_nothing(sum.depth, |depth| Cell::Count(depth.into())),
        clock(trace, sum.start_ns),
        since_start(trace)(sum.start_ns),
        Cell::Nanos(sum.start_ns as f64),
        Cell::Nanos(sum.wall_ns() as f64),
        Cell::or_nothing(speed.map(|(mean, _)| mean), Cell::TokensPerSecond),
        Cell::or_nothing(deviation, Cell::TokensPerSecond),
    ]
}

/// What stands below the table.
fn beside(document: &mut Document, trace: &Trace, phases: &Phases) {
    let words = "timed from {}: a queue before that is not seen";
    let first = Fact::new("from", Cell::text("its first batch"), words);
    let requests = ["of {} request", "of {} requests"];
    let waits = ["of {} wait", "of {} waits"];
    for (key, title, values, of, more) in [
        ("first_token", "time to first token", &phases.first_token_ns, requests, Some(first)),
        ("between_tokens", "between tokens", &phases.between_tokens_ns, waits, None),
    ] {
        if values.is_empty() {
            continue;
        }
        let (p50, p95) = median_and_p95(values);
        let facts = [
            Fact::new("p50_ns", Cell::Nanos(p50 as f64), "p50 {}"),
            Fact::new("p95_ns", Cell::Nanos(p95 as f64), "p95 {}"),
            Fact::new(
                "count",
                Cell::Count(values.len() as u128),
                of[usize::from(values.len() > 1)],
            ),
        ];
        document.fact(key, title, facts.into_iter().chain(more).collect());
    }
    let guessed = phases.guessed_runs();
    if guessed > 0 {
        let words = "guessed from {}: the program's calls of libllama were not seen";
        let source = Fact::new("source", Cell::text("shapes"), words);
        let runs =
            if guessed == 1 { "(for {} graph run only)" } else { "(for {} graph runs only)" };
        let runs = Fact::new("runs", Cell::Count(guessed.into()), runs);
        let facts = if phases.are_known_in_part() { vec![source, runs] } else { vec![source] };
        document.fact("phases_from", "phases", facts);
    }
    let by_positions = phases.runs_by_positions(trace);
    if by_positions > 0 {
        let words = "told from the positions of tokens in {} graph run(s): the program's calls of \
                     libllama were not seen";
        let facts = vec![Fact::new("runs", Cell::Count(by_positions.into()), words)];
        document.fact("phases_by_positions", "phases", facts);
    }
    trials(document, phases);
}

fn trials(document: &mut Document, phases: &Phases) {
    let trials = phases.guessed_trials();
    if trials > 0 {
        let words = match trials {
            1 => "{} batch was taken for a trial, because the program cleared the memory behind it",
            _ => {
                "{} batches were taken for trials, because the program cleared the memory behind them"
            }
        };
        let facts = vec![Fact::new("batches", Cell::Count(trials.into()), words)];
        document.fact("warm_up_from", "warm-up", facts);
    }
}

pub(crate) fn kind_name(kind: PhaseKind) -> &'static str {
    kind.name()
}
