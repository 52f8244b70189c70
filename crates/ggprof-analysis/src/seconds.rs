//! Second by second: what was asked for, and what the machine did.

use crate::estimates::CopyTimes;
use crate::gaps::{Gaps, absent, within};
use crate::phases::phases;
use ggprof_trace::{Event, EventKind, Gap, Trace};

const SECOND_NS: u64 = 1_000_000_000;

/// Far more seconds than a report has lines for.
const MOST_SECONDS: u64 = 1_000_000;

/// Shares are fractions of its length; the first and the last one may be shorter than a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Second {
    pub start_ns: u64,
    /// Graph runs that began.
    pub runs: u64,
    /// Tokens of the steps that began.
    pub prompt_tokens: u64,
    pub generated_tokens: u64,
    /// Requests under way, trials not counted; `None` where requests are not known.
    pub requests: Option<u64>,
    /// A backend computed.
    pub computing: f64,
    /// None computed, and something was copied.
    pub copying: f64,
    pub idle: f64,
    /// No program was recorded, but one was there.
    pub unrecorded: f64,
    /// Of several programs, none was there.
    pub absent: f64,
}

pub fn seconds(trace: &Trace) -> Vec<Second> {
    let Some((start_ns, end_ns)) = trace.span_ns() else { return Vec::new() };
    // They are those of the clock, so that a part has the same ones as the whole.
    let before_ns = trace.unix_ns(start_ns).map_or(0, |unix_ns| unix_ns % SECOND_NS);
    let grid = Grid { start_ns, before_ns };
    let count = (grid.at(end_ns.saturating_sub(1).max(start_ns)) + 1).min(MOST_SECONDS);
    let begin = |at| Second { start_ns: grid.begin(at).max(start_ns), ..Second::default() };
    let mut seconds: Vec<Second> = (0..count).map(begin).collect();
    let at = |ns: u64| grid.at(ns).min(count - 1) as usize;
    let phases = phases(trace);
    for run in &trace.graph_runs {
        seconds[at(run.start_ns)].runs += 1;
    }
    for step in phases.steps.iter().filter(|step| !step.is_warm_up && !step.is_draft) {
        let second = &mut seconds[at(step.start_ns)];
        second.generated_tokens += step.generated_tokens();
        second.prompt_tokens += step.prompt_tokens();
    }
    if phases.are_known_in_part() {
        seconds.iter_mut().for_each(|second| second.requests = Some(0));
    }
    for request in phases.requests.iter().filter(|request| !request.is_warm_up) {
        for second in &mut seconds[at(request.start_ns)..=at(request.end_ns)] {
            second.requests = second.requests.map(|requests| requests + 1);
        }
    }
    share_out(trace, &mut seconds, grid, end_ns);
    seconds
}

/// Where seconds begin.
#[derive(Clone, Copy)]
struct Grid {
    start_ns: u64,
    /// How much of the first second lies before the start.
    before_ns: u64,
}

impl Grid {
    fn at(self, ns: u64) -> u64 {
        (ns.saturating_sub(self.start_ns) + self.before_ns) / SECOND_NS
    }

    fn begin(self, at: u64) -> u64 {
        (self.start_ns + at * SECOND_NS).saturating_sub(self.before_ns)
    }
}

/// How each second was spent.
fn share_out(trace: &Trace, seconds: &mut [Second], grid: Grid, end_ns: u64) {
    let copies = CopyTimes::of(trace);
    let spans_of = |kind: EventKind| {
        let is_meant = |event: &Event| event.kind == kind && !copies.is_untimed(trace, event);
        let events = trace.events.iter().filter(is_meant);
        events.map(|event| (event.start_ns, event.end_ns())).collect::<Vec<_>>()
    };
    let (unknown, absent) = (Gaps::of(trace).unknown(trace), absent(trace));
    // What happens in time that is not known otherwise is left out, as in all other tables.
    let mut spans: Vec<(u64, u64)> = unknown.iter().map(|it| (it.start_ns, it.end_ns)).collect();
    let mut lengths_with = |more: Vec<(u64, u64)>| {
        spans.extend(more);
        spans.sort_unstable();
        lengths(&spans, seconds.len(), grid, end_ns)
    };
    let or_computing = lengths_with(spans_of(EventKind::Op));
    let or_working = lengths_with(spans_of(EventKind::Copy));
    for (at, second) in seconds.iter_mut().enumerate() {
        let until = grid.begin(at as u64 + 1).min(end_ns);
        let length = until.saturating_sub(second.start_ns).max(1);
        let in_it = |gaps: &[Gap]| within(gaps, second.start_ns, until);
        let (unknown, absent) = (in_it(&unknown), in_it(&absent));
        let share = |ns: u64| ns as f64 / length as f64;
        second.computing = share(or_computing[at].saturating_sub(unknown));
        second.copying = share(or_working[at] - or_computing[at]);
        second.idle = share(length.saturating_sub(or_working[at]));
        second.absent = share(absent);
        second.unrecorded = share(unknown - absent);
    }
}

/// How much of each second lies in some of the spans, which come by start.
fn lengths(spans: &[(u64, u64)], count: usize, grid: Grid, end_ns: u64) -> Vec<u64> {
    let mut lengths = vec![0; count];
    let mut covered_until = grid.start_ns;
    for &(start, end) in spans {
        let end = end.min(end_ns);
        let mut from = start.max(covered_until);
        while from < end {
            let at = grid.at(from);
            let until = end.min(grid.begin(at + 1));
            let Some(length) = lengths.get_mut(at as usize) else { break };
            *length += until - from;
            from = until;
        }
        covered_until = covered_until.max(end);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Process, ProcessIndex, Provenance, text_fixture};

    #[test]
    fn nobody_is_idle_who_is_not_there() {
        let mut trace = text_fixture::parse(
            "backend 0 CPU cpu
             backend 1 CPU1 cpu
             op CPU ADD 0..100000000
             op CPU ADD 2100000000..2200000000
             op CPU1 ADD 4000000000..4100000000
             op CPU1 ADD 4400000000..5000000000",
        );
        let there = |from, to, gaps: &[(u64, u64)]| Process {
            there_ns: Some((from, to)),
            gaps: gaps
                .iter()
                .map(|&(start_ns, end_ns)| Gap { start_ns, end_ns, runs: 1 })
                .collect(),
            ..Process::default()
        };
        trace.processes = vec![
            there(0, 2_400_000_000, &[(1_500_000_000, 2_100_000_000)]),
            there(3_900_000_000, u64::MAX, &[(4_100_000_000, 4_300_000_000)]),
        ];
        for (at, backend) in (0..).zip(&mut trace.backends) {
            backend.process = Some(ProcessIndex(at));
        }
        let shares = |it: &Second| {
            [it.computing, it.idle, it.unrecorded, it.absent].map(|share| (share * 10.0).round())
        };
        let found: Vec<_> = seconds(&trace).iter().map(shares).collect();
        let expected = [
            [1.0, 9.0, 0.0, 0.0],
            [0.0, 5.0, 5.0, 0.0],
            [1.0, 2.0, 1.0, 6.0],
            [0.0, 1.0, 0.0, 9.0],
            [7.0, 1.0, 2.0, 0.0],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn seconds_are_those_of_the_clock() {
        let mut trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 100000000..300000000
             op CPU ADD 100000000..300000000 x run=0
             run 500000000..1600000000
             op CPU ADD 500000000..1600000000 x run=1",
        );
        let clock_anchors = vec![(0, 50_600_000_000)];
        trace.provenance = Some(Provenance { clock_anchors, ..Provenance::default() });
        let found = seconds(&trace);
        let found: Vec<_> = found.iter().map(|it| (it.start_ns, it.runs, it.computing)).collect();
        let expected =
            [(100_000_000, 1, 2.0 / 3.0), (400_000_000, 1, 0.9), (1_400_000_000, 0, 1.0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_trial_is_neither_tokens_nor_a_request() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             change 0 warm-up
             batch 0..100 0:0+2!1
             run 0..100 batch=0
             op CPU ADD 0..100 x run=0
             change 100 warmed-up
             change 101 cleared
             batch 1000000000..1000000100 0:0+8!1
             run 1000000000..1000000100 batch=1
             op CPU ADD 1000000000..1000000100 x run=1",
        );
        let found = seconds(&trace);
        let found: Vec<_> = found.iter().map(|it| (it.prompt_tokens, it.requests)).collect();
        assert_eq!(found, [(0, Some(0)), (8, Some(1))]);
    }

    #[test]
    fn what_happens_in_a_gap_is_not_counted_twice() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..100000000 number=1
             run 900000000..1000000000 number=5
             op CPU ADD 0..100000000 a run=0
             copy CPU H2D 500000000..600000000 8 x
             op CPU ADD 900000000..1000000000 b run=1",
        );
        let second = seconds(&trace)[0];
        assert_eq!((second.computing, second.copying), (0.2, 0.0));
        assert_eq!((second.unrecorded, second.idle), (0.8, 0.0));
    }

    #[test]
    fn every_second_adds_up() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..1500000000
             op CPU ADD 0..500000000 a run=0
             op CPU ADD 250000000..500000000 b run=0
             copy CPU H2D 400000000..600000000 8 x
             copy CPU H2D 600000000..700000000 8 x measured=host_call
             op CPU ADD 900000000..1500000000 c run=0",
        );
        let found: Vec<_> =
            seconds(&trace).iter().map(|it| (it.computing, it.copying, it.idle)).collect();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let expected = [(0.6, 0.1, 0.3), (1.0, 0.0, 0.0)];
        for ((a, b, c), (x, y, z)) in found.iter().zip(expected) {
            assert!(near(*a, x) && near(*b, y) && near(*c, z), "{found:?}");
        }
        assert_eq!(found.len(), 2);
    }
}
