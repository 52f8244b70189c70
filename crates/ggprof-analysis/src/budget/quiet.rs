//! Graph runs in which nothing happens but ops of the host, one after the other. Nearly all runs of a
//! program on the CPU are like that, and one walk over its ops divides the time of such a run. What is
//! done to the others, claim by claim, would come to the same.

use super::claims::Run;
use super::op_time::{PartOf, Waiting};
use super::{Budget, ModelPart, Spent, is_of_host};
use ggprof_trace::{
    BackendIndex, EventId, EventKind, GraphRun, GraphRunId, Measured, Stretch, ThreadFold, Trace,
};
use std::ops::Range;

/// Which graph runs may be quiet: nothing else goes on meanwhile.
pub(super) struct QuietRuns {
    /// By their places in the trace.
    is_alone: Vec<bool>,
}

/// What the quiet runs of a phase were spent on.
#[derive(Default)]
pub(super) struct Spending {
    /// When these runs were.
    times: Vec<(u64, u64)>,
    sums: Vec<(Spent, u64)>,
}

/// The same of one run.
struct RunSums {
    parts: [u64; ModelPart::ALL.len()],
    unequal_ns: u64,
    barriers_ns: u64,
    scheduling_ns: u64,
}

impl QuietRuns {
    /// `runs` are all, by start.
    pub(super) fn new(trace: &Trace, runs: &[Run], has_gaps: bool) -> Self {
        let mut is_alone = vec![false; trace.graph_runs.len()];
        let has_copies = trace.events.copies().next().is_some();
        let has_more = !trace.device_work.is_empty() || !trace.host_tasks.is_empty();
        if has_gaps || has_copies || has_more {
            return Self { is_alone };
        }
        let mut latest_ns = 0;
        for (at, run) in runs.iter().enumerate() {
            let next_ns = runs.get(at + 1).map_or(u64::MAX, |next| next.start_ns);
            let end_ns = run.end_ns.max(run.done_ns);
            is_alone[run.place as usize] = latest_ns <= run.start_ns && end_ns <= next_ns;
            latest_ns = latest_ns.max(end_ns);
        }
        Self { is_alone }
    }

    /// Divides a run of a phase if it is quiet; whether it is. All of its events are in these stretches,
    /// by their places.
    pub(super) fn take(
        &self,
        trace: &Trace,
        part_of: &PartOf<'_>,
        phase: (u64, u64),
        run: GraphRunId,
        events: &[(u32, Range<u32>)],
        spending: &mut Spending,
    ) -> bool {
        let is_alone = self.is_alone[run.0 as usize];
        let run = &trace.graph_runs[run.0 as usize];
        let is_within = phase.0 <= run.start_ns && run.end_ns <= phase.1;
        let Some(first) = events.first().filter(|_| is_alone && is_within) else { return false };
        let backend = trace.events.stretch(first.0).backend;
        if !is_of_host(trace, backend) {
            return false;
        }
        let sums = RunSums::of(trace, part_of, run, backend, events);
        if let Some(sums) = &sums {
            spending.add(run, backend, sums);
        }
        sums.is_some()
    }
}

impl RunSums {
    /// `None` if it is not quiet.
    fn of(
        trace: &Trace,
        part_of: &PartOf<'_>,
        run: &GraphRun,
        backend: BackendIndex,
        events: &[(u32, Range<u32>)],
    ) -> Option<Self> {
        let parts = [0; ModelPart::ALL.len()];
        let mut sums = Self { parts, unequal_ns: 0, barriers_ns: 0, scheduling_ns: 0 };
        let mut until_ns = run.start_ns;
        let mut before: Option<&Stretch> = None;
        for (place, ops) in events {
            let stretch = trace.events.stretch(*place);
            let is_op = stretch.kind == EventKind::Op && stretch.backend == backend;
            let measured = trace.events.measured_of(ops.clone());
            if !is_op || measured.contains(&Measured::HostCall) {
                return None;
            }
            let follows = before.is_some_and(|before| before.split == stretch.split);
            until_ns = match trace.events.folds(ops.clone()) {
                Some(folds) => sums.walk(trace, part_of, ops, folds, until_ns, follows)?,
                None => {
                    let none = std::iter::repeat(ThreadFold::default());
                    sums.walk(trace, part_of, ops, none, until_ns, follows)?
                }
            };
            before = Some(stretch);
        }
        sums.scheduling_ns += run.end_ns.checked_sub(until_ns)?;
        Some(sums)
    }

    /// Goes through the ops of a stretch, the first of which may follow one of its split; when the last
    /// one ends. An op without length is none of a quiet run.
    fn walk(
        &mut self,
        trace: &Trace,
        part_of: &PartOf<'_>,
        ops: &Range<u32>,
        folds: impl Iterator<Item = ThreadFold>,
        mut until_ns: u64,
        mut follows: bool,
    ) -> Option<u64> {
        let mut waiting = Waiting::default();
        let nodes = ops.clone().zip(trace.events.nodes_of(ops.clone()));
        let times = trace.events.spans(ops.clone());
        for ((times, (at, node)), fold) in times.zip(nodes).zip(folds) {
            let (start_ns, end_ns) = times;
            let gap_ns = start_ns.checked_sub(until_ns).filter(|_| end_ns > start_ns)?;
            let is_barrier = follows && fold.threads > 1;
            *if is_barrier { &mut self.barriers_ns } else { &mut self.scheduling_ns } += gap_ns;
            let ns = end_ns - start_ns;
            let waited_ns = waiting.of(ns, ns, fold.threads, fold.busy_sum_ns);
            self.unequal_ns += waited_ns;
            self.parts[part_of.op(EventId(at), *node) as usize] += ns - waited_ns;
            (until_ns, follows) = (end_ns, true);
        }
        Some(until_ns)
    }
}

impl Spending {
    fn add(&mut self, run: &GraphRun, backend: BackendIndex, sums: &RunSums) {
        self.times.push((run.start_ns, run.end_ns));
        self.spend(Spent::UnequalThreads, sums.unequal_ns);
        self.spend(Spent::Barriers, sums.barriers_ns);
        self.spend(Spent::Scheduling, sums.scheduling_ns);
        for (part, &ns) in ModelPart::ALL.into_iter().zip(&sums.parts) {
            self.spend(Spent::Computing { backend, part }, ns);
        }
    }

    fn spend(&mut self, spent: Spent, ns: u64) {
        match self.sums.iter_mut().find(|(other, _)| *other == spent) {
            Some((_, sum)) => *sum += ns,
            None => self.sums.push((spent, ns)),
        }
    }

    /// When these runs were, by their starts.
    pub(super) fn times(&self) -> Vec<(u64, u64)> {
        let mut times = self.times.clone();
        times.sort_unstable();
        times
    }

    pub(super) fn add_to(&self, budget: &mut Budget) {
        self.sums.iter().for_each(|&(spent, ns)| budget.add(spent, ns));
    }
}
