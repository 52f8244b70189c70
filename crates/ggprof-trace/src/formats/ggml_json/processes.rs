//! The processes of a trace that was made of several recordings, and what they computed for each other.

use crate::model::{Gap, LossKind, Process, ProcessIndex, RemoteLink, RemoteRun, Trace};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ProcessEntries {
    processes: Vec<Process>,
    /// Whose each backend is, in the order of `backends`.
    backends: Vec<Option<ProcessIndex>>,
    links: Vec<RemoteLink>,
    runs: Vec<RemoteRun>,
    /// Whose each graph run is.
    graph_runs: Vec<Option<ProcessIndex>>,
}

impl ProcessEntries {
    pub(super) fn of(trace: &Trace) -> Self {
        Self {
            processes: trace.processes.clone(),
            backends: trace.backends.iter().map(|backend| backend.process).collect(),
            links: trace.remote_links.clone(),
            runs: trace.remote_runs.clone(),
            graph_runs: trace.graph_runs.iter().map(|run| run.process).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub(super) fn take(self, trace: &mut Trace) {
        if !self.is_sound(trace) {
            let damage = || "processes of something that is not there".to_owned();
            trace.lose(LossKind::DamagedHeader, damage);
            return;
        }
        trace.processes = self.processes;
        for (backend, process) in trace.backends.iter_mut().zip(self.backends) {
            backend.process = process;
            if let Some(process) = process {
                let label = trace.processes[usize::from(process.0)].label();
                backend.called = format!("{label} {}", backend.label());
            }
        }
        for (run, process) in trace.graph_runs.iter_mut().zip(self.graph_runs) {
            run.process = process;
        }
        (trace.remote_links, trace.remote_runs) = (self.links, self.runs);
    }

    fn is_sound(&self, trace: &Trace) -> bool {
        let is_process = |process: ProcessIndex| usize::from(process.0) < self.processes.len();
        let is_run = |run: &RemoteRun| {
            let spans = [Some(run.called_ns), Some(run.computed_ns), run.waited_ns];
            is_process(run.server)
                && usize::from(run.backend.0) < trace.backends.len()
                && (run.graph_run.0 as usize) < trace.graph_runs.len()
                && spans.into_iter().flatten().all(|(from, to)| from <= to)
        };
        let are_in_order = |process: &Process| {
            let is_sound = |gap: &Gap| gap.start_ns <= gap.end_ns;
            process.there_ns.is_none_or(|(from, to)| from <= to)
                && process.gaps.iter().all(is_sound)
                && process.gaps.is_sorted_by(|one, next| one.end_ns <= next.start_ns)
        };
        let owners = self.backends.iter().chain(&self.graph_runs);
        owners.flatten().all(|&process| is_process(process))
            && self.processes.iter().all(are_in_order)
            && self.links.iter().all(|link| is_process(link.client) && is_process(link.server))
            && self.runs.iter().all(is_run)
    }
}
