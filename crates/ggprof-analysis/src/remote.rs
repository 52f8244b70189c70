//! What was left to servers: of each step, how much went to preparing it, to the network, to computing,
//! and to waiting.

use crate::phases::{PhaseKind, Phases};
use ggprof_trace::{BackendIndex, ProcessIndex, RemoteRun, Trace};
use hashbrown::HashMap;
use std::ops::AddAssign;

/// The time of steps that one server computed, from the client's call until it had what the step is
/// for. The parts add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTime {
    pub steps: u64,
    /// The client turns graphs into bytes and hands them over.
    pub serialising_ns: u64,
    /// Bytes are under way, there and back, and are read.
    pub wire_ns: u64,
    /// The server computes.
    pub computing_ns: u64,
    /// The server is busy with an earlier step, or the client does not ask for the result yet.
    pub waiting_ns: u64,
}

impl StepTime {
    pub fn total_ns(&self) -> u64 {
        let parts = [self.serialising_ns, self.wire_ns, self.computing_ns, self.waiting_ns];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl AddAssign for StepTime {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        for (sum, part) in [
            (&mut self.serialising_ns, other.serialising_ns),
            (&mut self.wire_ns, other.wire_ns),
            (&mut self.computing_ns, other.computing_ns),
            (&mut self.waiting_ns, other.waiting_ns),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}

/// What one server did in the phases of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRow {
    pub phase: PhaseKind,
    pub server: ProcessIndex,
    /// The client's backend that stands for it.
    pub backend: BackendIndex,
    pub time: StepTime,
    /// All tokens of these phases of the client.
    pub tokens: u64,
}

/// By phase in the order of time, and by server in the order of the trace.
pub fn remote(trace: &Trace, phases: &Phases) -> Vec<RemoteRow> {
    let mut times: HashMap<(PhaseKind, ProcessIndex, BackendIndex), StepTime> = HashMap::new();
    let mut order = Vec::new();
    for (run, time) in trace.remote_runs.iter().zip(step_times(&trace.remote_runs)) {
        let key = (phases.kind_of_run(Some(run.graph_run)), run.server, run.backend);
        *times.entry(key).or_insert_with(|| {
            order.push(key);
            StepTime::default()
        }) += time;
    }
    let row = |&(phase, server, backend): &(PhaseKind, ProcessIndex, BackendIndex)| RemoteRow {
        phase,
        server,
        backend,
        time: times[&(phase, server, backend)],
        tokens: phases.tokens_of(trace.backend(backend).process, phase),
    };
    let first = |kind: PhaseKind| order.iter().position(|(other, ..)| *other == kind);
    let mut keys = order.clone();
    keys.sort_by_key(|&(phase, server, backend)| (first(phase), server, backend));
    keys.iter().map(row).collect()
}

/// The server that computes longest in the phases of a kind, if there are several.
pub fn slowest(rows: &[RemoteRow], kind: PhaseKind) -> Option<&RemoteRow> {
    let of_kind: Vec<&RemoteRow> = rows.iter().filter(|row| row.phase == kind).collect();
    let most = of_kind.iter().max_by_key(|row| row.time.computing_ns);
    let are_several = of_kind.iter().any(|row| row.server != of_kind[0].server);
    most.copied().filter(|_| are_several)
}

/// One for each run, by the start of the client's call.
pub fn step_times(runs: &[RemoteRun]) -> Vec<StepTime> {
    let mut busy_until: HashMap<ProcessIndex, u64> = HashMap::new();
    let mut times = Vec::with_capacity(runs.len());
    for run in runs {
        let before_ns = busy_until.insert(run.server, run.computed_ns.1).unwrap_or(0);
        times.push(step_time(run, before_ns));
    }
    times
}

/// A step of a server that was busy until then.
fn step_time(run: &RemoteRun, busy_until_ns: u64) -> StepTime {
    let (called_ns, returned_ns) = run.called_ns;
    // Clocks that do not agree must not make a part negative.
    let began_ns = run.computed_ns.0.max(called_ns);
    let ended_ns = run.computed_ns.1.max(began_ns);
    let handed_ns = returned_ns.clamp(called_ns, began_ns);
    let free_ns = busy_until_ns.clamp(handed_ns, began_ns);
    let (asked_ns, had_ns) = run.waited_ns.unwrap_or((ended_ns, ended_ns));
    let had_ns = had_ns.max(ended_ns);
    let asked_ns = asked_ns.clamp(ended_ns, had_ns);
    StepTime {
        steps: 1,
        serialising_ns: handed_ns - called_ns,
        wire_ns: (began_ns - free_ns) + (had_ns - asked_ns),
        computing_ns: ended_ns - began_ns,
        waiting_ns: (free_ns - handed_ns) + (asked_ns - ended_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::GraphRunId;

    fn run(called: (u64, u64), computed: (u64, u64), waited: Option<(u64, u64)>) -> RemoteRun {
        RemoteRun {
            graph_run: GraphRunId(0),
            split: 0,
            backend: BackendIndex(0),
            server: ProcessIndex(1),
            called_ns: called,
            computed_ns: computed,
            waited_ns: waited,
        }
    }

    #[test]
    fn the_parts_of_a_step_add_up() {
        let runs = [
            // Handed over until 10, computed from 15 on, asked for at once.
            run((0, 10), (15, 50), Some((12, 60))),
            // The call returns after the server began; the client asks late.
            run((60, 75), (70, 100), Some((130, 140))),
            // The server is still busy until 100.
            run((80, 90), (105, 120), None),
        ];
        let times = step_times(&runs);
        let shown = |time: &StepTime| {
            (time.serialising_ns, time.wire_ns, time.computing_ns, time.waiting_ns)
        };
        assert_eq!(shown(&times[0]), (10, 5 + 10, 35, 0));
        assert_eq!(shown(&times[1]), (10, 10, 30, 30));
        assert_eq!(shown(&times[2]), (10, 5, 15, 10));
        let totals: Vec<u64> = times.iter().map(StepTime::total_ns).collect();
        assert_eq!(totals, [60, 80, 40]);
    }

    #[test]
    fn numbers_of_damaged_files_do_no_harm() {
        let mut sum = step_times(&[run((0, 0), (0, u64::MAX), None)])[0];
        sum += sum;
        sum.wire_ns = 1;
        assert_eq!((sum.computing_ns, sum.total_ns()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn clocks_that_disagree_make_nothing_negative() {
        let time = step_times(&[run((100, 110), (50, 60), Some((0, 20)))])[0];
        assert_eq!(time.total_ns(), 0);
    }
}
