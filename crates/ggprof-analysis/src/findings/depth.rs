//! R14: attention that takes more and more of a token as the context grows, or at once.

use super::scene::{AtDepth, OpKey, Scene};
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::model_facts::cache_type;
use crate::phases::PhaseKind;
use ggprof_ggml::{CACHED_KEYS, WHOLE_ATTENTION};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct GrowingAttention {
    pub from: DepthPoint,
    pub to: DepthPoint,
    pub ns_per_1000: f64,
    pub is_flash: bool,
    /// The CPU computes it.
    pub is_on_host: bool,
    /// The keys of the cache are of a type with fewer bits than f16 already.
    pub is_cache_small: bool,
    /// Where the time grows at once: the shallower and the deeper point.
    pub jump: Option<(DepthPoint, DepthPoint)>,
}

/// The time of a usual token at a number of cells of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthPoint {
    pub cells: u64,
    /// Of attention, for a token.
    pub ns: u64,
}

pub(super) const RULE: Rule = Rule(14);

/// The deepest point has so many times the cells of the shallowest.
const GROWTH: u64 = 2;
/// From one point to the next, time may grow this much more than the cells do.
const JUMP: f64 = 2.0;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    if budget.kind != PhaseKind::Generation {
        return Vec::new();
    }
    let depths = &scene.tallies[place].depths;
    let points = points(depths);
    let (Some(&from), Some(&to)) = (points.first(), points.last()) else { return Vec::new() };
    if to.cells < GROWTH * from.cells || to.ns <= from.ns {
        return Vec::new();
    }
    // What all tokens together take more than if they were as shallow as the first. Those between samples
    // are as deep as the sampled ones.
    let runs = depths.values().map(|depth| depth.rest.len() as u64);
    let seen_runs = runs.clone().sum::<u64>().max(1);
    let more = |(point, runs): (&DepthPoint, u64)| point.ns.saturating_sub(from.ns) * runs;
    let seen_ns: u64 = points.iter().zip(runs).map(more).sum();
    let more_ns = (u128::from(seen_ns) * u128::from(budget.runs.max(seen_runs))
        / u128::from(seen_runs)) as u64;
    let jump = jump(&points);
    let ops = || scene.tallies[place].ops.keys();
    let is_flash = ops().any(|key| scene.op(key) == WHOLE_ATTENTION);
    let is_attention =
        |key: &&OpKey| depths.values().any(|depth| depth.attention.contains_key(&key.signature));
    let is_on_host = ops().filter(is_attention).all(|key| scene.is_of_host(key.backend));
    let is_cache_small = is_cache_small(scene);
    // Without flash attention on a device, or with it on the CPU, there is something else to try.
    if is_cache_small && is_flash != is_on_host && jump.is_none() {
        return Vec::new();
    }
    // A jump need not be there. What grows can be made to grow half as fast by a cache of half the size; on the
    // CPU only keys are made smaller, because smaller values need flash attention.
    let cost_ns = match (jump.is_some(), is_on_host) {
        (true, _) => more_ns,
        (false, true) => more_ns / 4,
        (false, false) => more_ns / 2,
    };
    let what = What::Depth(GrowingAttention {
        from,
        to,
        ns_per_1000: (to.ns - from.ns) as f64 * 1e3 / (to.cells - from.cells) as f64,
        is_flash,
        is_on_host,
        is_cache_small,
        jump,
    });
    let certainty = Certainty::Possible;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

/// Of usual ops: one that was held up says nothing of the context. Nor do those of tokens for which all else
/// takes longer, too, because the machine has become slower: what they would take otherwise counts.
fn points(depths: &BTreeMap<u64, AtDepth>) -> Vec<DepthPoint> {
    let first_rest_ns = depths.values().next().map_or(0, |depth| median(&depth.rest));
    let point = |(&cells, depth): (&u64, &AtDepth)| {
        let usual = |times: &Vec<u64>| median(times) * times.len() as u64;
        let all_ns: u64 = depth.attention.values().map(usual).sum();
        let slower = median(&depth.rest) as f64 / first_rest_ns.max(1) as f64;
        let slower = if first_rest_ns > 0 { slower.max(1.0) } else { 1.0 };
        DepthPoint { cells, ns: (all_ns as f64 / depth.rest.len() as f64 / slower) as u64 }
    };
    depths.iter().map(point).collect()
}

fn median(times: &[u64]) -> u64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

fn is_cache_small(scene: &Scene<'_>) -> bool {
    let keys = cache_type(scene.trace, CACHED_KEYS);
    keys.is_some_and(|name| !matches!(name.as_str(), "f32" | "f16" | "bf16"))
}

fn jump(points: &[DepthPoint]) -> Option<(DepthPoint, DepthPoint)> {
    let is_jump = |pair: &&[DepthPoint]| {
        let cells = pair[1].cells as f64 / pair[0].cells as f64;
        pair[1].ns as f64 > JUMP * cells * pair[0].ns as f64
    };
    points.windows(2).find(is_jump).map(|pair| (pair[0], pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, found, in_samples};

    /// Tokens at some depths, and the time of their attention.
    fn at_depths(depths: &[(u64, u64)]) -> String {
        let mut text = String::new();
        for at in 0..depths.len() as u64 {
            let start = at * 1000;
            text += &format!("batch {start}..{} 0:{}+1!1\n", start + 1000, 10 + at);
            text += &format!("run {start}..{} batch={at}\n", start + 1000);
        }
        for (at, (cells, ns)) in (0u64..).zip(depths) {
            let start = at * 1000;
            text += &format!(
                "op GPU FLASH_ATTN_EXT {start}..{} a f32[64] <- f32[64,1] f16[64,{cells}] run={at}\n",
                start + ns
            );
        }
        text
    }

    #[test]
    fn attention_grows() {
        let grows = at_depths(&[(256, 100), (512, 200), (768, 300), (1024, 400)]);
        let found = check(RULE, &grows, 300, &at_depths(&[(256, 100), (512, 101), (1024, 102)]));
        let What::Depth(GrowingAttention { jump, ns_per_1000, is_flash, is_on_host, .. }) =
            found.what
        else {
            panic!()
        };
        assert_eq!((jump, ns_per_1000.round()), (None, 391.0));
        assert_eq!((is_flash, is_on_host), (true, false));
    }

    /// Of eight tokens, every other one.
    #[test]
    fn tokens_that_are_not_sampled_grow_as_well() {
        let all = [100, 100, 200, 200, 300, 300, 400, 400].into_iter().zip(1_u64..);
        let depths: Vec<(u64, u64)> = all.map(|(ns, at)| (at.div_ceil(2) * 256, ns)).collect();
        let cost = |text: &str| found(text).iter().find(|it| it.rule == RULE).map(|it| it.cost_ns);
        assert_eq!(cost(&at_depths(&depths)), Some(600));
        assert_eq!(cost(&in_samples(&at_depths(&depths))), Some(600));
    }

    /// One of the deep ones took ten times as long.
    #[test]
    fn a_token_that_was_held_up_is_no_growth() {
        let grows = at_depths(&[(256, 100), (512, 300), (512, 300), (512, 300)]);
        let held_up = at_depths(&[(256, 100), (512, 100), (512, 1000), (512, 100)]);
        check(RULE, &grows, 300, &held_up);
    }

    /// All else takes as many times as long.
    #[test]
    fn a_machine_that_becomes_slower_is_no_growth() {
        let product = |times: [u64; 3]| {
            let op = |(at, ns): (usize, u64)| {
                let start = at * 1000 + 700;
                format!("op GPU MUL_MAT {start}..{} x run={at}\n", start + ns as usize)
            };
            times.into_iter().enumerate().map(op).collect::<String>()
        };
        let text = at_depths(&[(256, 200), (512, 600), (768, 600)]);
        let slower = format!("{text}{}", product([50, 150, 150]));
        check(RULE, &format!("{text}{}", product([50; 3])), 400, &slower);
    }

    /// A model with experts also chooses these by a SOFT_MAX.
    #[test]
    fn the_choice_of_experts_is_no_attention() {
        let depths = [(256, 100), (512, 300), (768, 500), (1024, 700)];
        let on_host = at_depths(&depths).replace("op GPU", "op CPU");
        let probs: String = (0..4)
            .map(|run| {
                let start = run * 1000 + 900;
                format!(
                    "op GPU SOFT_MAX {start}..{} ffn_moe_probs-0 f32[8] <- f32[8] run={run}\n",
                    start + 5
                )
            })
            .collect();
        let found = crate::findings::staged::found(&format!("{on_host}{probs}"));
        let told = |it: &Finding| match &it.what {
            What::Depth(found) => Some(found.is_on_host),
            _ => None,
        };
        assert_eq!(found.iter().find_map(told), Some(true));
    }

    /// On the CPU, smaller keys are all there is to try.
    #[test]
    fn a_cache_that_is_small_already() {
        let depths = [(256, 100), (512, 300), (768, 500), (1024, 700)];
        let plain = |keys: &str| {
            let mut text: String = at_depths(&depths)
                .lines()
                .filter(|line| !line.starts_with("op"))
                .map(|line| format!("{line}\n"))
                .collect();
            for (at, (cells, ns)) in (0..).zip(depths) {
                let start = at * 1000;
                text += &format!(
                    "op CPU SOFT_MAX {start}..{} kq_soft_max-0 f32[{cells}] <- f32[{cells}] run={at}\n",
                    start + ns
                );
            }
            text + &format!(
                "op CPU CPY 3900..3910 x f32[64] <- {keys}[64,32] from=cache_k_l0 run=3\n"
            )
        };
        let found = check(RULE, &plain("f16"), 300, &plain("q8_0"));
        let What::Depth(GrowingAttention { is_cache_small, .. }) = found.what else { panic!() };
        assert!(!is_cache_small);
    }

    #[test]
    fn a_jump_is_told_from_growth() {
        let steps = at_depths(&[(256, 100), (512, 110), (768, 900)]);
        let found = check(RULE, &steps, 810, &at_depths(&[(256, 100)]));
        let What::Depth(GrowingAttention { jump, .. }) = found.what else { panic!() };
        assert_eq!(jump.map(|(before, after)| (before.cells, after.cells)), Some((512, 768)));
    }
}
