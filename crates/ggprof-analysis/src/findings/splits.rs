//! R2: graphs are cut into more splits than there are devices to change between.

use super::copied::is_between_ops;
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use hashbrown::HashSet;

pub(super) const RULE: Rule = Rule(2);

/// Besides one for each device: for the input and for the output.
const USUAL: usize = 2;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let tally = &scene.tallies[place];
    let devices: HashSet<_> = tally.ops.keys().map(|key| key.backend).collect();
    let devices = devices.iter().filter(|&&backend| !scene.is_of_host(backend)).count();
    let per_run = tally.splits as f64 / budget.runs.max(1) as f64;
    if devices == 0 || per_run <= (USUAL + devices) as f64 {
        return Vec::new();
    }
    let copies = scene.copies_of(place).filter(|row| is_between_ops(row));
    let copied_ns: u64 = copies.map(|row| row.exposed_ns).sum();
    let cost_ns = copied_ns + budget.sum(|spent| spent == Spent::Scheduling);
    let what = What::ManySplits { per_run, devices };
    vec![Finding {
        rule: RULE,
        budget: place,
        cost_ns,
        is_estimate: false,
        certainty: Certainty::Likely,
        what,
    }]
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
}
