//! The columns that tables of totals share.

use crate::{Cell, Column};
use ggprof_analysis::Totals;
use ggprof_trace::{Event, EventKind, Signature, Trace, shape_text};

/// The shares, which stand in front of what a row is about.
pub(super) const SHARES: [Column; 2] =
    [Column::right("share_of_wall", "% wall", 0), Column::right("share_of_sum", "% sum", 6)];

pub(super) fn shares(totals: &Totals) -> [Cell; 2] {
    let share = |share: f64| if totals.is_timed() { Cell::Share(share) } else { Cell::Nothing };
    [share(totals.share_of_wall), share(totals.share_of_sum)]
}

/// Count, times and rates, which come after it. The ranks keep what tells most where it is narrow:
/// the time, how fast the work went and how much of it was waiting.
pub(super) const TOTALS: [Column; 21] = [
    Column::right("count", "count", 1),
    Column::right("total_ns", "total", 0),
    Column::right("estimated_ns", "estimated", 3),
    Column::right("error_ns", "±", 4),
    Column::right("avg_ns", "avg", 1),
    Column::right("min_ns", "min", 7),
    Column::right("p50_ns", "p50", 5),
    Column::right("p95_ns", "p95", 6),
    Column::right("max_ns", "max", 4),
    Column::right("gb_per_s", "memory", 2),
    Column::right("gflop_per_s", "compute", 3),
    Column::right("wait_share", "waiting", 1),
    Column::right("attended_share", "attended", 6),
    Column::right("call_ns", "in calls", 4),
    Column::right("measured_count", "", 9),
    Column::right("moved_bytes", "", 9),
    Column::right("flops", "", 9),
    Column::right("padded_bytes", "", 9),
    Column::right("padded_flops", "", 9),
    Column::right("output_bytes", "", 9),
    Column::right("output_gb_per_s", "", 9),
];

pub(super) fn totals(totals: &Totals) -> [Cell; 21] {
    let calls = Some(totals.call_ns).filter(|&ns| ns > 0);
    let timed = |ns: f64| if totals.only_calls { Cell::Nothing } else { Cell::Nanos(ns) };
    let estimate = totals.estimate.filter(|estimate| estimate.ns > 0.0);
    let time = if totals.is_timed() { Cell::Nanos(totals.time_ns()) } else { Cell::Nothing };
    [
        Cell::Count(totals.calls().into()),
        time,
        Cell::or_nothing(estimate, |estimate| Cell::Nanos(estimate.ns)),
        Cell::or_nothing(estimate.and_then(|estimate| estimate.error_ns), Cell::Nanos),
        if totals.is_timed() { Cell::Nanos(totals.avg_ns()) } else { Cell::Nothing },
        timed(totals.min_ns as f64),
        timed(totals.p50_ns as f64),
        timed(totals.p95_ns as f64),
        timed(totals.max_ns as f64),
        Cell::or_nothing(totals.gigabytes_per_second(), Cell::GigabytesPerSecond),
        Cell::or_nothing(totals.gigaflops_per_second(), Cell::GigaflopsPerSecond),
        Cell::or_nothing(totals.wait_share(), Cell::Share),
        Cell::or_nothing(totals.attended_share(), Cell::Share),
        Cell::or_nothing(calls, |ns| Cell::Nanos(ns as f64)),
        Cell::Count(if totals.only_calls { 0 } else { totals.timed.into() }),
        Cell::or_nothing(totals.moved_bytes, Cell::Bytes),
        Cell::or_nothing(totals.flops, Cell::Count),
        Cell::or_nothing(totals.padded, |(_, bytes)| Cell::Bytes(bytes)),
        Cell::or_nothing(totals.padded, |(flops, _)| Cell::Count(flops)),
        Cell::Bytes(totals.output_bytes),
        Cell::or_nothing(totals.output_gigabytes_per_second(), Cell::GigabytesPerSecond),
    ]
}

/// Joins the parts of a row.
pub(super) fn row(parts: impl IntoIterator<Item = Vec<Cell>>) -> Vec<Cell> {
    parts.into_iter().flatten().collect()
}

/// Joins the parts of a head.
pub(super) fn head(parts: &[&[Column]]) -> Vec<Column> {
    parts.concat()
}

pub(super) fn kind(kind: EventKind) -> Cell {
    Cell::text(kind.name())
}

/// An op's sources, with the sub-op in front for the ops that have one.
pub(super) fn shape(trace: &Trace, signature: &Signature) -> String {
    let sources = shape_text::sources(signature, &trace.types);
    match signature.sub_op_name {
        Some(name) => format!("{} {sources}", trace.text(name)).trim_end().to_owned(),
        None => sources,
    }
}

pub(super) fn shape_of(trace: &Trace, event: &Event) -> Cell {
    Cell::text(shape(trace, trace.signature(event.node)))
}

pub(super) fn backend_name(trace: &Trace, event: &Event) -> Cell {
    Cell::text(trace.backend(event.backend).label())
}
