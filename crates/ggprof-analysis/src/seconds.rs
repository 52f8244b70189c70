//! Second by second: what was asked for, and what the machine did.

use crate::gaps::{gaps, within};
use crate::phases::phases;
use ggprof_trace::{EventKind, Trace};

const SECOND_NS: u64 = 1_000_000_000;

/// Far more seconds than a report has lines for.
const MOST_SECONDS: u64 = 1_000_000;

/// Shares are fractions of its length; the last one may be shorter than a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Second {
    pub start_ns: u64,
    /// Graph runs that began.
    pub runs: u64,
    /// Tokens of the steps that began.
    pub prompt_tokens: u64,
    pub generated_tokens: u64,
    /// Requests under way.
    pub requests: u64,
    /// A backend computed.
    pub computing: f64,
    /// None computed, and something was copied.
    pub copying: f64,
    pub idle: f64,
    pub unrecorded: f64,
}

pub fn seconds(trace: &Trace) -> Vec<Second> {
    let Some((start_ns, end_ns)) = trace.span_ns() else { return Vec::new() };
    let count = ((end_ns - start_ns).div_ceil(SECOND_NS)).clamp(1, MOST_SECONDS);
    let mut seconds: Vec<Second> = (0..count)
        .map(|at| Second { start_ns: start_ns + at * SECOND_NS, ..Second::default() })
        .collect();
    let at = |ns: u64| (ns.saturating_sub(start_ns) / SECOND_NS).min(count - 1) as usize;
    let phases = phases(trace);
    for run in &trace.graph_runs {
        seconds[at(run.start_ns)].runs += 1;
    }
    for step in phases.steps.iter().filter(|step| !step.is_warm_up) {
        let second = &mut seconds[at(step.start_ns)];
        let generated = step.generating();
        second.generated_tokens += generated;
        second.prompt_tokens += step.tokens.unwrap_or(0).saturating_sub(generated);
    }
    for request in &phases.requests {
        for second in &mut seconds[at(request.start_ns)..=at(request.end_ns)] {
            second.requests += 1;
        }
    }
    share_out(trace, &mut seconds, start_ns, end_ns);
    seconds
}

/// How each second was spent.
fn share_out(trace: &Trace, seconds: &mut [Second], start_ns: u64, end_ns: u64) {
    let spans_of = |kind: EventKind| {
        let events = trace.events.iter().filter(|event| event.kind == kind);
        let mut spans: Vec<(u64, u64)> =
            events.map(|event| (event.start_ns, event.end_ns())).collect();
        spans.sort_unstable();
        spans
    };
    let computing = lengths(&spans_of(EventKind::Op), seconds.len(), start_ns);
    let mut both = spans_of(EventKind::Op);
    both.extend(spans_of(EventKind::Copy));
    both.sort_unstable();
    let working = lengths(&both, seconds.len(), start_ns);
    let gaps = gaps(trace);
    for (at, second) in seconds.iter_mut().enumerate() {
        let until = (second.start_ns + SECOND_NS).min(end_ns);
        let length = until.saturating_sub(second.start_ns).max(1);
        let unrecorded = within(&gaps, second.start_ns, until);
        let share = |ns: u64| ns as f64 / length as f64;
        second.computing = share(computing[at]);
        second.copying = share(working[at] - computing[at]);
        second.unrecorded = share(unrecorded);
        second.idle = share(length.saturating_sub(working[at] + unrecorded));
    }
}

/// How much of each second lies in some of the spans, which come by start.
fn lengths(spans: &[(u64, u64)], count: usize, start_ns: u64) -> Vec<u64> {
    let mut lengths = vec![0; count];
    let mut covered_until = start_ns;
    for &(start, end) in spans {
        let mut from = start.max(covered_until);
        while from < end {
            let at = ((from - start_ns) / SECOND_NS) as usize;
            let until = end.min(start_ns + (at as u64 + 1) * SECOND_NS);
            let Some(length) = lengths.get_mut(at) else { break };
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
    use ggprof_trace::text_fixture;

    #[test]
    fn every_second_adds_up() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..1500000000
             op CPU ADD 0..500000000 a run=0
             op CPU ADD 250000000..500000000 b run=0
             copy CPU H2D 400000000..600000000 8 x
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
