//! Where the recording has gaps: graph runs that the program computed and that were not recorded,
//! because recording was stopped, or had made room for newer ones.

use crate::done::done;
use ggprof_trace::Trace;

/// Time of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The end of the graph run before it.
    pub start_ns: u64,
    /// The start of the graph run after it.
    pub end_ns: u64,
    /// Graph runs that are missing.
    pub runs: u64,
}

/// By time. What is missing before the first recorded run is none: see [`missing_before`].
pub fn gaps(trace: &Trace) -> Vec<Gap> {
    if is_complete(trace) {
        return Vec::new();
    }
    let done = done(trace);
    let mut runs: Vec<(u64, u64, u64)> = trace
        .graph_runs
        .iter()
        .zip(&done)
        .filter_map(|(run, &done_ns)| Some((run.number?, run.start_ns, done_ns)))
        .collect();
    runs.sort_unstable();
    let mut gaps: Vec<Gap> = Vec::new();
    let mut latest_ns = 0;
    for pair in runs.windows(2) {
        let [(before, _, done_ns), (after, start_ns, _)] = [pair[0], pair[1]];
        latest_ns = done_ns.max(latest_ns);
        if after > before + 1 && start_ns > latest_ns {
            gaps.push(Gap { start_ns: latest_ns, end_ns: start_ns, runs: after - before - 1 });
        }
    }
    gaps
}

/// Whether no number is missing between the first and the last.
fn is_complete(trace: &Trace) -> bool {
    let numbers = || trace.graph_runs.iter().filter_map(|run| run.number);
    let span = numbers().min().zip(numbers().max()).map_or(0, |(first, last)| last - first + 1);
    span == numbers().count() as u64
}

/// The time from the first start to the last end of all events, without gaps.
pub fn recorded_ns(trace: &Trace) -> u64 {
    let (start_ns, end_ns) = trace.span_ns().unwrap_or_default();
    end_ns - start_ns - within(&gaps(trace), start_ns, end_ns)
}

/// Graph runs of the program before the first one that was recorded.
pub fn missing_before(trace: &Trace) -> u64 {
    trace.graph_runs.iter().filter_map(|run| run.number).min().map_or(0, |first| first - 1)
}

/// How much of a stretch of time lies in gaps, which come by time.
pub fn within(gaps: &[Gap], start_ns: u64, end_ns: u64) -> u64 {
    let overlap = |gap: &Gap| {
        let (start, end) = (gap.start_ns.max(start_ns), gap.end_ns.min(end_ns));
        end.saturating_sub(start)
    };
    let first = gaps.partition_point(|gap| gap.end_ns <= start_ns);
    gaps[first..].iter().take_while(|gap| gap.start_ns < end_ns).map(overlap).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn missing_numbers_are_gaps() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..10 number=3
             run 12..20 number=4
             run 90..99 number=9
             op CPU ADD 0..1 x run=0",
        );
        assert_eq!(gaps(&trace), [Gap { start_ns: 20, end_ns: 90, runs: 4 }]);
        assert_eq!(missing_before(&trace), 2);
        assert_eq!(within(&gaps(&trace), 15, 50), 30);
        assert_eq!(within(&gaps(&trace), 90, 95), 0);
        assert_eq!(within(&gaps(&trace), 0, 100), 70);
    }

    #[test]
    fn without_numbers_there_are_none() {
        let trace = text_fixture::parse("backend 0 CPU cpu\nrun 0..10\nrun 90..99");
        assert_eq!((gaps(&trace), missing_before(&trace)), (vec![], 0));
    }
}
