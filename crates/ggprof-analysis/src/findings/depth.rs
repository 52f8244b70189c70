//! R14: attention that takes more and more of a token as the context grows, or at once.

use super::scene::Scene;
use super::{Certainty, DepthPoint, Finding, Rule, What};
use crate::budget::Budget;
use crate::phases::PhaseKind;

pub(super) const RULE: Rule = Rule(14);

/// The deepest point has so many times the cells of the shallowest.
const GROWTH: u64 = 2;
/// From one point to the next, time may grow this much more than the cells do.
const STEP: f64 = 2.0;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    if budget.kind != PhaseKind::Generation {
        return Vec::new();
    }
    let depths = &scene.tallies[place].depths;
    let point = |(&cells, &(ns, runs)): (&u64, &(u64, u64))| DepthPoint { cells, ns: ns / runs };
    let points: Vec<DepthPoint> = depths.iter().map(point).collect();
    let (Some(&from), Some(&to)) = (points.first(), points.last()) else { return Vec::new() };
    if to.cells < GROWTH * from.cells || to.ns <= from.ns {
        return Vec::new();
    }
    // What all tokens together take more than if they were as shallow as the first.
    let more = |(_, &(ns, runs)): (&u64, &(u64, u64))| ns.saturating_sub(from.ns * runs);
    let cost_ns = depths.iter().map(more).sum();
    let is_flash = scene.tallies[place].ops.keys().any(|key| scene.op(key) == "FLASH_ATTN_EXT");
    let what = What::Depth {
        from,
        to,
        ns_per_1000: (to.ns - from.ns) as f64 * 1e3 / (to.cells - from.cells) as f64,
        is_flash,
        step: step(&points),
    };
    let certainty = Certainty::Possible;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: false, certainty, what }]
}

fn step(points: &[DepthPoint]) -> Option<(DepthPoint, DepthPoint)> {
    let is_step = |pair: &&[DepthPoint]| {
        let cells = pair[1].cells as f64 / pair[0].cells as f64;
        pair[1].ns as f64 > STEP * cells * pair[0].ns as f64
    };
    points.windows(2).find(is_step).map(|pair| (pair[0], pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::check;

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
        let found = check(RULE, &grows, 600, &at_depths(&[(256, 100), (512, 101), (1024, 102)]));
        let What::Depth { step, ns_per_1000, is_flash, .. } = found.what else { panic!() };
        assert_eq!((step, ns_per_1000.round(), is_flash), (None, 391.0, true));
    }

    #[test]
    fn a_step_is_told_from_growth() {
        let steps = at_depths(&[(256, 100), (512, 110), (768, 900)]);
        let found = check(RULE, &steps, 810, &at_depths(&[(256, 100)]));
        let What::Depth { step, .. } = found.what else { panic!() };
        assert_eq!(step.map(|(before, after)| (before.cells, after.cells)), Some((512, 768)));
    }
}
