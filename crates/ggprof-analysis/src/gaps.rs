//! Time of which a recording knows nothing. Of several recordings each has gaps of its own: what is
//! missing of one process says nothing of the others.

use ggprof_trace::{BackendIndex, Gap, GraphRunId, Process, ProcessIndex, Trace};

/// Gaps of all processes at once, by time. What is missing before the first recorded run is none: see
/// [`missing_before`].
pub fn gaps(trace: &Trace) -> Vec<Gap> {
    Gaps::of(trace).common
}

/// What is missing of whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// Of all that was recorded.
    pub common: Vec<Gap>,
    /// Of each process, the common ones among them; empty for a single one.
    of_process: Vec<Vec<Gap>>,
}

impl Gaps {
    pub fn of(trace: &Trace) -> Self {
        Self::with(trace, trace.numbered_gaps())
    }

    /// Without those that are there because something was left out on request.
    pub fn of_recording(trace: &Trace) -> Self {
        Self::with(trace, trace.recording_gaps())
    }

    fn with(trace: &Trace, numbered: Vec<Gap>) -> Self {
        let own = trace.processes.iter().map(|process| joined(&numbered, &process.gaps));
        let of_process: Vec<Vec<Gap>> = own.collect();
        let in_all = of_process.iter().cloned().reduce(|all, one| overlaps(&all, &one));
        Self { common: in_all.unwrap_or(numbered), of_process }
    }

    pub fn of_process(&self, process: Option<ProcessIndex>) -> &[Gap] {
        let own = process.and_then(|process| self.of_process.get(usize::from(process.0)));
        own.unwrap_or(&self.common)
    }

    pub fn of_backend(&self, trace: &Trace, backend: BackendIndex) -> &[Gap] {
        self.of_process(trace.backend(backend).process)
    }

    /// Of the process that computed a graph run.
    pub fn of_run(&self, trace: &Trace, run: Option<GraphRunId>) -> &[Gap] {
        let run = run.and_then(|run| trace.graph_runs.get(run.0 as usize));
        self.of_process(run.and_then(|run| run.process))
    }

    /// Time in which no process was there and recorded.
    pub(crate) fn unknown(&self, trace: &Trace) -> Vec<Gap> {
        let own = trace.processes.iter().zip(&self.of_process);
        let unknown = own.map(|(process, gaps)| joined(gaps, &outside(process)));
        unknown.reduce(|all, one| overlaps(&all, &one)).unwrap_or_else(|| self.common.clone())
    }

    pub fn are_none(&self) -> bool {
        self.common.is_empty() && self.of_process.iter().all(Vec::is_empty)
    }
}

/// The time from the first start to the last end of all that was recorded, without gaps.
pub fn recorded_ns(trace: &Trace) -> u64 {
    let (start_ns, end_ns) = trace.span_ns().unwrap_or_default();
    end_ns - start_ns - within(&gaps(trace), start_ns, end_ns)
}

/// Graph runs of the program, or of any of several, before the first one that was recorded.
pub fn missing_before(trace: &Trace) -> u64 {
    let first = |gap: &&Gap| gap.start_ns == 0;
    let of_processes = trace.processes.iter().flat_map(|process| process.gaps.iter().find(first));
    of_processes.fold(trace.runs_before(), |sum, gap| sum.saturating_add(gap.runs))
}

/// The same of one process, what was left out on request not counted.
pub(crate) fn missing_before_of(trace: &Trace, process: Option<ProcessIndex>) -> u64 {
    let own = process.and_then(|process| trace.processes.get(usize::from(process.0)));
    match own {
        Some(own) => own.gaps.iter().find(|gap| gap.start_ns == 0).map_or(0, |gap| gap.runs),
        None => trace.recorded_runs_before(),
    }
}

/// Time in which no process was there.
pub(crate) fn absent(trace: &Trace) -> Vec<Gap> {
    let outside = trace.processes.iter().map(outside);
    outside.reduce(|all, one| overlaps(&all, &one)).unwrap_or_default()
}

/// Before a process began, and after it was over.
fn outside(process: &Process) -> Vec<Gap> {
    let Some((from_ns, to_ns)) = process.there_ns else { return Vec::new() };
    let times = [(0, from_ns), (to_ns, u64::MAX)].into_iter().filter(|(start, end)| end > start);
    times.map(|(start_ns, end_ns)| Gap { start_ns, end_ns, runs: 0 }).collect()
}

/// How much of a span of time lies in gaps, which come by time.
#[inline]
pub fn within(gaps: &[Gap], start_ns: u64, end_ns: u64) -> u64 {
    if gaps.is_empty() {
        return 0;
    }
    let overlap = |gap: &Gap| {
        let (start, end) = (gap.start_ns.max(start_ns), gap.end_ns.min(end_ns));
        end.saturating_sub(start)
    };
    let first = gaps.partition_point(|gap| gap.end_ns <= start_ns);
    gaps[first..].iter().take_while(|gap| gap.start_ns < end_ns).map(overlap).sum()
}

/// What lies in gaps of either, by time; those that touch become one.
fn joined(some: &[Gap], others: &[Gap]) -> Vec<Gap> {
    let mut all = [some, others].concat();
    all.sort_unstable_by_key(|gap| (gap.start_ns, gap.end_ns));
    let mut joined: Vec<Gap> = Vec::new();
    for gap in all {
        match joined.last_mut() {
            Some(last) if gap.start_ns <= last.end_ns => {
                last.end_ns = last.end_ns.max(gap.end_ns);
                last.runs = last.runs.saturating_add(gap.runs);
            }
            _ => joined.push(gap),
        }
    }
    joined
}

/// What lies in gaps of both, by time.
fn overlaps(some: &[Gap], others: &[Gap]) -> Vec<Gap> {
    let mut both = Vec::new();
    for one in some {
        let first = others.partition_point(|gap| gap.end_ns <= one.start_ns);
        for other in others[first..].iter().take_while(|gap| gap.start_ns < one.end_ns) {
            both.push(Gap {
                start_ns: one.start_ns.max(other.start_ns),
                end_ns: one.end_ns.min(other.end_ns),
                runs: one.runs.saturating_add(other.runs),
            });
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    fn gap(start_ns: u64, end_ns: u64, runs: u64) -> Gap {
        Gap { start_ns, end_ns, runs }
    }

    #[test]
    fn how_much_of_a_time_is_missing() {
        let gaps = [gap(20, 90, 4)];
        for (start_ns, end_ns, missing) in [(15, 50, 30), (90, 95, 0), (0, 100, 70)] {
            assert_eq!(within(&gaps, start_ns, end_ns), missing);
        }
    }

    #[test]
    fn gaps_of_one_process_are_its_own() {
        let mut trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..10 number=1
             run 20..30 number=2
             run 90..99 number=4
             op CPU ADD 0..1 x run=0",
        );
        let of = |gaps: &[Gap]| ggprof_trace::Process { gaps: gaps.to_vec(), ..Default::default() };
        trace.processes = vec![of(&[gap(0, 5, 7), gap(40, 60, 1)]), of(&[gap(50, 95, 3)])];
        let found = Gaps::of(&trace);
        // What was left out on request is missing of both.
        assert_eq!(found.of_process(Some(ProcessIndex(0))), [gap(0, 5, 7), gap(30, 90, 2)]);
        assert_eq!(found.of_process(Some(ProcessIndex(1))), [gap(30, 95, 4)]);
        assert_eq!(found.common, [gap(30, 90, 6)]);
        assert_eq!(missing_before(&trace), 7);
    }
}
