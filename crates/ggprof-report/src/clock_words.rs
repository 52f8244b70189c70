//! How far clocks of several machines agree, in words.

use crate::units;
use ggprof_trace::{DayClock, Process, ProcessClock, Trace};

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
