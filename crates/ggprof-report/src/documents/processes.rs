//! The processes of a trace that was made of several recordings, and the devices that they share.

use crate::document::Fact;
use crate::{Cell, Column, Document, Table, units};
use ggprof_analysis::sharing;
use ggprof_trace::{DayClock, Gap, Process, ProcessClock, Trace};

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

/// What to know of the axis of time, if clocks had to be brought together.
pub(crate) fn clock_warning(trace: &Trace) -> Option<String> {
    let by_time_of_day = |process: &&Process| process.clock == ProcessClock::TimeOfDay;
    let others: Vec<&Process> = trace.processes.iter().filter(by_time_of_day).collect();
    let worst = others.iter().map(|process| process.day_clock).max_by_key(|it| how_bad(*it))?;
    let names: Vec<String> = others.iter().map(|process| process.label()).collect();
    Some(format!(
        "{} ran on another machine than the rest, or since another start of it: the times are aligned \
         by the time of day, {}",
        names.join(", "),
        uncertainty(worst)
    ))
}

/// What is known least well counts.
fn how_bad(clock: DayClock) -> (u8, u64) {
    match clock {
        DayClock::Within(ns) => (0, ns),
        DayClock::NotAsked => (1, 0),
        DayClock::Free => (2, 0),
    }
}

fn uncertainty(clock: DayClock) -> String {
    match clock {
        DayClock::Within(ns) => format!(
            "and can be off by {} against each other, as far as the systems know. Do not conclude \
             from less who waited for whom.",
            units::duration(ns as f64)
        ),
        DayClock::NotAsked => "which machines know to some milliseconds at best; how well, these \
             recordings do not say. Do not conclude from them who waited for whom."
            .to_owned(),
        DayClock::Free => "which no server sets right on at least one of the machines, as its system \
             says: how far the times are off is not known. Do not conclude from them who waited for \
             whom."
            .to_owned(),
    }
}
