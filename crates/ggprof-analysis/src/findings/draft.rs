//! R15: a draft model that takes more time than its tokens save.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use crate::step::Step;
use hashbrown::HashSet;

#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub draft_ns_per_token: u64,
    pub target_step_ns: u64,
    pub tokens_per_step: f64,
}

pub(super) const RULE: Rule = Rule(15);

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let draft_ns = budget.sum(|spent| spent == Spent::OtherRuns);
    if budget.kind != PhaseKind::Generation || draft_ns == 0 {
        return Vec::new();
    }
    let steps = steps_of(scene, budget);
    // Several tokens of one sequence in a batch: those that were drafted, to be checked.
    let checks = |step: &&Step| step.parts.iter().any(|part| part.tokens > 1);
    if steps.iter().copied().filter(checks).count() * 2 < steps.len() {
        return Vec::new();
    }
    let made = made(scene, &steps);
    let step_ns = steps.iter().map(|step| step.end_ns - step.start_ns).sum::<u64>()
        / steps.len().max(1) as u64;
    // Without drafts, each token takes a step of at most this length.
    let cost_ns = budget.wall_ns.saturating_sub(made.saturating_mul(step_ns));
    let what = What::Draft(Draft {
        draft_ns_per_token: draft_ns / made.max(1),
        target_step_ns: step_ns,
        tokens_per_step: made as f64 / steps.len().max(1) as f64,
    });
    let certainty = Certainty::Likely;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

fn steps_of<'s>(scene: &'s Scene<'_>, budget: &Budget) -> Vec<&'s Step> {
    let is_of_it = |step: &&Step| {
        step.runs
            .first()
            .is_some_and(|&run| budget.phases.contains(&scene.phases.phase_of_run[run as usize]))
    };
    scene.phases.steps.iter().filter(is_of_it).collect()
}

/// Tokens that stayed, of the requests that these steps are part of.
fn made(scene: &Scene<'_>, steps: &[&Step]) -> u64 {
    let parts = steps.iter().flat_map(|step| &step.parts);
    let numbers: HashSet<u32> = parts.map(|part| part.request).collect();
    let of_them = scene.phases.requests.iter().filter(|it| numbers.contains(&it.number));
    of_them.map(|request| request.generated.saturating_sub(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::check;

    /// Blocks of two drafted tokens, of which `kept` stay.
    fn speculative(kept: u64) -> String {
        let (mut calls, mut runs, mut ops) = (String::new(), String::new(), String::new());
        calls += "batch 0..10 0:0+100!1\nbatch 10..20 0:0+100!1 context=2\n";
        runs += "run 0..10 batch=0\nrun 10..20 batch=1 scheduler=1\n";
        for block in 0..10 {
            let (start, position) = (100 + block * 1000, 100 + block * (1 + kept));
            calls += &format!("batch {start}..{} 0:{position}+1!1 context=2\n", start + 600);
            calls += &format!("batch {}..{} 0:{position}+3!3\n", start + 600, start + 1000);
            calls += &format!("change {} removed 0 {}\n", start + 1000, position + 1 + kept);
            let (draft, target) = (2 + block * 2, 3 + block * 2);
            runs += &format!("run {start}..{} batch={draft} scheduler=1\n", start + 600);
            runs += &format!("run {}..{} batch={target}\n", start + 600, start + 1000);
            ops += &format!("op GPU MUL_MAT {start}..{} Qcur-0 run={draft}\n", start + 600);
            ops +=
                &format!("op GPU MUL_MAT {}..{} Qcur-0 run={target}\n", start + 600, start + 1000);
        }
        calls + &runs + &ops
    }

    #[test]
    fn drafts_that_save_nothing() {
        let found = check(RULE, &speculative(0), 10_000 - 10 * 400, &speculative(2));
        let What::Draft(Draft { target_step_ns, .. }) = found.what else { panic!() };
        assert_eq!(target_step_ns, 400);
    }
}
