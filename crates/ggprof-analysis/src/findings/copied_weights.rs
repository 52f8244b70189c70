//! R5: weights that are copied to a device again for every graph run.

use super::copied::CopiedGroup;
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::copies::TensorClass;
use ggprof_trace::CopyDirection;

#[derive(Debug, Clone, PartialEq)]
pub struct CopiedWeights {
    pub copies: Vec<CopiedGroup>,
    pub bytes_per_run: u64,
    pub gb_per_s: Option<f64>,
}

pub(super) const RULE: Rule = Rule(5);

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let is_again = |row: &&CopiedGroup| {
        matches!(row.class, TensorClass::Weights | TensorClass::Experts)
            && row.direction != CopyDirection::DeviceToHost
            && (row.runs > 1 || row.runs == budget.runs)
            && row.exposed_ns > 0
    };
    let copies: Vec<CopiedGroup> = scene.copies_of(place).filter(is_again).cloned().collect();
    if copies.is_empty() {
        return Vec::new();
    }
    let (bytes, ns) =
        copies.iter().fold((0, 0), |(bytes, ns), row| (bytes + row.large.0, ns + row.large.1));
    let what = What::CopiedWeights(CopiedWeights {
        bytes_per_run: copies.iter().map(|row| row.bytes).sum::<u64>() / budget.runs.max(1),
        gb_per_s: (ns > 0).then(|| bytes as f64 / ns as f64),
        copies: copies.clone(),
    });
    vec![Finding {
        rule: RULE,
        budget: place,
        cost_ns: copies.iter().map(|row| row.exposed_ns).sum(),
        is_estimate: false,
        certainty: Certainty::Certain,
        what,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, tokens};

    #[test]
    fn the_same_weights_in_every_run() {
        let copied = |name: &str| {
            let ops = format!(
                "copy GPU H2D 0..700 64 {name} run=@
                 op GPU MUL_MAT 700..1000 Qcur-0 run=@"
            );
            tokens(3, 1000, 1000, &ops)
        };
        let weight = copied("GPU#blk.0.attn_q.weight#0");
        let found = check(RULE, &weight, 3 * 700, &copied("ffn_inp-0"));
        let What::CopiedWeights(CopiedWeights { bytes_per_run, .. }) = found.what else {
            panic!("{found:?}")
        };
        assert_eq!(bytes_per_run, 64);
    }
}
