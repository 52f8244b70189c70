//! Divides the time of a phase, step by step down the list of `budget.rs`.

use super::claims::{Claim, Claims, PhaseClaims, Run, claims, is_of_host, within};
use super::free_time::FreeTime;
use super::{Budget, Direction, Divided, Part, Spent};
use crate::gaps::{Gap, gaps};
use crate::layers::Places;
use crate::phases::Phases;
use ggprof_trace::{BackendIndex, EventId, Signature, Trace};

/// A device that does nothing for so long before a kernel's first use waits for the kernel.
const LOADING_NS: u64 = 50_000;

pub(super) fn divide(trace: &Trace, phases: &Phases, places: &Places) -> Divided {
    let mut claims = claims(trace, phases);
    let gaps = gaps(trace);
    let is_whole = |id| trace.op_name(id) == Signature::WHOLE_SPLIT;
    let is_whole: Vec<bool> = trace.nodes.ids().map(is_whole).collect();
    let mut exposed = Vec::new();
    let budgets = phases.phases.iter().enumerate().map(|(place, phase)| {
        let own = &claims.take_phase(trace, place);
        let claims = &claims;
        let span = (phase.start_ns, phase.end_ns);
        let mut division = Division {
            trace,
            places,
            is_whole: &is_whole,
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
        division.compute(claims);
        division.copy(claims, &mut exposed);
        division.spend(Spent::CompilingPipelines, claims.compiling.iter().copied());
        division.spend(Spent::OtherRuns, others(claims, place as u32, span));
        division.call();
        division.spend(Spent::WaitingForDevice, own.waits.iter().copied());
        division.spend(Spent::WaitingForDevice, claims.lone_waits.iter().copied());
        division.schedule(claims);
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
    places: &'a Places,
    /// Whether each node stands for a whole split.
    is_whole: &'a [bool],
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
        let Self { trace, places, is_whole, own, free, budget, .. } = self;
        let is_alone = own.computing.len() == 1;
        for &backend in claims.backends.iter().filter(|it| own.computing.contains(it)) {
            let mut shown =
                Shown { trace, places, is_whole, parts: Default::default(), unequal_ns: 0 };
            let of_it = own.ops.iter().filter(|op| is_alone || op.backend(trace) == backend);
            free.take(of_it.map(|op| op.times(trace)), |event, start, end| {
                shown.op(event, end - start);
            });
            shown.add_to(budget, backend);
        }
    }

    fn copy(&mut self, claims: &Claims, exposed: &mut Vec<(EventId, u64)>) {
        let Self { trace, own, free, budget, span, .. } = self;
        for copies in [&own.copies[..], within(trace, &claims.lone_copies, *span)] {
            free.take(copies.iter().map(|copy| copy.times(trace)), |event, start, end| {
                let op = trace.op_name(trace.events.get(event).node);
                budget.add(Spent::Copying(Direction::of(op)), end - start);
                exposed.push((event, end - start));
            });
        }
    }

    fn call(&mut self) {
        let Self { trace, own, free, budget, .. } = self;
        free.take(own.calls.iter().map(|call| call.times(trace)), |event, start, end| {
            let backend = trace.events.get(event).backend;
            budget.add(Spent::Launching { backend }, end - start);
        });
    }

    /// What is left of graph runs.
    fn schedule(&mut self, claims: &Claims) {
        let Self { trace, own, free, budget, .. } = self;
        let runs = own.runs.iter().map(|run| (run.start_ns, run.end_ns, run));
        // Free time comes by its start, so the next op is never one of those before.
        let mut next = 0;
        free.take(runs, |run: &Run, start, end| {
            next += own.ops[next..].iter().take_while(|op| op.start_ns(trace) < end).count();
            let spent = match claims.is_seen[run.place as usize] {
                true => between_ops(trace, (claims, own), run, next, end - start),
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

/// What goes on in a graph run until an op begins or the run ends.
fn between_ops(
    trace: &Trace,
    (claims, own): (&Claims, &PhaseClaims),
    run: &Run,
    at: usize,
    ns: u64,
) -> Spent {
    let of_run = |op: &&Claim| {
        let event = trace.events.get(op.event);
        event.graph_run.is_some_and(|of| of.0 == run.place)
    };
    let Some(next) = own.ops.get(at).filter(of_run) else { return Spent::Scheduling };
    let event = trace.events.get(next.event);
    let backend = event.backend;
    if !is_of_host(trace, backend) {
        return match claims.is_first_use(next) && ns >= LOADING_NS {
            true => Spent::FirstUse { backend },
            false => Spent::Launching { backend },
        };
    }
    let before = at.checked_sub(1).map(|at| &own.ops[at]).filter(of_run);
    let has_company = trace.events.threads(next.event).is_some_and(|fold| fold.threads > 1);
    let is_same_split = before.is_some_and(|before| {
        let before = trace.events.get(before.event);
        before.backend == backend && before.split == event.split
    });
    if is_same_split && has_company { Spent::Barriers } else { Spent::Scheduling }
}

/// The time of one backend's ops that counts, by part of the model.
struct Shown<'a> {
    trace: &'a Trace,
    places: &'a Places,
    is_whole: &'a [bool],
    parts: [u64; Part::ALL.len()],
    unequal_ns: u64,
}

impl Shown<'_> {
    /// The time of an op that counts, of which the threads may have waited a part.
    fn op(&mut self, event: EventId, ns: u64) {
        let node = self.trace.events.nodes()[event.0 as usize];
        let part = match self.is_whole[node.0 as usize] {
            true => Part::Undivided,
            false => Part::of(self.places.of(event).module),
        };
        let waited_ns = self.waited(event, ns);
        self.unequal_ns += waited_ns;
        self.parts[part as usize] += ns - waited_ns;
    }

    fn add_to(&self, budget: &mut Budget, backend: BackendIndex) {
        budget.add(Spent::UnequalThreads, self.unequal_ns);
        for (part, &ns) in Part::ALL.into_iter().zip(&self.parts) {
            budget.add(Spent::Computing { backend, part }, ns);
        }
    }

    /// How much of a part of an op its threads waited on average; at most all of it.
    fn waited(&self, event: EventId, ns: u64) -> u64 {
        let Some(fold) = self.trace.events.threads(event) else { return 0 };
        let duration_ns = self.trace.events.duration(event);
        let threads = u64::from(fold.threads);
        // Dividing wide numbers takes much longer.
        let narrow = duration_ns.checked_mul(threads).and_then(|all| {
            let idle = all.saturating_sub(fold.busy_sum_ns);
            Some(ns.checked_mul(idle)? / all.max(1))
        });
        narrow.unwrap_or_else(|| {
            let all = u128::from(duration_ns) * u128::from(threads);
            let idle = all.saturating_sub(u128::from(fold.busy_sum_ns));
            (u128::from(ns) * idle / all.max(1)) as u64
        })
    }
}
