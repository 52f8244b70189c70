//! R2: graphs are cut into more splits than there are devices to change between.

use super::copied::{CopiedGroup, is_between_ops};
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::copies::TensorClass;
use hashbrown::HashSet;

#[derive(Debug, Clone, PartialEq)]
pub struct ManySplits {
    pub per_run: f64,
    pub devices: usize,
}

pub(super) const RULE: Rule = Rule(2);

/// Besides one for each device: for the input and for the output.
const USUAL: usize = 2;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let tally = &scene.tallies[place];
    let devices: HashSet<_> = tally.ops.keys().map(|key| key.backend).collect();
    let devices = devices.iter().filter(|&&backend| !scene.is_of_host(backend)).count();
    let per_run = tally.splits as f64 / budget.runs.max(1) as f64;
    let too_many = per_run - (USUAL + devices) as f64;
    // The scheduler begins one at each weight that it copies, which another rule tells of.
    let by_others = too_many - copied_weights(scene, place, budget);
    if devices == 0 || too_many <= 0.0 || by_others <= 0.0 {
        return Vec::new();
    }
    let copies = scene.copies_of(place).filter(|row| is_between_ops(row));
    let copied_ns: u64 = copies.map(|row| row.exposed_ns).sum();
    let all_ns = copied_ns + budget.sum(|spent| spent == Spent::Scheduling);
    let cost_ns = (all_ns as f64 * by_others / too_many) as u64;
    let what = What::ManySplits(ManySplits { per_run, devices });
    vec![Finding {
        rule: RULE,
        budget: place,
        cost_ns,
        is_estimate: false,
        certainty: Certainty::Likely,
        what,
    }]
}

/// The part of the scheduler's time that goes to splits which begin at a weight that is copied.
pub(super) fn part_of_weights(scene: &Scene<'_>, place: usize, budget: &Budget) -> f64 {
    let splits = scene.tallies[place].splits.max(1) as f64 / budget.runs.max(1) as f64;
    (copied_weights(scene, place, budget) / splits).min(1.0)
}

/// How many weights are copied for a graph run.
fn copied_weights(scene: &Scene<'_>, place: usize, budget: &Budget) -> f64 {
    let is_weight =
        |row: &&CopiedGroup| matches!(row.class, TensorClass::Weights | TensorClass::Experts);
    let copied = scene.copies_of(place).filter(is_weight).map(|row| row.tensors * row.runs);
    copied.sum::<u64>() as f64 / budget.runs.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, tokens};

    #[test]
    fn a_graph_in_many_pieces() {
        let in_splits = |splits: [u32; 4]| {
            let mut ops = String::new();
            for (at, split) in splits.iter().enumerate() {
                let start = at * 250;
                let end = start + 150;
                ops += &format!("op GPU MUL_MAT {start}..{end} Qcur-{at} run=@ split={split}\n");
                let copied = end + 100;
                ops += &format!("copy GPU D2D {end}..{copied} 64 Qcur-{at} run=@ split={split}\n");
            }
            tokens(3, 1000, 1000, &ops)
        };
        check(RULE, &in_splits([0, 1, 2, 3]), 3 * 400, &in_splits([0, 0, 0, 0]));
    }

    /// Four splits, one of them because of a weight.
    #[test]
    fn splits_that_copied_weights_begin_are_not_counted() {
        let copied = |name: &str| {
            let ops = format!(
                "op GPU ADD 0..100 x-0 run=@ split=0
                 copy GPU D2D 100..200 64 x-0 run=@ split=1
                 op GPU ADD 200..300 x-1 run=@ split=1
                 copy GPU H2D 300..310 64 {name} run=@ split=2
                 op GPU ADD 310..500 x-2 run=@ split=2
                 copy GPU D2D 500..600 64 x-2 run=@ split=3
                 op GPU ADD 600..1000 x-3 run=@ split=3"
            );
            let found = crate::findings::staged::found(&tokens(3, 1000, 1000, &ops));
            found.iter().any(|finding| finding.rule == RULE)
        };
        assert!(copied("ffn_inp-0") && !copied("GPU#blk.0.attn_q.weight#0"));
    }
}
