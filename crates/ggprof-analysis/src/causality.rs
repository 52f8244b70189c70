//! Whether every effect comes after its cause: an op cannot start before its inputs were computed
//! or copied. This shows whether the clocks of several devices agree on one timeline.

use ggprof_ggml::copied_tensor;
use ggprof_trace::{Event, GraphRunId, Measured, Trace};
use hashbrown::HashMap;

/// Processors read their counter while they still wait for memory, so that what a thread begins can
/// seem to begin before another thread has ended: by up to 936 ticks in a million ops.
const COUNTERS_READ_EARLY_NS: u64 = 1_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Causality {
    /// Pairs of an op and what it takes in that could be looked at.
    pub checked: u64,
    /// Those in which the op starts earlier, by more than the clocks may be off.
    pub violations: u64,
    /// The worst of them, in nanoseconds.
    pub worst_ns: u64,
}

/// Looks at all pairs within each graph run.
pub fn causality(trace: &Trace) -> Causality {
    let tolerance_ns = trace.provenance.as_ref().map_or(0, |provenance| {
        let errors = [provenance.clock_error_ns, provenance.device_clock_error_ns];
        errors.into_iter().flatten().fold(0, u64::saturating_add)
    });
    let mut runs: HashMap<GraphRunId, Vec<Event>> = HashMap::new();
    for event in trace.events.iter().filter(is_timed) {
        if let Some(run) = event.graph_run {
            runs.entry(run).or_default().push(event);
        }
    }
    let mut found = Causality::default();
    for events in runs.values() {
        let made = made_once(trace, events);
        for op in events.iter().filter(|event| event.is_op()) {
            for source in trace.nodes.source_names(op.node) {
                let name = trace.text(*source);
                let name = copied_tensor(name).unwrap_or(name);
                let Some(Some(maker)) = made.get(name).filter(|_| !is_own(trace, op, name)) else {
                    continue;
                };
                found.checked += 1;
                let early_ns = maker.end_ns().saturating_sub(op.start_ns);
                let on_host = [maker.measured, op.measured].iter().all(|it| *it == Measured::Host);
                let allowed_ns = if on_host { COUNTERS_READ_EARLY_NS } else { 0 };
                if early_ns > tolerance_ns.saturating_add(allowed_ns) {
                    found.violations += 1;
                    found.worst_ns = found.worst_ns.max(early_ns);
                }
            }
        }
    }
    found
}

/// A call that only starts work says nothing of when the work was done.
fn is_timed(event: &Event) -> bool {
    !matches!(event.measured, Measured::HostCall | Measured::Unknown)
}

/// What made each tensor. A name that several ops of the run use tells nothing: `None`.
fn made_once<'t>(trace: &'t Trace, events: &[Event]) -> HashMap<&'t str, Option<Event>> {
    let mut made = HashMap::new();
    for event in events.iter().filter(|event| event.is_op()) {
        if let Some(name) = trace.tensor_name(event.node) {
            made.entry(name).and_modify(|maker| *maker = None).or_insert(Some(*event));
        }
    }
    made
}

fn is_own(trace: &Trace, op: &Event, name: &str) -> bool {
    trace.tensor_name(op.node) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Provenance, text_fixture};

    #[track_caller]
    fn check(events: &str, expected: (u64, u64, u64)) {
        let trace = text_fixture::parse(&format!(
            "backend 0 GPU gpu\nbackend 1 CPU cpu\nrun 0..200\n{events}"
        ));
        let found = causality(&trace);
        assert_eq!((found.checked, found.violations, found.worst_ns), expected);
    }

    #[test]
    fn sources_made_before_and_after() {
        check(
            "op CPU GET_ROWS 0..10 embd measured=host run=0
             op GPU MUL_MAT 10..20 q from=w,GPU#embd#0 measured=device run=0
             op GPU ADD 15..30 r from=q,embd measured=device run=0",
            (3, 1, 5),
        );
    }

    #[test]
    fn threads_of_the_host_read_their_counter_early() {
        check(
            "op CPU ADD 100..2000 x measured=host run=0
             op CPU MUL 1500..2100 y from=x measured=host run=0
             op CPU MUL 900..1000 z from=x measured=host run=0",
            (2, 1, 1100),
        );
    }

    #[test]
    fn clocks_of_a_damaged_file_may_be_off_without_end() {
        let mut trace = text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 0..10 x");
        let (clock_error_ns, device_clock_error_ns) = (Some(u64::MAX), Some(u64::MAX));
        trace.provenance =
            Some(Provenance { clock_error_ns, device_clock_error_ns, ..Provenance::default() });
        assert_eq!(causality(&trace), Causality::default());
    }

    #[test]
    fn names_in_use_twice_and_calls_tell_nothing() {
        check(
            "op CPU ADD 0..10 x measured=host run=0
             op CPU ADD 10..20 x from=x measured=host run=0
             op CPU MUL 5..6 y from=x measured=host run=0
             op GPU SPLIT 0..100 z measured=host_call run=0
             op CPU MUL 50..60 a from=z measured=host run=0",
            (0, 0, 0),
        );
    }
}
