//! R14: attention that takes more and more of a token as the context grows, or at once.

use super::scene::{OpKey, Scene};
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::phases::PhaseKind;

#[derive(Debug, Clone, PartialEq)]
pub struct GrowingAttention {
    pub from: DepthPoint,
    pub to: DepthPoint,
    pub ns_per_1000: f64,
    pub is_flash: bool,
    /// The CPU computes it.
    pub is_on_host: bool,
    /// Where the time grows at once: the shallower and the deeper point.
    pub step: Option<(DepthPoint, DepthPoint)>,
}

/// The time of a token at a number of cells of the cache.
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
    let more_ns: u64 = depths.iter().map(more).sum();
    let step = step(&points);
    // A step need not be there. What grows can be made to grow half as fast, by a cache of half the size.
    let cost_ns = if step.is_some() { more_ns } else { more_ns / 2 };
    let ops = || scene.tallies[place].ops.keys();
    let is_flash = ops().any(|key| scene.op(key) == "FLASH_ATTN_EXT");
    let is_attention = |key: &&OpKey| matches!(scene.op(key), "FLASH_ATTN_EXT" | "SOFT_MAX");
    let is_on_host = ops().filter(is_attention).all(|key| scene.is_of_host(key.backend));
    let what = What::Depth(GrowingAttention {
        from,
        to,
        ns_per_1000: (to.ns - from.ns) as f64 * 1e3 / (to.cells - from.cells) as f64,
        is_flash,
        is_on_host,
        step,
    });
    let certainty = Certainty::Possible;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
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
        let found = check(RULE, &grows, 300, &at_depths(&[(256, 100), (512, 101), (1024, 102)]));
        let What::Depth(GrowingAttention { step, ns_per_1000, is_flash, is_on_host, .. }) =
            found.what
        else {
            panic!()
        };
        assert_eq!((step, ns_per_1000.round()), (None, 391.0));
        assert_eq!((is_flash, is_on_host), (true, false));
    }

    #[test]
    fn a_step_is_told_from_growth() {
        let steps = at_depths(&[(256, 100), (512, 110), (768, 900)]);
        let found = check(RULE, &steps, 810, &at_depths(&[(256, 100)]));
        let What::Depth(GrowingAttention { step, .. }) = found.what else { panic!() };
        assert_eq!(step.map(|(before, after)| (before.cells, after.cells)), Some((512, 768)));
    }
}
