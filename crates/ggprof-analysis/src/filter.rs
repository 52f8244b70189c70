//! Which part of a recording a question is about.

use crate::phases::{PhaseKind, Phases, phases};
use ggprof_trace::Trace;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Graph runs that begin from here on.
    pub from_ns: Option<u64>,
    /// Graph runs that begin before.
    pub to_ns: Option<u64>,
    pub phase: Option<PhaseKind>,
    /// Steps that a request had a part in.
    pub request: Option<u32>,
}

impl Filter {
    /// Leaves what is wanted. False if no graph run is.
    pub fn apply(&self, trace: &mut Trace) -> bool {
        if *self == Self::default() {
            return true;
        }
        let wanted = self.wanted(trace);
        let span = (self.from_ns.unwrap_or(0), self.to_ns.unwrap_or(u64::MAX));
        // Copies outside of graph runs are of no phase and of no request.
        let is_about_time = self.phase.is_none() && self.request.is_none();
        trace.select(&wanted, if is_about_time { span } else { (u64::MAX, 0) });
        wanted.contains(&true)
    }

    fn wanted(&self, trace: &Trace) -> Vec<bool> {
        let phases = phases(trace);
        let of_request = self.request.map(|request| runs_of_request(&phases, trace, request));
        let is_wanted = |(run, it): (usize, &ggprof_trace::GraphRun)| {
            let kind = phases.phases[phases.phase_of_run[run] as usize].kind;
            self.from_ns.is_none_or(|from_ns| it.start_ns >= from_ns)
                && self.to_ns.is_none_or(|to_ns| it.start_ns < to_ns)
                && self.phase.is_none_or(|phase| phase == kind)
                && of_request.as_ref().is_none_or(|runs| runs[run])
        };
        trace.graph_runs.iter().enumerate().map(is_wanted).collect()
    }
}

/// Leaves the program's work.
pub fn leave_warm_ups_out(trace: &mut Trace) {
    let work = work(trace);
    if work.contains(&false) {
        trace.select(&work, (0, u64::MAX));
    }
}

/// Which graph runs are the program's work: those that are no warm-ups, or all if there are no others. In
/// warm-ups kernels are compiled, and ops take as long as they never do again.
pub(crate) fn work(trace: &Trace) -> Vec<bool> {
    let phases = phases(trace);
    let is_work = |phase: &u32| phases.phases[*phase as usize].kind != PhaseKind::WarmUp;
    let work: Vec<bool> = phases.phase_of_run.iter().map(is_work).collect();
    if work.contains(&true) { work } else { vec![true; work.len()] }
}

fn runs_of_request(phases: &Phases, trace: &Trace, request: u32) -> Vec<bool> {
    let mut runs = vec![false; trace.graph_runs.len()];
    let has_part = |step: &&crate::step::Step| step.parts.iter().any(|it| it.request == request);
    for step in phases.steps.iter().filter(has_part) {
        step.runs.iter().for_each(|&run| runs[run as usize] = true);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    /// Two requests: the second one's prompt comes in the middle of the first one's tokens. Each step takes
    /// 10 ns, with 5 ns before the next.
    fn trace() -> Trace {
        let steps = [
            "0:0+8!1",
            "0:8+1!1",
            "0:9+1!1",
            "1:0+90",
            "1:90+10!1",
            "0:10+1!1 1:100+1!1",
            "0:11+1!1 1:101+1!1",
            "0:12+1!1",
        ];
        let mut text = "backend 0 CPU cpu\n".to_owned();
        for (at, what) in steps.into_iter().enumerate() {
            let (start, end) = (at * 15, at * 15 + 10);
            text += &format!("batch {start}..{end} {what}\nrun {start}..{end} batch={at}\n");
            text += &format!("op CPU ADD {start}..{end} x run={at}\n");
        }
        text_fixture::parse(&text)
    }

    fn part(filter: Filter) -> Phases {
        let mut trace = trace();
        assert!(filter.apply(&mut trace));
        phases(&trace)
    }

    fn labels(phases: &Phases) -> Vec<(String, u64)> {
        phases.phases.iter().map(|phase| (phase.label(), phase.wall_ns())).collect()
    }

    #[test]
    fn work_without_its_warm_up() {
        let mut trace = text_fixture::parse(
            "backend 0 CPU cpu
             change 0 warm-up
             batch 0..900 0:0+2!1
             run 0..900 batch=0
             op CPU ADD 0..900 x run=0
             change 900 warmed-up
             change 901 cleared
             batch 1000..1010 0:0+8!1
             run 1000..1010 batch=1
             op CPU ADD 1000..1010 x run=1",
        );
        leave_warm_ups_out(&mut trace);
        assert_eq!(labels(&phases(&trace)), [("pp8".to_owned(), 10)]);
        // What is left is all that there is.
        leave_warm_ups_out(&mut trace);
        assert_eq!(trace.graph_runs.len(), 1);
    }

    #[test]
    fn what_is_wholly_inside_is_as_in_the_whole() {
        let whole = phases(&trace());
        let generation = part(Filter { phase: Some(PhaseKind::Generation), ..Filter::default() });
        let of_it: Vec<_> =
            labels(&whole).into_iter().filter(|(label, _)| label.starts_with("tg")).collect();
        assert_eq!(labels(&generation), of_it);
        assert_eq!(generation.between_tokens_ns, whole.between_tokens_ns);
        // First tokens come with prompts.
        assert!(generation.first_token_ns.is_empty());
        for number in [0, 1] {
            let found = part(Filter { request: Some(number), ..Filter::default() });
            let request = found.requests.iter().find(|it| it.number == number).unwrap();
            assert_eq!(request, &whole.requests[number as usize]);
        }
    }

    #[test]
    fn what_is_cut_says_the_truth_of_its_part() {
        let whole = phases(&trace());
        let found = part(Filter { from_ns: Some(30), to_ns: Some(91), ..Filter::default() });
        let expected = [("tg1", 10), ("pp100", 25), ("tg2x2", 25)];
        let expected: Vec<_> = expected.map(|(label, ns)| (label.to_owned(), ns)).to_vec();
        assert_eq!(labels(&found), expected);
        // A wait goes back to the token before, also where that is outside.
        assert_eq!(found.between_tokens_ns, [15, 15, 15, 15, 45]);
        assert_eq!(found.first_token_ns, [25]);
        let waits = |phases: &Phases| phases.requests[0].waits.len();
        assert_eq!((waits(&found), found.requests[0].is_inside), (waits(&whole), false));
        let stalls = crate::longest_waits(&found.requests, 9);
        assert_eq!(stalls.len(), 1);
        assert_eq!(stalls[0].1.cause, crate::Cause::OtherPrompt { request: 1 });
    }
}
