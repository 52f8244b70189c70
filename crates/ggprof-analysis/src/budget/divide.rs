//! Divides the time of a phase, step by step down the list of `budget.rs`.

use super::claims::{Claim, Claims, PhaseClaims, Run, claims, is_of_host, within};
use super::free_time::FreeTime;
use super::{Budget, Direction, Divided, Part, Spent};
use crate::gaps::{Gap, gaps};
use crate::layers::Place;
use crate::phases::Phases;
use ggprof_trace::{BackendIndex, EventId, Signature, Trace};

/// A device that does nothing for so long before a kernel's first use waits for the kernel.
const LOADING_NS: u64 = 50_000;

pub(super) fn divide(trace: &Trace, phases: &Phases, places: &[Place]) -> Divided {
    let claims = claims(trace, phases);
    let gaps = gaps(trace);
    let all = phases.phases.iter().zip(&claims.phases).enumerate();
    let mut exposed = Vec::new();
    let budgets = all.map(|(place, (phase, own))| {
        let span = (phase.start_ns, phase.end_ns);
        let mut division = Division {
            trace,
            places,
            own,
            span,
            free: FreeTime::new(span),
            budget: Budget {
                label: phase.label(),
                kind: phase.kind,
                phases: vec![place as u32],
                steps: phase.steps,
                runs: phase.runs,
                tokens: phase.tokens,
                wall_ns: phase.wall_ns(),
                rows: Vec::new(),
            },
        };
        division.leave_out(&gaps);
        division.compute(&claims);
        division.copy(&claims, &mut exposed);
        division.spend(Spent::CompilingPipelines, claims.compiling.iter().copied());
        division.spend(Spent::OtherRuns, others(&claims, place as u32, span));
        division.call();
        division.spend(Spent::WaitingForDevice, own.waits.iter().copied());
        division.spend(Spent::WaitingForDevice, claims.lone_waits.iter().copied());
        division.schedule(&claims);
        division.rest()
    });
    Divided { budgets: budgets.collect(), exposed }
}

/// Graph runs of other phases that may reach into a time.
fn others(
    claims: &Claims,
    place: u32,
    (start_ns, end_ns): (u64, u64),
) -> impl Iterator<Item = (u64, u64)> {
    let earliest = start_ns.saturating_sub(claims.longest_run_ns);
    let first = claims.runs.partition_point(|run| run.start_ns < earliest);
    let near = claims.runs[first..].iter().take_while(move |run| run.start_ns < end_ns);
    near.filter(move |run| run.phase != place).map(|run| (run.start_ns, run.done_ns))
}

/// One phase while it is divided.
struct Division<'a> {
    trace: &'a Trace,
    places: &'a [Place],
    own: &'a PhaseClaims,
    span: (u64, u64),
    free: FreeTime,
    budget: Budget,
}

impl Division<'_> {
    fn leave_out(&mut self, gaps: &[Gap]) {
        self.free.take(gaps.iter().map(|gap| (gap.start_ns, gap.end_ns, ())), |(), _, _| {});
    }

    fn spend(&mut self, spent: Spent, times: impl Iterator<Item = (u64, u64)>) {
        let Self { free, budget, .. } = self;
        free.take(times.map(|(start, end)| (start, end, ())), |(), start, end| {
            budget.add(spent, end - start);
        });
    }

    fn compute(&mut self, claims: &Claims) {
        let Self { trace, places, own, free, budget, .. } = self;
        let shown = Shown { trace, places };
        for &backend in &claims.backends {
            let of_it = own.ops.iter().filter(|op| op.backend == backend);
            free.take(of_it.map(times_of), |event, start, end| {
                shown.op(budget, backend, event, end - start);
            });
        }
    }

    fn copy(&mut self, claims: &Claims, exposed: &mut Vec<(EventId, u64)>) {
        let Self { trace, own, free, budget, span, .. } = self;
        for copies in [&own.copies[..], within(&claims.lone_copies, *span)] {
            free.take(copies.iter().map(times_of), |event, start, end| {
                let op = trace.op_name(trace.events.get(event).node);
                budget.add(Spent::Copying(Direction::of(op)), end - start);
                exposed.push((event, end - start));
            });
        }
    }

    fn call(&mut self) {
        let Self { trace, own, free, budget, .. } = self;
        free.take(own.calls.iter().map(times_of), |event, start, end| {
            let backend = trace.events.get(event).backend;
            budget.add(Spent::Launching { backend }, end - start);
        });
    }

    /// What is left of graph runs.
    fn schedule(&mut self, claims: &Claims) {
        let Self { trace, own, free, budget, .. } = self;
        let runs = own.runs.iter().map(|run| (run.start_ns, run.end_ns, run));
        free.take(runs, |run: &Run, start, end| {
            let spent = match claims.is_seen[run.place as usize] {
                true => between_ops(trace, own, run, (start, end)),
                false => Spent::UnseenRun,
            };
            budget.add(spent, end - start);
        });
    }

    fn rest(mut self) -> Budget {
        self.spend(Spent::BuildingGraphs, self.own.batches.iter().copied());
        let rest = if self.own.batches.is_empty() { Spent::BetweenRuns } else { Spent::Program };
        self.budget.add(rest, self.free.total_ns());
        self.budget.finish()
    }
}

fn times_of(claim: &Claim) -> (u64, u64, EventId) {
    (claim.start_ns, claim.end_ns, claim.event)
}

/// What goes on in a graph run until an op begins or the run ends.
fn between_ops(
    trace: &Trace,
    own: &PhaseClaims,
    run: &Run,
    (start_ns, end_ns): (u64, u64),
) -> Spent {
    let at = own.ops.partition_point(|op| op.start_ns < end_ns);
    let of_run = |op: &&Claim| {
        let event = trace.events.get(op.event);
        event.graph_run.is_some_and(|of| of.0 == run.place)
    };
    let Some(next) = own.ops.get(at).filter(of_run) else { return Spent::Scheduling };
    if !is_of_host(trace, next.backend) {
        return match next.is_first_use && end_ns - start_ns >= LOADING_NS {
            true => Spent::FirstUse { backend: next.backend },
            false => Spent::Launching { backend: next.backend },
        };
    }
    let before = at.checked_sub(1).map(|at| &own.ops[at]).filter(of_run);
    let has_company = trace.events.threads(next.event).is_some_and(|fold| fold.threads > 1);
    let is_same_split = before.is_some_and(|before| {
        let split = |op: &Claim| trace.events.get(op.event).split;
        before.backend == next.backend && split(before) == split(next)
    });
    if is_same_split && has_company { Spent::Barriers } else { Spent::Scheduling }
}

struct Shown<'a> {
    trace: &'a Trace,
    places: &'a [Place],
}

impl Shown<'_> {
    /// The time of an op that counts, of which the threads may have waited a part.
    fn op(&self, budget: &mut Budget, backend: BackendIndex, event: EventId, ns: u64) {
        let node = self.trace.events.get(event).node;
        let part = match self.trace.op_name(node) {
            Signature::WHOLE_SPLIT => Part::Undivided,
            _ => Part::of(self.places[event.0 as usize].module),
        };
        let waited_ns = self.waited(event, ns);
        budget.add(Spent::UnequalThreads, waited_ns);
        budget.add(Spent::Computing { backend, part }, ns - waited_ns);
    }

    /// How much of a part of an op its threads waited on average; at most all of it.
    fn waited(&self, event: EventId, ns: u64) -> u64 {
        let Some(fold) = self.trace.events.threads(event) else { return 0 };
        let duration_ns = self.trace.events.duration(event);
        let all = u128::from(duration_ns) * u128::from(fold.threads);
        let idle = all.saturating_sub(u128::from(fold.busy_sum_ns));
        (u128::from(ns) * idle / all.max(1)) as u64
    }
}
