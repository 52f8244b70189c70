//! Where on the timeline a finding can be seen: the event that shows it best. Findings about a phase as a
//! whole have none.

use ggprof_analysis::copies::class_of;
use ggprof_analysis::findings::{CopiedGroup, FirstUse, What};
use ggprof_analysis::{Budget, Divided, Phases};
use ggprof_trace::{Event, EventId, Trace};
use std::collections::HashMap;

pub(super) fn example(
    trace: &Trace,
    phases: &Phases,
    divided: &Divided,
    budget: &Budget,
    what: &What,
) -> Option<Event> {
    let is_inside = |event: &Event| {
        let mut of = budget.phases.iter().filter_map(|&place| phases.phases.get(place as usize));
        of.any(|phase| (phase.start_ns..phase.end_ns).contains(&event.start_ns))
    };
    let copy = |groups| longest_exposed(trace, divided, groups, is_inside);
    match what {
        What::HostOps(it) => it.ops.first().map(|op| trace.events.get(op.example)),
        What::ExposedCopies(it) => copy(&it.copies),
        What::SlowCopies(it) => copy(&it.copies),
        What::CopiedWeights(it) => copy(&it.copies),
        What::FirstUse(it) => first_use(trace, it).filter(is_inside),
        _ => None,
    }
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
            let event = example(&trace, &phases, &divided, budget, &it.what)?;
            Some((it.rule.0, event.start_ns))
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
