//! Where on the timeline a finding can be seen: from when to when it shows best. Findings about a phase as a
//! whole have no such place.

use ggprof_analysis::copies::class_of;
use ggprof_analysis::findings::{CopiedGroup, FirstUse, What};
use ggprof_analysis::{Budget, Divided, Phases};
use ggprof_trace::{BackendIndex, Event, EventId, Measured, Trace};
use std::cmp::Reverse;
use std::collections::HashMap;

pub(super) fn example(
    trace: &Trace,
    phases: &Phases,
    divided: &Divided,
    budget: &Budget,
    what: &What,
) -> Option<(u64, u64)> {
    let is_inside = |event: &Event| {
        let mut of = budget.phases.iter().filter_map(|&place| phases.phases.get(place as usize));
        of.any(|phase| (phase.start_ns..phase.end_ns).contains(&event.start_ns))
    };
    let copy = |groups| longest_exposed(trace, divided, groups, is_inside);
    let event = match what {
        What::Program(it) => return if_any(it.longest),
        What::PromptAgain(it) => return if_any(it.longest),
        What::SmallKernels(it) => {
            return longest_pause(trace, it.backend, is_inside).and_then(if_any);
        }
        What::GraphsOff(it) => {
            return longest_pause(trace, it.backend, is_inside).and_then(if_any);
        }
        What::Barriers(_) | What::UnequalThreads(_) | What::TooManyThreads(_) => {
            most_waited(trace, is_inside)
        }
        What::HostOps(it) => it.ops.first().map(|op| trace.events.get(op.example)),
        What::ExposedCopies(it) => copy(&it.copies),
        What::SlowCopies(it) => copy(&it.copies),
        What::CopiedWeights(it) => copy(&it.copies),
        What::FirstUse(it) => first_use(trace, it).filter(is_inside),
        _ => None,
    };
    event.map(|event| (event.start_ns, event.end_ns()))
}

/// Where nothing lasts, there is nothing to see.
fn if_any(span: (u64, u64)) -> Option<(u64, u64)> {
    Some(span).filter(|(start_ns, end_ns)| start_ns < end_ns)
}

/// The longest time that a device had nothing to do between two ops of a graph run.
fn longest_pause(
    trace: &Trace,
    backend: BackendIndex,
    is_inside: impl Fn(&Event) -> bool,
) -> Option<(u64, u64)> {
    let is_timed = |event: &Event| {
        event.backend == backend && event.is_op() && event.measured == Measured::Device
    };
    let timed = trace.events.iter().filter(|event| is_timed(event) && is_inside(event));
    let mut ops: Vec<Event> = timed.collect();
    ops.sort_by_key(|op| (op.graph_run, op.start_ns));
    let runs = ops.chunk_by(|one, next| one.graph_run == next.graph_run);
    let pauses = runs.flat_map(|ops| {
        ops.windows(2).map(|pair| (pair[0].end_ns(), pair[1].start_ns.max(pair[0].end_ns())))
    });
    pauses.max_by_key(|(end_ns, start_ns)| (start_ns - end_ns, Reverse(*end_ns)))
}

/// The op whose threads waited most for each other.
fn most_waited(trace: &Trace, is_inside: impl Fn(&Event) -> bool) -> Option<Event> {
    let waited = |event: &Event| trace.events.threads(event.id).map_or(0, |it| it.wait_sum_ns);
    let inside = trace.events.iter().filter(|event| event.is_op() && is_inside(event));
    inside.max_by_key(|event| (waited(event), Reverse(event.id))).filter(|it| waited(it) > 0)
}

/// Of the copies that a finding is about, the one that most of the time was spent on.
fn longest_exposed(
    trace: &Trace,
    divided: &Divided,
    groups: &[CopiedGroup],
    is_inside: impl Fn(&Event) -> bool,
) -> Option<Event> {
    let mut pieces: HashMap<EventId, u64> = HashMap::new();
    divided.exposed.iter().for_each(|(copy, ns)| *pieces.entry(*copy).or_default() += ns);
    let is_meant = |copy: &Event| {
        let (class, direction) = (class_of(trace, copy), trace.direction(copy.node));
        let of = |group: &CopiedGroup| (group.class, group.direction, group.backend);
        is_inside(copy) && groups.iter().any(|group| of(group) == (class, direction, copy.backend))
    };
    let copies = pieces.into_iter().map(|(id, ns)| (ns, trace.events.get(id)));
    let longest = copies.filter(|(_, copy)| is_meant(copy)).max_by_key(|(ns, copy)| (*ns, copy.id));
    longest.map(|(_, copy)| copy)
}

/// What the kernel that took longest to load was first used for.
fn first_use(trace: &Trace, found: &FirstUse) -> Option<Event> {
    let (kernel, _) = found.longest_wait.or(found.slowest)?;
    let uses = trace.device_work.iter().filter(|work| work.name == kernel);
    uses.min_by_key(|work| work.start_ns).map(|work| trace.events.get(work.event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_analysis::{NodeSums, divided, explained, phases, places};
    use ggprof_trace::text_fixture;

    /// The examples of all findings, by their start.
    fn examples(text: &str) -> Vec<(u8, u64)> {
        let trace = text_fixture::parse(text);
        let (phases, places) = (phases(&trace), places(&trace));
        let sums = NodeSums::by_budget(&trace, &phases);
        let divided = divided(&trace, &phases, &places);
        let found = explained(&trace, &phases, &places, &sums, &divided, None);
        let examples = found.findings.iter().filter_map(|it| {
            let budget = &found.budgets[it.budget];
            let (start_ns, _) = example(&trace, &phases, &divided, budget, &it.what)?;
            Some((it.rule.0, start_ns))
        });
        examples.collect()
    }

    #[test]
    fn a_finding_of_copies_leads_to_the_longest_of_them() {
        let found = examples(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             memory c CPU compute host
             memory d GPU compute device
             batch 0..1000 0:3+1!1
             run 0..1000 batch=0
             copy GPU H2D 0..100 64 ffn_out-0 run=0 measured=device
             ends c d
             copy GPU H2D 200..700 64 ffn_out-1 run=0 measured=device
             ends c d
             op GPU MUL_MAT 700..1000 Qcur-2 f32[8] <- q4_0[32,8] f32[32] run=0",
        );
        assert!(found.contains(&(3, 200)), "{found:?}");
    }

    #[test]
    fn a_slow_program_leads_to_its_longest_time_between_tokens() {
        let found = examples(
            "backend 1 CPU cpu
             batch 0..100 0:3+1!1
             batch 300..400 0:4+1!1
             batch 900..1000 0:5+1!1
             run 0..100 batch=0
             run 300..400 batch=1
             run 900..1000 batch=2
             op CPU MUL_MAT 0..100 Qcur-0 run=0
             op CPU MUL_MAT 300..400 Qcur-0 run=1
             op CPU MUL_MAT 900..1000 Qcur-0 run=2",
        );
        assert!(found.contains(&(6, 400)), "{found:?}");
    }

    #[test]
    fn pauses_and_waits_lead_to_the_longest() {
        let trace = text_fixture::parse(
            "backend 0 CUDA0 gpu
             backend 1 CPU cpu
             run 0..1000
             run 1000..2000
             op CUDA0 ADD 0..100 a-0 run=0 measured=device
             op CUDA0 ADD 150..200 a-0 run=0 measured=device
             op CPU ADD 200..300 a-0 run=0 threads=2:100:50:90
             op CPU ADD 300..400 b-0 run=0 threads=2:10:10:190
             op CUDA0 ADD 1500..1600 a-0 run=1 measured=device
             op CUDA0 ADD 1680..1700 a-0 run=1 measured=device",
        );
        assert_eq!(longest_pause(&trace, BackendIndex(0), |_| true), Some((1600, 1680)));
        let waited = most_waited(&trace, |_| true).map(|op| op.start_ns);
        assert_eq!(waited, Some(300));
    }

    #[test]
    fn a_kernel_that_was_loaded_leads_to_its_first_op() {
        let found = examples(
            "backend 0 GPU gpu
             batch 0..90000000 0:3+1!1
             run 0..90000000 batch=0
             op GPU MUL_MAT 100..200 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 measured=device
             kernel a 100..200
             op GPU ADD 50000000..50000100 l_out-0 f32[8] <- f32[8] run=0 measured=device
             kernel b 50000000..50000100
             op GPU ADD 50000200..50000300 l_out-1 f32[8] <- f32[8] run=0 measured=device
             kernel b 50000200..50000300",
        );
        assert!(found.contains(&(17, 50_000_000)), "{found:?}");
    }
}
