//! Whether every effect comes after its cause: an op cannot start before its inputs were computed
//! or copied. This shows whether the clocks of several devices agree on one timeline.

use ggprof_ggml::copied_tensor;
use ggprof_trace::{EventId, EventKind, GraphRunId, Measured, NodeId, StringId, Trace};
use std::ops::Range;

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
    let names = Names::of(trace);
    let mut runs: Vec<(GraphRunId, Range<u32>)> = trace
        .events
        .stretches()
        .filter(|(stretch, _)| stretch.kind == EventKind::Op)
        .filter_map(|(stretch, events)| Some((stretch.graph_run?, events)))
        .collect();
    runs.sort_by_key(|(run, _)| *run);
    let mut makers = Makers::new(trace);
    let mut found = Causality::default();
    for of_run in runs.chunk_by(|one, other| one.0 == other.0) {
        let ops = || of_run.iter().flat_map(|(_, events)| events.clone());
        let timed = || ops().filter(|&at| is_timed(trace.events.measured()[at as usize]));
        makers.next_run();
        timed().for_each(|at| makers.take(trace, at));
        for at in timed() {
            let start_ns = trace.events.starts()[at as usize];
            for &source in names.sources(trace.events.nodes()[at as usize]) {
                let Some(maker) = makers.of(source) else { continue };
                found.checked += 1;
                let end_ns =
                    trace.events.starts()[maker as usize] + trace.events.duration(EventId(maker));
                let early_ns = end_ns.saturating_sub(start_ns);
                if early_ns == 0 {
                    continue;
                }
                let measured = |at: u32| trace.events.measured()[at as usize];
                let on_host = [maker, at].iter().all(|&at| measured(at) == Measured::Host);
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
fn is_timed(measured: Measured) -> bool {
    !matches!(measured, Measured::HostCall | Measured::Unknown)
}

/// The tensors that each node takes in, by the names of what makes them.
struct Names {
    sources: Vec<StringId>,
    /// Where those of each node end.
    ends: Vec<u32>,
}

impl Names {
    fn of(trace: &Trace) -> Self {
        let mut names = Self { sources: Vec::new(), ends: Vec::new() };
        for id in trace.nodes.ids() {
            for source in trace.nodes.source_names(id) {
                let name = trace.text(*source);
                let name = copied_tensor(name).unwrap_or(name);
                // What is its own does not come from elsewhere.
                let maker = trace.strings.find(name);
                names.sources.extend(maker.filter(|_| trace.tensor_name(id) != Some(name)));
            }
            names.ends.push(names.sources.len() as u32);
        }
        names
    }

    #[inline]
    fn sources(&self, node: NodeId) -> &[StringId] {
        let at = node.0 as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sources[start as usize..self.ends[at] as usize]
    }
}

/// What made each tensor of a graph run. A name that several ops of the run use tells nothing.
struct Makers {
    /// By name: the run that it was last made in, counted from one, and the event that made it.
    of_name: Vec<(u32, u32)>,
    run: u32,
}

const SEVERAL: u32 = u32::MAX;

impl Makers {
    fn new(trace: &Trace) -> Self {
        Self { of_name: vec![(0, SEVERAL); trace.strings.len()], run: 0 }
    }

    fn next_run(&mut self) {
        self.run += 1;
    }

    #[inline]
    fn take(&mut self, trace: &Trace, at: u32) {
        let node = trace.node(trace.events.nodes()[at as usize]);
        if let Some(name) = node.tensor_name {
            let maker = &mut self.of_name[name.index()];
            *maker = (self.run, if maker.0 == self.run { SEVERAL } else { at });
        }
    }

    #[inline]
    fn of(&self, name: StringId) -> Option<u32> {
        let (run, maker) = self.of_name[name.index()];
        (run == self.run && maker != SEVERAL).then_some(maker)
    }
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
