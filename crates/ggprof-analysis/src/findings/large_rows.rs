//! R25: a large part of a phase in which nothing computes, and of which no other rule tells. What it is can be
//! said, and what such time usually goes to; how much of it can be saved cannot.

use super::not_seen::is_seen;
use super::scene::Scene;
use super::{
    Certainty, Finding, Rule, What, copied_weights, exposed_copies, first_use, host_ops, launches,
    program, remote, slow_copies, slower_device, splits, threads, throttled,
};
use crate::budget::{Budget, Spent};
use ggprof_trace::BackendIndex;

#[derive(Debug, Clone, PartialEq)]
pub struct LargeRow {
    pub spent: Spent,
    /// A device computes in the phase, besides the host.
    pub has_device: bool,
    pub splits_per_run: f64,
}

pub(super) const RULE: Rule = Rule(25);

/// Of the phase's wall time.
const LEAST: f64 = 0.1;
/// A finding that costs this part of it tells of a row.
const COVERED: f64 = 0.5;

/// `others` is what was found in the same phase.
pub(super) fn find(
    scene: &Scene<'_>,
    place: usize,
    budget: &Budget,
    others: &[&Finding],
) -> Vec<Finding> {
    let devices: Vec<BackendIndex> = scene.devices_of(budget).collect();
    let is_of_device =
        |spent| matches!(spent, Spent::Computing { backend, .. } if devices.contains(&backend));
    let has_device = budget.sum(is_of_device) > 0;
    let splits_per_run = scene.tallies[place].splits as f64 / budget.runs.max(1) as f64;
    let finding = |(spent, ns): (Spent, u64)| Finding {
        rule: RULE,
        budget: place,
        cost_ns: ns,
        is_estimate: true,
        certainty: Certainty::Possible,
        what: What::LargeRow(LargeRow { spent, has_device, splits_per_run }),
    };
    let rows = budget.rows.iter().map(|row| (row.spent, row.ns));
    let large = rows.filter(|(_, ns)| budget.share(*ns) >= LEAST);
    let left = large.filter(|(spent, ns)| {
        let Some(rules) = told_by(*spent) else { return false };
        let is_large = |it: &Finding| it.cost_ns as f64 >= COVERED * *ns as f64;
        !others.iter().any(|it| rules.contains(&it.rule) && is_large(it))
    });
    left.filter(|(spent, _)| is_known(scene, budget, *spent)).map(finding).collect()
}

/// The rules that tell what such time goes to; `None` where something computes, or nobody knows.
fn told_by(spent: Spent) -> Option<&'static [Rule]> {
    let rules: &[Rule] = match spent {
        Spent::Launching { .. } | Spent::Scheduling => &[
            host_ops::RULE,
            splits::RULE,
            copied_weights::RULE,
            launches::SMALL_KERNELS,
            launches::GRAPHS_OFF,
            remote::ROUND_TRIPS,
            remote::SENT_AGAIN,
            slower_device::RULE,
        ],
        Spent::Barriers | Spent::UnequalThreads => &[
            threads::BARRIERS,
            threads::UNEQUAL,
            threads::TOO_MANY,
            throttled::RULE,
            host_ops::RULE,
            slower_device::RULE,
        ],
        Spent::Copying(_) => &[
            exposed_copies::RULE,
            slow_copies::RULE,
            copied_weights::RULE,
            host_ops::RULE,
            remote::ROUND_TRIPS,
        ],
        Spent::CompilingPipelines | Spent::FirstUse { .. } => &[first_use::RULE],
        Spent::Program | Spent::BetweenRuns => &[program::RULE],
        Spent::BuildingGraphs => &[],
        Spent::Computing { .. } | Spent::OtherRuns | Spent::WaitingForDevice | Spent::UnseenRun => {
            return None;
        }
    };
    Some(rules)
}

/// Beside a device of which only calls are known, nobody knows whether it computes meanwhile.
fn is_known(scene: &Scene<'_>, budget: &Budget, spent: Spent) -> bool {
    match spent {
        Spent::Launching { .. } | Spent::Scheduling => {
            let process = scene.process_of(budget);
            let all = (0..scene.trace.backends.len() as u16).map(BackendIndex);
            let mut own = all.filter(|&it| scene.trace.backend(it).process == process);
            own.all(|backend| is_seen(scene, backend))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, found, tokens};

    /// Four kernels a token with time between them: too few for the rules of small kernels.
    #[test]
    fn a_device_that_waits_for_no_reason_that_is_known() {
        let every = |ns: u64| {
            let op = |at: u64| {
                let (start, end) = (at * ns, at * ns + 100);
                format!("op GPU MUL_MAT {start}..{end} Qcur-{at} run=@ split=0 measured=device\n")
            };
            let ops: String = (0..4).map(op).collect();
            tokens(3, 4 * ns, 4 * ns, &ops)
        };
        let found = check(RULE, &every(200), 3 * 3 * 100, &every(103));
        let launching = Spent::Launching { backend: BackendIndex(0) };
        let What::LargeRow(found) = found.what else { panic!() };
        assert_eq!((found.spent, found.has_device), (launching, true));
    }

    /// A pause between tokens is R6's, and one between prompts nobody's.
    #[test]
    fn what_another_rule_tells_is_told_once() {
        let op = "op CPU MUL_MAT 0..600 Qcur-0 run=@ measured=host";
        let rules = |text: &str| found(text).iter().map(|it| it.rule.0).collect::<Vec<_>>();
        assert_eq!(rules(&tokens(4, 1000, 600, op)), [6]);
        let prompts = "batch 0..600 0:0+64\nbatch 1000..1600 0:64+64!1\n\
                       run 0..600 batch=0\nrun 1000..1600 batch=1\n\
                       op CPU MUL_MAT 0..600 Qcur-0 run=0\nop CPU MUL_MAT 1000..1600 Qcur-0 run=1";
        assert_eq!(rules(prompts), [25]);
    }

    /// Of the device, only the calls are known.
    #[test]
    fn time_beside_a_device_that_is_not_seen_is_not_explained() {
        let ops = "op GPU SPLIT 0..100 - run=@ measured=host_call
                   op CPU ADD 900..1000 x-0 run=@ split=1";
        let found = found(&tokens(3, 1000, 1000, ops));
        assert!(found.iter().all(|finding| finding.rule != RULE), "{found:?}");
    }
}
