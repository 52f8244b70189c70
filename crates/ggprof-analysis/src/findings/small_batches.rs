//! R19: prompts that are computed a few tokens at a time, each time reading all weights.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::phases::PhaseKind;
use crate::work::work_of;
use ggprof_ggml::is_matrix_product;
use ggprof_trace::SignatureId;

#[derive(Debug, Clone, PartialEq)]
pub struct SmallBatches {
    pub tokens_per_run: u64,
    pub runs: u64,
    pub bytes_per_run: u64,
    pub gb_per_s: f64,
}

pub(super) const RULE: Rule = Rule(19);

/// What llama.cpp computes at once, unless told otherwise.
const USUAL_TOKENS: u64 = 512;
/// With more than this at once, reading the weights is a small part of the work.
const MOST_TOKENS: u64 = 64;
/// The part of a product's time that reading the weights takes, where no token was computed alone to
/// tell it.
const GUESSED_READ: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let tokens_per_run = budget.tokens / budget.runs.max(1);
    let is_small = (1..MOST_TOKENS).contains(&tokens_per_run);
    // Phases of a group are prompts of their own.
    let prompts = budget.phases.len() as u64;
    let enough = budget.tokens.div_ceil(USUAL_TOKENS).max(prompts);
    if budget.kind != PhaseKind::Prompt || !is_small || budget.runs < 2 * enough {
        return Vec::new();
    }
    let (bytes, ns) = products(scene, place);
    // All that is read more often than needed.
    let saved = (budget.runs - enough) as f64 / budget.runs as f64;
    let per_run_ns = ns as f64 / budget.runs as f64;
    let read = one_token_ns(scene).map_or(GUESSED_READ, |it| it / per_run_ns);
    let cost_ns = (ns as f64 * saved * read.min(1.0)) as u64;
    let what = What::SmallBatches(SmallBatches {
        tokens_per_run,
        runs: budget.runs,
        bytes_per_run: bytes / budget.runs.max(1),
        gb_per_s: bytes as f64 / ns.max(1) as f64,
    });
    let certainty = Certainty::Likely;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

/// Bytes and time of the products of matrices, also of those that are known by samples.
fn products(scene: &Scene<'_>, place: usize) -> (u64, u64) {
    let bytes_of = |signature: SignatureId| {
        let signature = scene.trace.nodes.signature(signature);
        let is_it = is_matrix_product(scene.trace.text(signature.op));
        is_it.then(|| work_of(scene.trace, signature).bytes_moved().unwrap_or(0))
    };
    let (mut all_bytes, mut all_ns) = (0, 0);
    for (key, sum) in &scene.tallies[place].ops {
        if let Some(bytes) = bytes_of(key.signature) {
            all_bytes += bytes * sum.count;
            all_ns += sum.ns;
        }
    }
    for (_, signature, estimate) in scene.unseen_in(place) {
        if let Some(bytes) = bytes_of(signature) {
            all_bytes += (bytes as f64 * estimate.calls) as u64;
            all_ns += estimate.ns as u64;
        }
    }
    (all_bytes, all_ns)
}

/// How long the products of one token take, which read all weights once, if one was computed alone.
fn one_token_ns(scene: &Scene<'_>) -> Option<f64> {
    let alone = |budget: &(usize, &Budget)| {
        budget.1.kind == PhaseKind::Generation && budget.1.tokens == budget.1.runs
    };
    let (place, budget) = scene.budgets.iter().enumerate().find(alone)?;
    let (_, ns) = products(scene, place);
    (budget.runs > 0 && ns > 0).then(|| ns as f64 / budget.runs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, in_samples};

    /// A prompt of 64 tokens in one call, then a token.
    fn prompt(runs: u64) -> String {
        let (each, tokens) = (960 / runs, 64 / runs);
        let mut text = String::from("batch 0..960 0:0+64!1\nbatch 960..1020 0:64+1!1\n");
        for run in 0..runs {
            text += &format!("run {}..{} batch=0\n", run * each, (run + 1) * each);
        }
        text += "run 960..1020 batch=1\n";
        let shape = |tokens: u64| format!("f32[64,{tokens}] <- f32[64,64] f32[64,{tokens}]");
        for run in 0..runs {
            let (start, end) = (run * each, (run + 1) * each);
            text += &format!("op CPU MUL_MAT {start}..{end} Qcur-0 {} run={run}\n", shape(tokens));
        }
        text + &format!("op CPU MUL_MAT 960..1020 Qcur-0 {} run={runs}\n", shape(1))
    }

    #[test]
    fn a_prompt_in_small_pieces() {
        // Seven of eight readings, 60 ns each, are in vain.
        let found = check(RULE, &prompt(8), 7 * 60, &prompt(1));
        let What::SmallBatches(SmallBatches { tokens_per_run, runs, .. }) = found.what else {
            panic!()
        };
        assert_eq!((tokens_per_run, runs), (8, 8));
    }

    /// Of every other run the device's ops are known.
    #[test]
    fn a_prompt_of_which_a_part_is_sampled() {
        let prompt = |runs| in_samples(&prompt(runs).replace("CPU", "GPU"));
        let found = check(RULE, &prompt(8), 7 * 60, &prompt(1));
        let What::SmallBatches(SmallBatches { bytes_per_run, .. }) = found.what else { panic!() };
        assert_eq!(bytes_per_run, (64 * 64 + 2 * 8 * 64) * 4);
    }
}
