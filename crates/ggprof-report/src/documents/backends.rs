//! What each backend did with the wall time.

use super::columns::{self, head, row};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::{Wall, by_backend, node_sums, wall};
use ggprof_trace::Trace;

const TIMES: [Column; 15] = [
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 0),
    Column::left("device_type", "device", 3),
    Column::right("busy_ns", "busy", 0),
    Column::right("busy_share", "% wall", 1),
    Column::right("copying_ns", "copying", 1),
    Column::right("copying_share", "% wall", 2),
    Column::right("copying_estimated_ns", "estimated", 3),
    Column::right("idle_ns", "idle", 1),
    Column::right("idle_share", "% wall", 2),
    Column::right("unrecorded_ns", "not recorded", 1),
    Column::right("absent_ns", "not there", 1),
    Column::right("ops", "ops", 2),
    Column::right("copies", "copies", 2),
    Column::right("copies_untimed", "not timed", 3),
];

const KEY: [Column; 3] = [
    Column::right("backend_id", "", 9),
    Column::left("backend", "backend", 0),
    Column::left("type", "type", 0),
];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    wall_times(document, trace, &wall(trace));
    let rows = by_backend(trace, &node_sums(trace))
        .iter()
        .map(|line| {
            let backend = trace.backend(line.backend);
            let key = vec![
                Cell::Number(backend.id.into()),
                Cell::text(backend.label()),
                columns::kind(line.kind),
            ];
            row([
                columns::shares(&line.totals).to_vec(),
                key,
                columns::totals(&line.totals).to_vec(),
            ])
        })
        .collect();
    document.heading("totals", "Ops and copies of each backend");
    let columns = head(&[&columns::SHARES, &KEY, &columns::TOTALS]);
    document.table(Table { key: "totals", columns, rows });
}

pub(super) fn wall_times(document: &mut Document, trace: &Trace, wall: &Wall) {
    let share = |ns: u64| match wall.wall_ns {
        0 => Cell::Share(0.0),
        wall_ns => Cell::Share(ns as f64 / wall_ns as f64),
    };
    let rows = wall
        .backends
        .iter()
        .map(|time| {
            let backend = trace.backend(time.backend);
            let some = |number: u64, cell: &dyn Fn(u64) -> Cell| match number {
                0 => Cell::Nothing,
                number => cell(number),
            };
            // Of calls alone it cannot be told how long the device copied.
            let is_known = time.copies == 0 || time.copies_untimed < time.copies;
            let copying = Some(time.copying_ns).filter(|_| is_known);
            let nanos = |ns: Option<u64>| Cell::or_nothing(ns, |ns| Cell::Nanos(ns as f64));
            vec![
                Cell::Number(backend.id.into()),
                Cell::text(backend.label()),
                Cell::text(backend.device_type.name()),
                nanos(time.busy_ns),
                Cell::or_nothing(time.busy_ns, share),
                nanos(copying),
                Cell::or_nothing(copying, share),
                some(time.copying_estimated_ns, &|ns| Cell::Nanos(ns as f64)),
                nanos(time.idle_ns),
                Cell::or_nothing(time.idle_ns, share),
                some(time.unrecorded_ns, &|ns| Cell::Nanos(ns as f64)),
                some(time.absent_ns, &|ns| Cell::Nanos(ns as f64)),
                Cell::Count(time.ops.into()),
                Cell::Count(time.copies.into()),
                some(time.copies_untimed, &|count| Cell::Count(count.into())),
            ]
        })
        .collect();
    document.heading("backends", "Backends: where the wall time went");
    document.table(Table { key: "backends", columns: TIMES.to_vec(), rows });
}
