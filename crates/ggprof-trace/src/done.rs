//! When a graph run was done. The call that computes it may return long before, while a device
//! still computes.

use crate::model::{Measured, TaskKind, Trace};

/// For each graph run the end of its last event. Where some of them are only calls that start
/// work, that is too early, and the end of the program's wait for the results counts as well.
pub fn done(trace: &Trace) -> Vec<u64> {
    let mut done: Vec<u64> = trace.graph_runs.iter().map(|run| run.end_ns).collect();
    let mut goes_on = vec![false; done.len()];
    for (stretch, events) in trace.events.stretches() {
        let Some(run) = stretch.graph_run.map(|run| run.0 as usize) else { continue };
        let Some(end_ns) = done.get_mut(run) else { continue };
        *end_ns = trace.events.spans(events.clone()).fold(*end_ns, |latest, it| it.1.max(latest));
        goes_on[run] |= trace.events.measured_of(events).contains(&Measured::HostCall);
    }
    for wait in trace.host_tasks.iter().filter(|task| task.what == TaskKind::Wait) {
        let Some(run) = wait.graph_run.map(|run| run.0 as usize) else { continue };
        if goes_on.get(run) == Some(&true) {
            done[run] = wait.start_ns.saturating_add(wait.duration_ns).max(done[run]);
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_fixture;

    /// The same graph run, its one op timed in different ways; the program waits until 90.
    fn run_is_done(op: &str) -> u64 {
        let fixture = format!("backend 0 GPU gpu\nrun 0..10\n{op} run=0\nwait 20..90 run=0");
        done(&text_fixture::parse(&fixture))[0]
    }

    #[test]
    fn the_device_tells_or_the_wait_for_it() {
        assert_eq!(run_is_done("op GPU MUL_MAT 5..60 measured=device"), 60);
        assert_eq!(run_is_done("op GPU MUL_MAT 5..9 measured=host"), 10);
        assert_eq!(run_is_done("op GPU SPLIT 5..9 measured=host_call"), 90);
    }
}
