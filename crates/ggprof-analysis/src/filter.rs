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

fn runs_of_request(phases: &Phases, trace: &Trace, request: u32) -> Vec<bool> {
    let mut runs = vec![false; trace.graph_runs.len()];
    let has_part = |step: &&crate::steps::Step| step.parts.iter().any(|it| it.request == request);
    for step in phases.steps.iter().filter(has_part) {
        step.runs.iter().for_each(|&run| runs[run as usize] = true);
    }
    runs
}
