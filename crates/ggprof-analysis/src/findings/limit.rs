//! R10: how far a phase is from what its device can read. At the limit there is nothing to gain but
//! fewer bytes.

use super::Rate;
use super::scene::Scene;
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use ggprof_trace::BackendIndex;
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
        let ops = scene.tallies[place].ops.iter().filter(|(key, _)| key.backend == backend);
        let mut bytes = 0.0;
        for (key, sum) in ops {
            bytes += scene.work(key).bytes_moved()? as f64 * sum.count as f64;
        }
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
