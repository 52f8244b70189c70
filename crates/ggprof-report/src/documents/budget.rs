//! Where the time of a token goes, phase by phase.

use crate::spent_words::{backend_name, key, part, part_name, unit, words};
use crate::{Cell, Column, Document, Table, units};
use ggprof_analysis::{Budget, PhaseKind};
use ggprof_trace::Trace;

const COLUMNS: [Column; 11] = [
    Column::left("phase", "", 9),
    Column::left("spent", "", 9),
    Column::left("backend", "", 9),
    Column::left("part", "", 9),
    Column::right("share", "%", 0),
    Column::right("ns_per_unit", "each", 0),
    Column::right("ns", "in all", 1),
    Column::right("estimated_ns", "estimated", 2),
    Column::left("unit", "", 9),
    Column::right("wall_ns", "", 9),
    Column::left("words", "went to", 0),
];

/// One table for each phase that the program was run for. Its rows add up to the phase's wall time.
pub(super) fn tables(document: &mut Document, trace: &Trace, budgets: &[Budget]) {
    for budget in budgets.iter().filter(|it| is_shown(it, budgets)) {
        document.heading("budget", title(budget));
        let rows = budget.rows.iter().map(|row| {
            vec![
                Cell::text(&budget.label),
                Cell::text(key(row.spent)),
                Cell::or_nothing(backend_name(trace, row.spent), Cell::text),
                Cell::or_nothing(part(row.spent), |part| Cell::text(part_name(part))),
                Cell::Share(budget.share(row.ns)),
                Cell::Nanos(row.ns as f64 / budget.units() as f64),
                Cell::Nanos(row.ns as f64),
                Cell::or_nothing(Some(row.estimated_ns).filter(|&ns| ns > 0), |ns| {
                    Cell::Nanos(ns as f64)
                }),
                Cell::text(unit(budget)),
                Cell::Nanos(budget.wall_ns as f64),
                Cell::text(words(trace, row.spent)),
            ]
        });
        document.table(Table { key: "budget", columns: COLUMNS.to_vec(), rows: rows.collect() });
    }
}

/// A trial is of interest only where there is nothing else.
pub(crate) fn is_shown(budget: &Budget, all: &[Budget]) -> bool {
    let is_work = |it: &Budget| it.kind != PhaseKind::WarmUp && it.wall_ns > 0;
    is_work(budget) || !all.iter().any(is_work)
}

/// `tg63: 5.38 ms a token, 339 ms in all`.
pub(crate) fn title(budget: &Budget) -> String {
    let each = units::duration(budget.wall_ns as f64 / budget.units() as f64);
    let all = units::duration(budget.wall_ns as f64);
    let name = match budget.phases.len() {
        1 => budget.label.clone(),
        count => format!("{} x {count}", budget.label),
    };
    format!("{name}: {each} a {}, {all} in all", unit(budget))
}
