//! R10: how far a phase is from what its device can read. At the limit there is nothing to gain but
//! fewer bytes.

use super::scene::Scene;
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use crate::work::work_of;
use ggprof_trace::{BackendIndex, Signature};
use hashbrown::HashMap;

/// How fast a phase reads, and how fast its device could.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    pub budget: usize,
    pub backend: BackendIndex,
    /// Bytes that ops moved, over the phase's wall time.
    pub gb_per_s: f64,
    pub roof_gb_per_s: Option<f64>,
    /// The best rate of one op with large weights, if that is faster: where such ops compute much for each
    /// byte, it tells nothing of the memory.
    pub best_seen: Option<f64>,
}

impl Rate {
    /// A fraction of one.
    pub fn of_roof(&self) -> Option<f64> {
        self.roof_gb_per_s.filter(|&roof| roof > 0.0).map(|roof| self.gb_per_s / roof)
    }
}

/// Weights smaller than this may come from a cache.
const LARGE: u64 = 8 << 20;

/// Of each phase that reads all weights for every token, on the backend that computes most of it.
pub(super) fn rates(scene: &Scene<'_>, budgets: &[Budget]) -> Vec<Rate> {
    budgets.iter().enumerate().filter_map(|(place, budget)| rate(scene, place, budget)).collect()
}

/// The same of one phase.
pub(super) fn rate(scene: &Scene<'_>, place: usize, budget: &Budget) -> Option<Rate> {
    if budget.kind != PhaseKind::Generation || budget.wall_ns == 0 {
        return None;
    }
    let backend = busiest(budget)?;
    let bytes = moved(scene, place, backend)?;
    let roof = scene.peaks.and_then(|peaks| peaks.roof_of(scene.trace, backend));
    let gb_per_s = bytes / budget.wall_ns as f64;
    Some(Rate {
        budget: place,
        backend,
        gb_per_s,
        roof_gb_per_s: roof.and_then(|roof| roof.read_bytes_per_s).map(|rate| rate / 1e9),
        best_seen: best_seen(scene, backend).filter(|&best| best > gb_per_s),
    })
}

/// Bytes that the ops of a backend move; `None` if some were in splits of which no sample tells.
fn moved(scene: &Scene<'_>, place: usize, backend: BackendIndex) -> Option<f64> {
    let is_whole = |signature| {
        scene.trace.text(scene.trace.nodes.signature(signature).op) == Signature::WHOLE_SPLIT
    };
    let bytes_of = |signature| {
        let signature = scene.trace.nodes.signature(signature);
        work_of(scene.trace, signature).bytes_moved().map(|bytes| bytes as f64)
    };
    let seen = scene.tallies[place].ops.iter().filter(|(key, _)| key.backend == backend);
    let unseen = || scene.unseen_in(place).filter(|(on, ..)| *on == backend);
    let is_told = |split| unseen().any(|(_, signature, _)| signature == split);
    let mut splits = seen.clone().map(|(key, _)| key.signature).filter(|&it| is_whole(it));
    if !splits.all(is_told) {
        return None;
    }
    let seen = seen.map(|(key, sum)| (key.signature, sum.count as f64));
    let unseen = unseen().map(|(_, signature, estimate)| (signature, estimate.calls));
    let ops = seen.chain(unseen).filter(|(signature, _)| !is_whole(*signature));
    let bytes = ops.map(|(signature, calls)| Some(bytes_of(signature)? * calls));
    let mut bytes: Vec<f64> = bytes.collect::<Option<_>>()?;
    // They come in another order each time, and a sum of such numbers depends on it.
    bytes.sort_by(f64::total_cmp);
    Some(bytes.iter().sum())
}

fn busiest(budget: &Budget) -> Option<BackendIndex> {
    let mut sums: HashMap<BackendIndex, u64> = HashMap::new();
    for row in &budget.rows {
        if let Spent::Computing { backend, .. } = row.spent {
            *sums.entry(backend).or_default() += row.ns;
        }
    }
    sums.into_iter().max_by_key(|(backend, ns)| (*ns, std::cmp::Reverse(*backend))).map(|it| it.0)
}

/// The best rate of ops with large weights on a backend, in GB/s.
pub(super) fn best_seen(scene: &Scene<'_>, backend: BackendIndex) -> Option<f64> {
    let ops = scene.tallies.iter().flat_map(|tally| &tally.ops);
    let rates =
        ops.filter(|(key, sum)| key.backend == backend && sum.ns > 0).filter_map(|(key, sum)| {
            let bytes = scene.work(key).bytes_moved().filter(|&bytes| bytes >= LARGE)?;
            Some(bytes as f64 * sum.count as f64 / sum.ns as f64)
        });
    rates.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use crate::findings::staged::{explain, parse, tokens};

    /// 64 x 64 and 2 x 64 numbers of four bytes in a microsecond.
    const PRODUCT: &str =
        "op GPU MUL_MAT 0..1000 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@ measured=device";

    #[test]
    fn bytes_over_the_time_of_the_phase() {
        let explained = explain(&parse(&tokens(4, 1000, 1000, PRODUCT)));
        assert_eq!(explained.rates[0].gb_per_s, (64 * 64 + 2 * 64) as f64 * 4.0 / 1000.0);
    }

    #[test]
    fn whole_splits_move_what_the_sampled_ones_do() {
        let sampled = tokens(4, 1000, 1000, PRODUCT);
        let split = "op GPU SPLIT 0..1000 x f32[64] <- f32[64] run=@ measured=device";
        let all = tokens(4, 1000, 1000, split);
        // Two tokens of each.
        let (calls, ops): (Vec<&str>, Vec<&str>) =
            sampled.lines().partition(|line| !line.starts_with("op"));
        let wholes = all.lines().filter(|line| line.starts_with("op")).skip(2);
        let lines: Vec<&str> =
            calls.into_iter().chain(ops.into_iter().take(2)).chain(wholes).collect();
        let explained = explain(&parse(&lines.join("\n")));
        assert_eq!(explained.rates[0].gb_per_s, (64 * 64 + 2 * 64) as f64 * 4.0 / 1000.0);
    }

    /// The first op has 16 MB of weights and computes for long, because of many tokens.
    #[test]
    fn an_op_that_is_slower_than_the_phase_tells_nothing() {
        let best = |end: u64| {
            let text = tokens(4, 1000, 1000, PRODUCT);
            let prompt = format!(
                "run 90000000..{end}\n\
                 op GPU MUL_MAT 90000000..{end} Qcur-0 f32[2048,512] <- f32[2048,2048] f32[2048,512] run=4"
            );
            let explained = explain(&parse(&format!("{text}{prompt}")));
            explained.rates[0].best_seen.map(f64::round)
        };
        assert_eq!(best(92_000_000), None);
        assert_eq!(best(90_001_000), Some(25_166.0));
    }

    /// Of six tokens two are timed as a whole. One of the others looks at more of the cache, so its attention
    /// is there once.
    #[test]
    fn an_op_that_is_rare_does_not_stand_for_all_runs() {
        let attention = |cells: u64| {
            format!(
                "op GPU FLASH_ATTN_EXT 0..500 kqv_out-0 f32[8,2] <- f32[8,1,2] f32[8,{cells},2] \
                 f32[8,{cells},2] run=@ measured=device"
            )
        };
        let product = "op GPU MUL_MAT 500..1000 result_output f32[64] <- f32[64,64] f32[64] run=@ \
                       measured=device";
        let split = "op GPU SPLIT 0..1000 x f32[64] <- f32[8,2] run=@ measured=device";
        let text = |deep: u64| {
            let of = |ops: &str| tokens(6, 1000, 1000, ops);
            let pick = |ops: &str, runs: std::ops::Range<usize>| {
                let text = of(ops);
                let lines = text.lines().filter(|line| line.starts_with("op"));
                let lines = lines.skip(runs.start).take(runs.len());
                lines.map(|line| format!("{line}\n")).collect::<String>()
            };
            let calls = of("");
            format!(
                "{calls}{}{}{}{}",
                pick(&attention(256), 0..3),
                pick(&attention(deep), 3..4),
                pick(product, 0..4),
                pick(split, 4..6)
            )
        };
        let rate = |deep: u64| explain(&parse(&text(deep))).rates[0].gb_per_s;
        let (same, deeper) = (rate(256), rate(512));
        assert!(deeper > same && deeper < 1.5 * same, "{same} {deeper}");
    }
}
