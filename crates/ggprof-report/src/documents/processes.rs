//! The processes of a trace that was made of several recordings, and the devices that they share.

use crate::document::Fact;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::sharing;
use ggprof_trace::{Process, ProcessClock, Trace};

const COLUMNS: [Column; 6] = [
    Column::left("device", "device", 0),
    Column::left("process", "process", 0),
    Column::right("pid", "", 9),
    Column::right("used_ns", "used it for", 0),
    Column::right("together_ns", "with others", 0),
    Column::right("together_share", "of it", 1),
];

/// A line that names them.
pub(super) fn names(document: &mut Document, trace: &Trace) {
    let fact = |process: &Process| Fact::listed("process", Cell::Text(process.label()), "{}");
    let facts: Vec<Fact> = trace.processes.iter().map(fact).collect();
    if !facts.is_empty() {
        document.fact("processes", "processes", facts);
    }
}

/// For the summary: who used what together with others; nothing for a single process.
pub(super) fn shared_devices(document: &mut Document, trace: &Trace) {
    let devices = sharing(trace);
    if devices.is_empty() {
        return;
    }
    let mut rows = Vec::new();
    for device in &devices {
        for user in &device.users {
            let process = &trace.processes[usize::from(user.process.0)];
            let share = user.together_ns as f64 / user.used_ns.max(1) as f64;
            rows.push(vec![
                Cell::text(&device.device),
                Cell::Text(process.label()),
                Cell::Number(process.pid.into()),
                Cell::Nanos(user.used_ns as f64),
                Cell::Nanos(user.together_ns as f64),
                Cell::Share(share),
            ]);
        }
    }
    document.heading("shared_devices", "Devices that several processes used");
    document.table(Table { key: "shared_devices", columns: COLUMNS.to_vec(), rows });
    let waited = devices.iter().any(|device| device.together_ns > 0);
    let sentence = match waited {
        true => {
            "While others use a device too, a process waits for them: it does not have all of it."
        }
        false => "No two processes used a device at the same time.",
    };
    document.note("shared_devices_note", sentence.to_owned());
}

/// What to know of the axis of time, if clocks had to be brought together.
pub(crate) fn clock_warning(trace: &Trace) -> Option<String> {
    let by_time_of_day = |process: &&Process| process.clock == ProcessClock::TimeOfDay;
    let names: Vec<String> =
        trace.processes.iter().filter(by_time_of_day).map(Process::label).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} ran on another machine than the rest, or since another start of it: the times are \
             aligned by the time of day, which machines know to some milliseconds at best. Do not \
             conclude from them who waited for whom.",
            names.join(", ")
        )
    })
}
