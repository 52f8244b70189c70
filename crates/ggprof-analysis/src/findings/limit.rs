//! R10: how far a phase is from what its device can read. At the limit there is nothing to gain but
//! fewer bytes.

use super::Rate;
use super::scene::{OpKey, Scene};
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use ggprof_trace::{BackendIndex, Signature};
use hashbrown::HashMap;

/// Weights smaller than this may come from a cache.
const LARGE: u64 = 8 << 20;

/// Of each phase that reads all weights for every token, on the backend that computes most of it.
pub(super) fn rates(scene: &Scene<'_>, budgets: &[Budget]) -> Vec<Rate> {
    let of_budget = |(place, budget): (usize, &Budget)| {
        if budget.kind != PhaseKind::Generation || budget.wall_ns == 0 {
            return None;
        }
        let backend = busiest(budget)?;
        let bytes = moved(scene, place, backend)?;
        let roof = scene.peaks.and_then(|peaks| peaks.roof_of(scene.trace.backend(backend)));
        Some(Rate {
            budget: place,
            backend,
            gb_per_s: bytes / budget.wall_ns as f64,
            roof_gb_per_s: roof.and_then(|roof| roof.read_bytes_per_s).map(|rate| rate / 1e9),
            best_seen: best_seen(scene, backend),
        })
    };
    budgets.iter().enumerate().filter_map(of_budget).collect()
}

/// Bytes that the ops of a backend move. Splits that were timed as a whole are taken to move as much as
/// those whose ops are known.
fn moved(scene: &Scene<'_>, place: usize, backend: BackendIndex) -> Option<f64> {
    let ops = || scene.tallies[place].ops.iter().filter(|(key, _)| key.backend == backend);
    let is_whole = |key: &OpKey| scene.op(key) == Signature::WHOLE_SPLIT;
    let whole: u64 = ops().filter(|(key, _)| is_whole(key)).map(|(_, sum)| sum.count).sum();
    let mut bytes = 0.0;
    for (key, sum) in ops().filter(|(key, _)| !is_whole(key)) {
        bytes += scene.work(key).bytes_moved()? as f64 * sum.count as f64;
    }
    if whole == 0 {
        return Some(bytes);
    }
    // An op that is there once in each run tells how many runs were seen.
    let seen = ops().filter(|(key, _)| !is_whole(key)).map(|(_, sum)| sum.count).min()?;
    Some(bytes * (seen + whole) as f64 / seen as f64)
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
}
