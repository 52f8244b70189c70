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
    let mut runs: Vec<(GraphRunId, Range<u32>)> = trace
        .events
        .stretches()
        .filter(|(stretch, _)| stretch.kind == EventKind::Op)
        .filter_map(|(stretch, events)| Some((stretch.graph_run?, events)))
        .collect();
    runs.sort_by_key(|(run, _)| *run);
    let mut links = Links::new(trace);
    let mut found = Causality::default();
    for of_run in runs.chunk_by(|one, other| one.0 == other.0) {
        let ops: Vec<Range<u32>> = of_run.iter().map(|(_, events)| events.clone()).collect();
        for (maker, op) in links.of(trace, &ops) {
            found.checked += 1;
            let start_ns = trace.events.start(EventId(op));
            let end_ns = trace.events.start(EventId(maker)) + trace.events.duration(EventId(maker));
            let early_ns = end_ns.saturating_sub(start_ns);
            if early_ns == 0 {
                continue;
            }
            let measured = |at: u32| trace.events.measured()[at as usize];
            let on_host = [maker, op].iter().all(|&at| measured(at) == Measured::Host);
            let allowed_ns = if on_host { COUNTERS_READ_EARLY_NS } else { 0 };
            if early_ns > tolerance_ns.saturating_add(allowed_ns) {
                found.violations += 1;
                found.worst_ns = found.worst_ns.max(early_ns);
            }
        }
    }
    found
}

/// Which ops of a graph run take in what others made. A program computes the same graph again and
/// again, so what was found for one run is kept for the next.
struct Links {
    names: Names,
    makers: Makers,
    /// The ops of the run that was looked at last.
    last: Vec<Range<u32>>,
    /// Maker and op.
    found: Vec<(InRun, InRun)>,
}

/// One of a run's stretches of ops, and a place in it.
type InRun = (u32, u32);

impl Links {
    fn new(trace: &Trace) -> Self {
        let (names, makers) = (Names::of(trace), Makers::new(trace));
        Self { names, makers, last: Vec::new(), found: Vec::new() }
    }

    /// Those of a run whose ops stand in these places.
    fn of(&mut self, trace: &Trace, ops: &[Range<u32>]) -> impl Iterator<Item = (u32, u32)> {
        if !is_same_graph(trace, &self.last, ops) {
            self.find(trace, ops);
        }
        self.last = ops.to_vec();
        let event = move |(stretch, place): InRun| ops[stretch as usize].start + place;
        self.found.iter().map(move |&(maker, op)| (event(maker), event(op)))
    }

    fn find(&mut self, trace: &Trace, ops: &[Range<u32>]) {
        self.found.clear();
        self.makers.next_run();
        let is_timed = |at: u32| is_timed(trace.events.measured()[at as usize]);
        let all = || {
            (0..).zip(ops).flat_map(|(stretch, ops)| {
                ops.clone().map(move |at| (at, (stretch, at - ops.start)))
            })
        };
        let timed = || all().filter(|(at, _)| is_timed(*at));
        timed().for_each(|(at, place)| self.makers.take(trace, at, place));
        for (at, place) in timed() {
            for &source in self.names.sources(trace.events.nodes()[at as usize]) {
                self.found.extend(self.makers.of(source).map(|maker| (maker, place)));
            }
        }
    }
}

/// Whether two runs compute the same, and of the same ops it is known when.
fn is_same_graph(trace: &Trace, one: &[Range<u32>], other: &[Range<u32>]) -> bool {
    let is_same = |one: &Range<u32>, other: &Range<u32>| {
        let nodes = |events: &Range<u32>| trace.events.nodes_of(events.clone());
        let measured = |events: &Range<u32>| trace.events.measured_of(events.clone());
        nodes(one) == nodes(other) && measured(one) == measured(other)
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
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
    /// By name: the run that it was last made in, counted from one, and where; `None` if several made
    /// it.
    of_name: Vec<(u32, Option<InRun>)>,
    run: u32,
}

impl Makers {
    fn new(trace: &Trace) -> Self {
        Self { of_name: vec![(0, None); trace.strings.len()], run: 0 }
    }

    fn next_run(&mut self) {
        self.run += 1;
    }

    #[inline]
    fn take(&mut self, trace: &Trace, at: u32, place: InRun) {
        let node = trace.node(trace.events.nodes()[at as usize]);
        if let Some(name) = node.tensor_name {
            let maker = &mut self.of_name[name.index()];
            *maker = (self.run, Some(place).filter(|_| maker.0 != self.run));
        }
    }

    #[inline]
    fn of(&self, name: StringId) -> Option<InRun> {
        let (run, maker) = self.of_name[name.index()];
        maker.filter(|_| run == self.run)
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
