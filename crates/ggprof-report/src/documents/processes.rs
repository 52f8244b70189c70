//! The processes of a trace that was made of several recordings, and the devices that they share.

use crate::document::Fact;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::sharing;
use ggprof_trace::{Gap, Process, Trace};

const COLUMNS: [Column; 6] = [
    Column::left("device", "device", 0),
    Column::left("process", "process", 0),
    Column::right("pid", "", 9),
    Column::right("used_ns", "used it for", 0),
    Column::right("together_ns", "with others", 0),
    Column::right("together_share", "of it", 1),
];

const GAPS: [Column; 4] = [
    Column::left("process", "process", 0),
    Column::right("gap_ns", "not recorded for", 0),
    Column::right("gap_count", "times", 0),
    Column::right("gap_runs", "graph runs", 0),
];

/// A line that names them.
pub(super) fn names(document: &mut Document, trace: &Trace) {
    let fact = |process: &Process| Fact::listed("process", Cell::Text(process.label()), "{}");
    let facts: Vec<Fact> = trace.processes.iter().map(fact).collect();
    if !facts.is_empty() {
        document.fact("processes", "processes", facts);
    }
}

/// For the summary: what is missing of each process, while others were recorded.
pub(super) fn gaps(document: &mut Document, trace: &Trace) {
    let Some((first_ns, last_ns)) = trace.span_ns() else { return };
    let mut rows = Vec::new();
    for process in &trace.processes {
        let length = |gap: &Gap| gap.end_ns.min(last_ns).saturating_sub(gap.start_ns.max(first_ns));
        let gaps = process.gaps.iter().filter(|gap| length(gap) > 0);
        let (ns, runs): (Vec<u64>, Vec<u64>) = gaps.map(|gap| (length(gap), gap.runs)).unzip();
        if !ns.is_empty() {
            let runs = runs.into_iter().reduce(u64::saturating_add).filter(|&runs| runs > 0);
            rows.push(vec![
                Cell::Text(process.label()),
                Cell::Nanos(ns.iter().sum::<u64>() as f64),
                Cell::Count(ns.len() as u128),
                Cell::or_nothing(runs, |runs| Cell::Count(runs.into())),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    document.heading("process_gaps", "Processes that were not recorded all the time");
    document.table(Table { key: "process_gaps", columns: GAPS.to_vec(), rows });
    let note =
        "What is missing of a process is in none of its figures, and is none of its idle time.";
    document.note("process_gaps_note", note.to_owned());
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
