//! What changed between two sides of recordings.

use super::diff_words as words;
use crate::document::{Block, Fact};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::diff::{
    Change, Diff, DiffRow, Difference, Match, PhaseDiff, PhaseName, Value,
};
use ggprof_analysis::statistics::{ALARMS, least_p};

const PHASES: [Column; 14] = [
    Column::left("phase", "phase", 0),
    Column::left("unit", "per", 3),
    Column::right("units_a", "", 9),
    Column::right("units_b", "", 9),
    Column::right("a_ns", "A", 0),
    Column::right("b_ns", "B", 0),
    Column::right("change_ns", "change", 0),
    Column::right("change_share", "%", 0),
    Column::left("noise", "?", 0),
    Column::right("low_ns", "95% from", 2),
    Column::right("high_ns", "to", 2),
    Column::right("chance", "p", 4),
    Column::right("smallest_seen_ns", "could have been seen", 3),
    Column::right("usual_share", "usual here", 2),
];

/// In a narrow terminal, what a row is about stays longer than how much it was.
const ROWS: [Column; 24] = [
    Column::left("phase", "phase", 0),
    Column::right("change_ns", "change", 0),
    Column::right("change_share", "% of A", 1),
    Column::left("noise", "?", 0),
    Column::right("a_ns", "A", 2),
    Column::right("b_ns", "B", 2),
    Column::right("low_ns", "95% from", 5),
    Column::right("high_ns", "to", 5),
    Column::right("false_discovery_rate", "", 9),
    Column::right("smallest_seen_ns", "", 9),
    Column::right("calls_a", "calls A", 4),
    Column::right("calls_b", "B", 4),
    Column::right("call_a_ns", "", 9),
    Column::right("call_b_ns", "", 9),
    Column::right("by_calls_ns", "by calls", 6),
    Column::right("by_time_ns", "by time", 6),
    Column::right("interrupted_a", "interrupted A", 7),
    Column::right("interrupted_b", "B", 7),
    Column::left("module", "part", 3),
    Column::left("op", "operation", 0),
    Column::left("backend", "backend", 1),
    Column::left("matched", "matched", 3),
    Column::left("kernel", "kernel", 6),
    Column::left("shape", "sources and result", 0),
];

const DIFFERENCES: [Column; 4] = [
    Column::left("what", "what differs", 0),
    Column::left("phase", "phase", 1),
    Column::left("a", "A", 0),
    Column::left("b", "B", 0),
];

/// Smaller parts of a phase's time are added up, unless all rows are wanted.
const LEAST_SHARE: f64 = 0.0005;

/// What a comparison is shown of.
#[derive(Debug)]
pub struct Compared<'a> {
    pub diff: &'a Diff,
    pub differences: &'a [Difference],
    /// The recordings of each side.
    pub names: [Vec<String>; 2],
    /// Sentences about what is missing from them.
    pub warnings: Vec<String>,
    /// Rows of each phase, and of what only one side has; all without a number.
    pub most: Option<usize>,
}

pub fn diff(compared: &Compared<'_>) -> Document {
    let mut document = Document::default();
    document.heading("diff", "ggprof diff");
    for (key, title, names) in [("a", "A", &compared.names[0]), ("b", "B", &compared.names[1])] {
        let facts = names.iter().map(|name| Fact::listed("file", Cell::text(name), "{}"));
        let count = Cell::Count(names.len() as u128);
        let facts = facts.chain([Fact::new("recordings", count, "")]);
        document.fact(key, title, facts.collect());
    }
    noise(&mut document, compared.diff);
    let warnings = compared.warnings.iter().cloned().map(Block::Warning);
    document.blocks.extend(warnings);
    phases(&mut document, compared.diff);
    if !compared.differences.is_empty() {
        document.heading("differences", "What differs");
    }
    // Programs get the table even if it is empty.
    if !compared.differences.is_empty() || compared.most.is_none() {
        let rows = compared.differences.iter().map(difference).collect();
        document.table(Table { key: "differences", columns: DIFFERENCES.to_vec(), rows });
    }
    document.heading("contributions", "What contributes to the change");
    let phases = compared.diff.phases.iter();
    let rows = phases.flat_map(|phase| contributions(phase, compared.most)).collect();
    document.table(Table { key: "contributions", columns: ROWS.to_vec(), rows });
    document
}

/// What can and cannot be said.
fn noise(document: &mut Document, diff: &Diff) {
    let knows_noise = diff.phases.iter().any(PhaseDiff::knows_noise);
    let asked = ALARMS / diff.looks.max(1) as f64;
    let text = match diff.sizes {
        (1, 1) if knows_noise => {
            "from parts of each recording, and what is usual on this machine; \
             what a row shows needs five recordings a side"
                .to_owned()
        }
        (1, 1) => {
            "from parts of each recording; how much recordings differ is unknown, so nothing is \
             certain: record five a side"
                .to_owned()
        }
        (a, b) if least_p(a, b) > asked => {
            let (many, wanted) = (if a == 1 { "recording" } else { "recordings" }, enough(asked));
            format!("{a} {many} against {b} are too few to tell: record {wanted} a side")
        }
        _ => "medians of recordings, intervals of 95%, Mann-Whitney's test".to_owned(),
    };
    let signs = "~ nothing can be said";
    let mut values = vec![
        Fact::new("source", Cell::Text(text), "{}"),
        Fact::new("unclear", Cell::text(signs), "{}"),
    ];
    if diff.sizes != (1, 1) && least_p(diff.sizes.0, diff.sizes.1) <= asked {
        let phases = diff.phases.iter().filter(|phase| phase.total.chance.is_some()).count();
        let rows = diff.phases.iter().flat_map(|phase| &phase.rows);
        let rows = rows.filter(|row| row.change.chance.is_some()).count();
        values.extend(lone("phase", diff, phases).or_else(|| lone("row", diff, rows)));
    }
    document.fact("noise", "noise", values);
}

/// Each of many that are tested needs more to be certain if it changes alone.
fn lone(what: &'static str, diff: &Diff, tested: usize) -> Option<Fact> {
    let asked = ALARMS / (tested * diff.looks).max(1) as f64;
    let (a, b) = diff.sizes;
    let text = format!(
        "one {what} of {tested} that changes alone needs {} recordings a side to be certain",
        enough(asked)
    );
    (least_p(a, b) > asked).then(|| Fact::new("alone", Cell::Text(text), "{}"))
}

/// So many recordings a side can show a change that chance may show so rarely.
fn enough(asked: f64) -> usize {
    (2..).find(|&each| least_p(each, each) <= asked).unwrap_or(usize::MAX)
}

fn phases(document: &mut Document, diff: &Diff) {
    document.heading("phases", "Time per token");
    let phase = |phase: &PhaseDiff| {
        let Change { a_ns, b_ns, .. } = phase.total;
        let change = &phase.total;
        let interval = change.interval;
        vec![
            Cell::Text(words::phase(&phase.name)),
            Cell::text(words::unit(phase.name.kind)),
            Cell::Count(phase.units.0.into()),
            Cell::Count(phase.units.1.into()),
            Cell::Nanos(a_ns),
            Cell::Nanos(b_ns),
            Cell::Change(change.ns()),
            Cell::or_nothing(change.share(), Cell::ShareChange),
            noise_sign(phase.is_certain()),
            Cell::or_nothing(interval, |it| Cell::Change(it.low)),
            Cell::or_nothing(interval, |it| Cell::Change(it.high)),
            chance(change),
            Cell::or_nothing(phase.smallest_seen_ns(), Cell::Nanos),
            Cell::or_nothing(phase.usual_share, Cell::Share),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = diff.phases.iter().map(phase).collect();
    rows.extend(diff.only_a.iter().map(|only| lone_phase(only, true)));
    rows.extend(diff.only_b.iter().map(|only| lone_phase(only, false)));
    document.table(Table { key: "phases", columns: PHASES.to_vec(), rows });
}

fn lone_phase((name, ns): &(PhaseName, f64), is_a: bool) -> Vec<Cell> {
    let mut row = vec![Cell::Nothing; PHASES.len()];
    row[0] = Cell::Text(words::phase(name));
    row[1] = Cell::text(words::unit(name.kind));
    row[if is_a { 4 } else { 5 }] = Cell::Nanos(*ns);
    row
}

/// `~` where nothing can be said.
fn noise_sign(is_certain: bool) -> Cell {
    Cell::text(if is_certain { "" } else { "~" })
}

fn chance(change: &Change) -> Cell {
    Cell::or_nothing(change.chance, Cell::Chance)
}

fn difference(difference: &Difference) -> Vec<Cell> {
    let (what, phase) = words::setting(&difference.what);
    let value = |value: &Option<Value>| match value {
        Some(Value::Unseen) | None => Cell::Nothing,
        Some(Value::Text(text)) => Cell::text(text),
        Some(Value::Count(count)) => Cell::Times(*count),
        Some(Value::Bytes(bytes)) => Cell::Bytes(bytes.round() as u128),
        Some(Value::Share(share)) => Cell::Share(*share),
        Some(Value::Hertz(hertz)) => Cell::Hertz(*hertz),
        Some(Value::Observed(observed)) => Cell::Text(words::observed(observed)),
    };
    vec![Cell::Text(what), Cell::text(phase), value(&difference.a), value(&difference.b)]
}

/// Which of so many rows are shown: the first ones, which are the surest, and the largest ones, which
/// must not be hidden in a sum.
fn shown(rows: &[DiffRow], most: usize) -> Vec<bool> {
    let size = |row: &DiffRow| row.change.ns().abs();
    let mut sizes: Vec<f64> = rows.iter().map(size).collect();
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let least = sizes.get(most.saturating_sub(1)).copied().unwrap_or(0.0);
    rows.iter().enumerate().map(|(at, row)| at < most || size(row) >= least).collect()
}

/// The rows of a phase. Those that are not shown one by one are added up, so that all of them
/// together are the change of the phase.
fn contributions(phase: &PhaseDiff, most: Option<usize>) -> Vec<Vec<Cell>> {
    let is_large =
        |row: &DiffRow| share(phase, row.change.ns()).is_none_or(|it| it.abs() >= LEAST_SHARE);
    let alone = phase.rows.partition_point(|row| row.how < Match::OnlyA);
    let (both, alone) = phase.rows.split_at(alone);
    let mut rows = Vec::new();
    for part in [both, alone] {
        let shown = most.map_or(vec![true; part.len()], |most| shown(part, most));
        let is_shown =
            |(row, is_shown): &(&DiffRow, bool)| *is_shown && (most.is_none() || is_large(row));
        let (shown, rest): (Vec<_>, Vec<_>) = part.iter().zip(shown).partition(is_shown);
        rows.extend(shown.iter().map(|(row, _)| contribution(phase, row)));
        let rest: Vec<&DiffRow> = rest.into_iter().map(|(row, _)| row).collect();
        if !rest.is_empty() {
            let sum =
                |value: &dyn Fn(&DiffRow) -> f64| rest.iter().map(|row| value(row)).sum::<f64>();
            let alone = if rest[0].how >= Match::OnlyA { " of one side only" } else { "" };
            let text = match rest.len() {
                1 => format!("1 more row{alone}"),
                rows => format!("{rows} more rows{alone}"),
            };
            let (a, b) = (sum(&|row| row.change.a_ns), sum(&|row| row.change.b_ns));
            rows.push(sum_row(phase, text, b - a, Some((a, b))));
        }
    }
    // People see no parts of a nanosecond.
    let least_ns = if most.is_some() { 0.5 } else { 0.0 };
    let is_seen = |ns: f64| ns.abs() > least_ns;
    rows.extend(phase.alike.iter().filter(|it| is_seen(it.ns())).map(|it| alike(phase, it)));
    if is_seen(phase.rest_ns) {
        let text = "what medians do not add up to".to_owned();
        rows.push(sum_row(phase, text, phase.rest_ns, None));
    }
    rows
}

/// What was taken away from the ops of each recording.
fn alike(phase: &PhaseDiff, change: &Change) -> Vec<Cell> {
    let mut row = sum_row(phase, "all operations alike".to_owned(), change.ns(), None);
    row[3] = noise_sign(change.is_certain());
    row[6] = Cell::or_nothing(change.interval, |it| Cell::Change(it.low));
    row[7] = Cell::or_nothing(change.interval, |it| Cell::Change(it.high));
    row
}

fn contribution(phase: &PhaseDiff, row: &DiffRow) -> Vec<Cell> {
    let change = &row.change;
    let interval = change.interval;
    let parts = row.by_calls_and_time();
    let (calls_a, calls_b) = row.calls;
    let has_calls = row.key.activity.is_event();
    let calls = |calls: f64| Cell::or_nothing(has_calls.then_some(calls), Cell::Times);
    let call =
        |ns: f64, calls: f64| Cell::or_nothing((calls > 0.0).then(|| ns / calls), Cell::Nanos);
    let interrupted =
        |calls: f64| Cell::or_nothing(Some(calls).filter(|&it| it > 0.0), Cell::Times);
    vec![
        Cell::Text(words::phase(&phase.name)),
        Cell::Change(change.ns()),
        Cell::or_nothing(share(phase, change.ns()), Cell::ShareChange),
        noise_sign(change.is_certain()),
        Cell::Nanos(change.a_ns),
        Cell::Nanos(change.b_ns),
        Cell::or_nothing(interval, |it| Cell::Change(it.low)),
        Cell::or_nothing(interval, |it| Cell::Change(it.high)),
        chance(change),
        Cell::or_nothing(change.smallest_seen_ns, Cell::Nanos),
        calls(calls_a),
        calls(calls_b),
        call(change.a_ns, calls_a),
        call(change.b_ns, calls_b),
        Cell::or_nothing(parts, |(by_calls, _)| Cell::Change(by_calls)),
        Cell::or_nothing(parts, |(_, by_time)| Cell::Change(by_time)),
        interrupted(row.interrupted.0),
        interrupted(row.interrupted.1),
        Cell::Text(words::module(row)),
        Cell::Text(words::operation(row)),
        Cell::Text(words::backend(row)),
        Cell::text(words::matched(row.how)),
        Cell::Text(words::kernel(row)),
        Cell::Text(words::shape(row)),
    ]
}

/// A part of what the whole took on the first side.
fn share(phase: &PhaseDiff, ns: f64) -> Option<f64> {
    (phase.total.a_ns > 0.0).then(|| ns / phase.total.a_ns)
}

fn sum_row(phase: &PhaseDiff, text: String, ns: f64, sides: Option<(f64, f64)>) -> Vec<Cell> {
    let mut row = vec![Cell::Nothing; ROWS.len()];
    row[0] = Cell::Text(words::phase(&phase.name));
    row[1] = Cell::Change(ns);
    row[2] = Cell::or_nothing(share(phase, ns), Cell::ShareChange);
    if let Some((a, b)) = sides {
        (row[4], row[5]) = (Cell::Nanos(a), Cell::Nanos(b));
    }
    row[19] = Cell::Text(text);
    row
}
