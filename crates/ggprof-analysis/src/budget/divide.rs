//! Divides the time of a phase, step by step down the list of `budget.rs`.

use super::claims::{Claim, Claims, LoneTime, PhaseClaims, Run, claims, within};
use super::free_time::FreeTime;
use super::op_time::{PartOf, Waiting};
use super::quiet::{QuietRuns, Spending};
use super::{Budget, Divided, ModelPart, Spent};
use crate::first_uses::LOADING_NS;
use crate::gaps::Gaps;
use crate::layers::Places;
use crate::phases::Phases;
use ggprof_trace::{BackendIndex, EventId, Gap, ProcessIndex, Stretch, Trace};

pub(super) fn divide(trace: &Trace, phases: &Phases, places: &Places) -> Divided {
    let mut claims = claims(trace, phases);
    let gaps = Gaps::of(trace);
    let part_of = PartOf::new(trace, places);
    let quiet = QuietRuns::new(trace, &claims.runs, !gaps.are_none());
    let mut exposed = Vec::new();
    let budgets = phases.phases.iter().enumerate().map(|(place, phase)| {
        let span = (phase.start_ns, phase.end_ns);
        let mut spending = Spending::default();
        let own = &claims.take_phase(trace, place, |run, events| {
            quiet.take(trace, &part_of, span, run, events, &mut spending)
        });
        let claims = &claims;
        let process = phase.process;
        let lone = |times: &'_ [LoneTime]| -> Vec<(u64, u64)> {
            let own = times.iter().filter(|it| it.may_be_of(process));
            own.map(|it| (it.start_ns, it.end_ns)).collect()
        };
        let mut division = Division {
            trace,
            process,
            part_of: &part_of,
            own,
            span,
            free: FreeTime::new(span),
            budget: Budget {
                label: phases.label_among(trace, phase),
                kind: phase.kind,
                phases: vec![place as u32],
                steps: phase.steps,
                runs: phase.runs,
                tokens: phase.tokens,
                wall_ns: phase.wall_ns(),
                rows: Vec::new(),
            },
        };
        division.leave_out(gaps.of_process(process));
        division.take_quiet(&spending);
        division.compute(claims);
        division.copy(claims, &mut exposed);
        division.spend(Spent::CompilingPipelines, lone(&claims.compiling).into_iter());
        division.spend(Spent::OtherRuns, others(claims, place as u32, process, span));
        division.call();
        division.spend(Spent::WaitingForDevice, own.waits.iter().copied());
        division.spend(Spent::WaitingForDevice, lone(&claims.lone_waits).into_iter());
        division.schedule(claims);
        division.rest()
    });
    Divided { budgets: budgets.collect(), exposed }
}

/// Graph runs of the process's other phases that may reach into a time.
fn others(
    claims: &Claims,
    place: u32,
    process: Option<ProcessIndex>,
    (start_ns, end_ns): (u64, u64),
) -> impl Iterator<Item = (u64, u64)> {
    let earliest = start_ns.saturating_sub(claims.longest_run_ns);
    let first = claims.runs.partition_point(|run| run.start_ns < earliest);
    let near = claims.runs[first..].iter().take_while(move |run| run.start_ns < end_ns);
    let others = near.filter(move |run| run.phase != place && run.process == process);
    others.map(|run| (run.start_ns, run.done_ns))
}

/// One phase while it is divided.
struct Division<'a> {
    trace: &'a Trace,
    process: Option<ProcessIndex>,
    part_of: &'a PartOf<'a>,
    own: &'a PhaseClaims,
    span: (u64, u64),
    free: FreeTime,
    budget: Budget,
}

impl Division<'_> {
    fn leave_out(&mut self, gaps: &[Gap]) {
        self.free.take(gaps.iter().map(|gap| (gap.start_ns, gap.end_ns, ())), |(), _, _| {});
    }

    fn take_quiet(&mut self, spending: &Spending) {
        let times = spending.times().into_iter().map(|(start, end)| (start, end, ()));
        self.free.take(times, |(), _, _| {});
        spending.add_to(&mut self.budget);
    }

    fn spend(&mut self, spent: Spent, times: impl Iterator<Item = (u64, u64)>) {
        let Self { free, budget, .. } = self;
        free.take(times.map(|(start, end)| (start, end, ())), |(), start, end| {
            budget.add(spent, end - start);
        });
    }

    fn compute(&mut self, claims: &Claims) {
        let Self { trace, part_of, own, free, budget, .. } = self;
        let is_alone = own.computing.len() == 1;
        for &backend in claims.backends.iter().filter(|it| own.computing.contains(it)) {
            let (waiting, parts) = (Waiting::default(), Default::default());
            let mut shown = Shown { trace, part_of, waiting, parts, unequal_ns: 0 };
            let of_it = own.ops.iter().filter(|op| is_alone || op.backend(trace) == backend);
            let loading = of_it.clone().map(|op| claims.loading(trace, op));
            let loading = loading.filter(|(start, end)| end > start);
            free.take(loading.map(|(start, end)| (start, end, ())), |(), start, end| {
                budget.add(Spent::FirstUse { backend }, end - start);
            });
            free.take(of_it.map(|op| op.times(trace)), |event, start, end| {
                shown.op(event, end - start);
            });
            shown.add_to(budget, backend);
        }
    }

    fn copy(&mut self, claims: &Claims, exposed: &mut Vec<(EventId, u64)>) {
        let Self { trace, process, own, free, budget, span, .. } = self;
        let is_its = |copy: &&Claim| trace.backend(copy.backend(trace)).process == *process;
        let lone = within(trace, &claims.lone_copies, *span).iter();
        let lone: Vec<Claim> = lone.filter(is_its).copied().collect();
        for copies in [&own.copies, &lone] {
            free.take(copies.iter().map(|copy| copy.times(trace)), |event, start, end| {
                let direction = trace.direction(trace.events.get(event).node);
                budget.add(Spent::Copying(direction), end - start);
                exposed.push((event, end - start));
            });
        }
    }

    fn call(&mut self) {
        let Self { trace, own, free, budget, .. } = self;
        free.take(own.calls.iter().map(|call| call.times(trace)), |event, start, end| {
            let backend = trace.events.stretch_of(event).backend;
            budget.add(Spent::Launching { backend }, end - start);
        });
    }

    /// What is left of graph runs.
    fn schedule(&mut self, claims: &Claims) {
        let Self { trace, own, free, budget, .. } = self;
        let runs = own.runs.iter().map(|run| (run.start_ns, run.end_ns, run));
        // Free time comes by its start, so the next op is never one of those before.
        let starts = |at: usize| own.ops.get(at).map_or(u64::MAX, |op| op.start_ns(trace));
        let (mut next, mut next_ns) = (0, starts(0));
        let mut sum = Repeated::default();
        free.take(runs, |run: &Run, start, end| {
            while next_ns < end {
                next += 1;
                next_ns = starts(next);
            }
            let spent = match claims.is_seen[run.place as usize] {
                true => between_ops(trace, (claims, own), run, next, end - start),
                false => Spent::UnseenRun,
            };
            sum.add(budget, spent, end - start);
        });
        sum.add_to(budget);
    }

    fn rest(mut self) -> Budget {
        self.spend(Spent::BuildingGraphs, self.own.batches.iter().copied());
        let rest = if self.own.batches.is_empty() { Spent::BetweenRuns } else { Spent::Program };
        self.budget.add(rest, self.free.total_ns());
        self.budget.finish()
    }
}

/// What was spent on one thing again and again, on its way into a budget.
#[derive(Default)]
struct Repeated(Option<(Spent, u64)>);

impl Repeated {
    #[inline]
    fn add(&mut self, budget: &mut Budget, spent: Spent, ns: u64) {
        match &mut self.0 {
            Some((same, sum)) if *same == spent => *sum += ns,
            other => {
                let before = other.replace((spent, ns));
                Self(before).add_to(budget);
            }
        }
    }

    fn add_to(self, budget: &mut Budget) {
        if let Some((spent, ns)) = self.0 {
            budget.add(spent, ns);
        }
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
    let Some(next) = own.ops.get(at) else { return Spent::Scheduling };
    let stretch = trace.events.stretch(next.stretch);
    if stretch.graph_run.is_none_or(|of| of.0 != run.place) {
        return Spent::Scheduling;
    }
    let backend = stretch.backend;
    if !claims.is_of_host[usize::from(backend.0)] {
        return match claims.is_first_use(next) && ns >= LOADING_NS {
            true => Spent::FirstUse { backend },
            false => Spent::Launching { backend },
        };
    }
    let has_company = trace.events.busy_threads(next.event).is_some_and(|(threads, _)| threads > 1);
    let is_same_split = at.checked_sub(1).is_some_and(|before| {
        let before = own.ops[before].stretch;
        let key = |it: &Stretch| (it.graph_run, it.backend, it.split);
        before == next.stretch || key(trace.events.stretch(before)) == key(stretch)
    });
    if is_same_split && has_company { Spent::Barriers } else { Spent::Scheduling }
}

/// The time of one backend's ops that counts, by part of the model.
struct Shown<'a> {
    trace: &'a Trace,
    part_of: &'a PartOf<'a>,
    waiting: Waiting,
    parts: [u64; ModelPart::ALL.len()],
    unequal_ns: u64,
}

impl Shown<'_> {
    /// The time of an op that counts, of which the threads may have waited a part.
    #[inline]
    fn op(&mut self, event: EventId, ns: u64) {
        let events = &self.trace.events;
        let part = self.part_of.op(event, events.nodes()[event.0 as usize]);
        let (threads, busy_ns) = events.busy_threads(event).unwrap_or_default();
        let waited_ns = self.waiting.of(events.duration(event), ns, threads, busy_ns);
        self.unequal_ns += waited_ns;
        self.parts[part as usize] += ns - waited_ns;
    }

    fn add_to(&self, budget: &mut Budget, backend: BackendIndex) {
        budget.add(Spent::UnequalThreads, self.unequal_ns);
        for (part, &ns) in ModelPart::ALL.into_iter().zip(&self.parts) {
            budget.add(Spent::Computing { backend, part }, ns);
        }
    }
}
