//! R6: the program itself, between two calls: sampling, grammar, text, network.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use crate::step::Step;

#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub per_token_ns: u64,
    /// When the longest time between two computations began and ended.
    pub longest: (u64, u64),
    pub is_guess: bool,
}

pub(super) const RULE: Rule = Rule(6);

/// Of the phase's wall time.
const LEAST: f64 = 0.1;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    if !matches!(budget.kind, PhaseKind::Generation | PhaseKind::Mixed) {
        return Vec::new();
    }
    let known_ns = budget.sum(|spent| spent == Spent::Program);
    let guessed_ns = budget.sum(|spent| spent == Spent::BetweenRuns);
    let cost_ns = known_ns + guessed_ns;
    if budget.share(cost_ns) < LEAST {
        return Vec::new();
    }
    let what = What::Program(Program {
        per_token_ns: cost_ns / budget.units(),
        longest: longest(scene, budget),
        is_guess: guessed_ns > 0,
    });
    let certainty = if guessed_ns > 0 { Certainty::Possible } else { Certainty::Certain };
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: false, certainty, what }]
}

/// From the results of one step to the begin of the next.
fn longest(scene: &Scene<'_>, budget: &Budget) -> (u64, u64) {
    let spans: Vec<(u64, u64)> = budget
        .phases
        .iter()
        .map(|&phase| &scene.phases.phases[phase as usize])
        .map(|phase| (phase.start_ns, phase.end_ns))
        .collect();
    let process = scene.process_of(budget);
    let steps: Vec<&Step> =
        scene.phases.steps.iter().filter(|step| step.process == process).collect();
    let pairs = steps.windows(2);
    let between = pairs.filter(|pair| {
        let (end_ns, start_ns) = (pair[0].end_ns, pair[1].start_ns);
        let is_inside = |&(start, end): &(u64, u64)| end_ns > start && start_ns < end;
        pair[0].stream == pair[1].stream && spans.iter().any(is_inside)
    });
    let between = between.map(|pair| (pair[0].end_ns, pair[1].start_ns.max(pair[0].end_ns)));
    between.max_by_key(|(end_ns, start_ns)| start_ns - end_ns).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, tokens};

    #[test]
    fn a_program_that_sleeps_between_tokens() {
        let op = "op CPU MUL_MAT 0..600 Qcur-0 run=@ measured=host";
        let found = check(RULE, &tokens(4, 1000, 600, op), 3 * 400, &tokens(4, 650, 600, op));
        assert_eq!(
            found.what,
            What::Program(Program { per_token_ns: 300, longest: (2600, 3000), is_guess: false })
        );
    }
}
