//! What a token would take with more or fewer layers on a device, by the times of the layers that are
//! there and of those that are not.

use super::is_work;
use super::scene::{OpKey, OpSum, Scene};
use crate::budget::Budget;
use crate::layers::Layer;
use crate::memory::{self, Left};
use ggprof_ggml::is_matrix_product;
use ggprof_trace::BackendIndex;
use hashbrown::HashMap;

/// A phase whose layers are divided between the host and a device.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerCosts {
    pub budget: usize,
    pub device: BackendIndex,
    pub host: BackendIndex,
    pub on_device: u64,
    pub on_host: u64,
    /// Of one layer in one graph run, on average.
    pub device_ns: u64,
    pub host_ns: u64,
    /// The weights of a layer on the host.
    pub bytes: u64,
    /// What the device has left, if it told the program.
    pub left: Option<Left>,
    /// Layers on the device, and what a unit of the phase would take with so many.
    pub estimates: Vec<(u64, u64)>,
}

impl LayerCosts {
    /// How many more layers the device has memory for.
    pub fn fitting(&self) -> Option<u64> {
        self.left?.free_bytes.checked_div(self.bytes)
    }
}

/// The time of one layer on one backend, in one graph run, and its weights.
#[derive(Debug, Clone, Copy, Default)]
struct LayerSum {
    ns: u64,
    bytes: u64,
}

pub(super) fn layer_costs(scene: &Scene<'_>, budgets: &[Budget]) -> Vec<LayerCosts> {
    let of_budget = |(place, budget): (usize, &Budget)| of_budget(scene, place, budget);
    let work = budgets.iter().enumerate().filter(|(_, budget)| is_work(budget));
    work.filter_map(of_budget).collect()
}

fn of_budget(scene: &Scene<'_>, place: usize, budget: &Budget) -> Option<LayerCosts> {
    let layers = layers(scene, place);
    let mean = |of_host: bool| -> Option<(BackendIndex, u64, LayerSum)> {
        let there =
            || layers.iter().filter(|((backend, _), _)| scene.is_of_host(*backend) == of_host);
        let ((backend, _), _) = there().max_by_key(|((backend, _), sum)| (sum.ns, *backend))?;
        let on_it = || there().filter(|((of, _), _)| of == backend);
        let count = on_it().count() as u64;
        let ns = on_it().map(|(_, sum)| sum.ns).sum::<u64>() / count;
        let bytes = on_it().map(|(_, sum)| sum.bytes).sum::<u64>() / count;
        Some((*backend, count, LayerSum { ns, bytes }))
    };
    let (host, on_host, of_host) = mean(true)?;
    let (device, on_device, of_device) = mean(false)?;
    let per_unit = |ns: u64| ns as i128 * i128::from(budget.runs) / i128::from(budget.units());
    let now_ns = i128::from(budget.wall_ns / budget.units());
    let estimate = |layers: u64| {
        let moved = i128::from(layers) - i128::from(on_device);
        let ns = now_ns - moved * (per_unit(of_host.ns) - per_unit(of_device.ns));
        (layers, u64::try_from(ns).unwrap_or(0))
    };
    let all = on_device + on_host;
    let left = memory::left(scene.trace, scene.trace.backend(device));
    let fitting = left.and_then(|left| left.free_bytes.checked_div(of_host.bytes));
    let fitting = fitting.map_or(0, |layers| layers.min(on_host));
    let mut tried = vec![0, on_device + 1, on_device + on_host / 2, on_device + fitting, all];
    tried.sort_unstable();
    tried.dedup();
    Some(LayerCosts {
        budget: place,
        device,
        host,
        on_device,
        on_host,
        device_ns: of_device.ns,
        host_ns: of_host.ns,
        bytes: of_host.bytes,
        left,
        estimates: tried.into_iter().filter(|&it| it != on_device).map(estimate).collect(),
    })
}

/// Each layer where its products of matrices are: other ops may be elsewhere. A layer whose products are in
/// two places tells of neither.
fn layers(scene: &Scene<'_>, place: usize) -> HashMap<(BackendIndex, Layer), LayerSum> {
    let mut ops: HashMap<(BackendIndex, Layer), Vec<(&OpKey, &OpSum)>> = HashMap::new();
    for (key, sum) in &scene.tallies[place].ops {
        if let Some(layer) = key.layer {
            ops.entry((key.backend, layer)).or_default().push((key, sum));
        }
    }
    ops.retain(|_, ops| ops.iter().filter(|(key, _)| scene.op(key) == "MUL_MAT").count() > 1);
    let mut places: HashMap<Layer, usize> = HashMap::new();
    ops.keys().for_each(|(_, layer)| *places.entry(*layer).or_default() += 1);
    ops.retain(|(_, layer), _| places[layer] == 1);
    let runs = |backend| scene.tallies[place].seen_runs.get(&backend).copied().unwrap_or(1).max(1);
    ops.into_iter().map(|(at, ops)| (at, sum(scene, &ops, runs(at.0)))).collect()
}

/// In so many graph runs.
fn sum(scene: &Scene<'_>, ops: &[(&OpKey, &OpSum)], runs: u64) -> LayerSum {
    let mut layer = LayerSum::default();
    for (key, sum) in ops {
        layer.ns += sum.ns / runs;
        let is_product = is_matrix_product(scene.op(key));
        let weight = scene.signature(key).sources.first().filter(|_| is_product);
        let bytes = weight.and_then(|source| scene.trace.types.bytes_of(&source.tensor));
        // Products with a cache change their shapes, so each is there less than once a run: no weights.
        layer.bytes += bytes.unwrap_or(0) * (sum.count / runs);
    }
    layer
}

#[cfg(test)]
mod tests {
    use crate::findings::staged::{explain, parse, tokens};
    use ggprof_trace::FreeMemory;

    /// Two layers on the device and one on the host, which takes three times as long for it.
    #[test]
    fn layers_that_move() {
        let layer = |backend: &str, layer: u64, start: u64, each: u64| {
            let product = |name: &str, at: u64| {
                let (from, to) = (start + at * each, start + (at + 1) * each);
                format!(
                    "op {backend} MUL_MAT {from}..{to} {name}-{layer} f32[64] <- f32[64,64] f32[64] \
                     run=@\nop {backend} MUL_MAT {to}..{to} v{name}-{layer} f32[8] <- f32[64,8] f32[64] \
                     run=@\n"
                )
            };
            product("Qcur", 0) + &product("ffn_out", 1)
        };
        let ops = layer("GPU", 0, 0, 50) + &layer("GPU", 1, 100, 50) + &layer("CPU", 2, 200, 150);
        let mut trace = parse(&tokens(4, 500, 500, &ops));
        let explained = explain(&trace);
        let [costs] = &explained.layer_costs[..] else { panic!("{:?}", explained.layer_costs) };
        assert_eq!((costs.on_device, costs.on_host), (2, 1));
        assert_eq!((costs.device_ns, costs.host_ns), (100, 300));
        assert_eq!(costs.bytes, 2 * (64 * 64 + 64 * 8) * 4);
        assert_eq!(costs.estimates, [(0, 900), (3, 300)]);
        assert_eq!(costs.fitting(), None);
        let weights = costs.bytes;
        for (free_bytes, fitting) in [(weights - 1, 0), (2 * weights, 2)] {
            let (device, total_bytes, at_ns) = ("GPU".to_owned(), u64::MAX, 0);
            let told = FreeMemory { device, free_bytes, total_bytes, at_ns, process: None };
            trace.free_memory = vec![told];
            assert_eq!(explain(&trace).layer_costs[0].fitting(), Some(fitting));
        }
    }
}
