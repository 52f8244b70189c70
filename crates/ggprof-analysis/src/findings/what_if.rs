//! What a token would take with more or fewer layers on a device, by the times of the layers that are
//! there and of those that are not.

use super::is_work;
use super::scene::{OpKey, OpSum, Scene};
use crate::budget::{Budget, ModelPart};
use crate::layers::Layer;
use crate::memory::{self, Left};
use ggprof_ggml::is_matrix_product;
use ggprof_trace::BackendIndex;
use hashbrown::HashMap;

/// A phase whose layers are divided between the host and devices.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerCosts {
    pub budget: usize,
    /// Those that have layers, the first one first.
    pub devices: Vec<BackendIndex>,
    pub host: BackendIndex,
    pub on_device: u64,
    pub on_host: u64,
    /// Of one layer in one graph run, on average.
    pub device_ns: u64,
    pub host_ns: u64,
    /// The weights of a layer on the host.
    pub bytes: u64,
    /// What the devices have left, if they told the program.
    pub left: Option<Left>,
    pub estimates: Vec<LayerEstimate>,
}

/// What a unit of the phase would take with so many layers on devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerEstimate {
    pub layers: u64,
    /// What llama.cpp's `-ngl` is called with for it; `None` where nothing tells how it counts.
    pub gpu_layers: Option<u64>,
    /// `None` if it would be less than nothing: then layers do not simply add up.
    pub ns: Option<u64>,
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
    let of_side = |of_host: bool| -> Vec<(BackendIndex, LayerSum)> {
        let there = layers.iter().filter(|((it, _), _)| scene.is_of_host(*it) == of_host);
        there.map(|((backend, _), sum)| (*backend, *sum)).collect()
    };
    let (on_devices, mut on_host) = (of_side(false), of_side(true));
    let host = on_host.iter().max_by_key(|(backend, sum)| (sum.ns, *backend))?.0;
    on_host.retain(|(backend, _)| *backend == host);
    let (of_device, of_host) = (mean(&on_devices)?, mean(&on_host)?);
    let mut devices: Vec<BackendIndex> = on_devices.iter().map(|(backend, _)| *backend).collect();
    devices.sort_unstable();
    devices.dedup();
    let (on_device, on_host) = (on_devices.len() as u64, on_host.len() as u64);
    let per_unit = |ns: u64| ns as i128 * i128::from(budget.runs) / i128::from(budget.units());
    let now_ns = i128::from(budget.wall_ns / budget.units());
    let is_output_on_device = is_output_on_device(scene, place);
    let estimate = |layers: u64| {
        let moved = i128::from(layers) - i128::from(on_device);
        let ns = now_ns - moved * (per_unit(of_host.ns) - per_unit(of_device.ns));
        LayerEstimate {
            layers,
            gpu_layers: gpu_layers(layers, is_output_on_device),
            ns: u64::try_from(ns).ok().filter(|&ns| ns > 0),
        }
    };
    let all = on_device + on_host;
    let left = left(scene, &devices);
    let fitting = left.and_then(|left| left.free_bytes.checked_div(of_host.bytes));
    let fitting = fitting.map_or(0, |layers| layers.min(on_host));
    let mut tried = vec![0, on_device + 1, on_device + on_host / 2, on_device + fitting, all];
    tried.sort_unstable();
    tried.dedup();
    Some(LayerCosts {
        budget: place,
        devices,
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

fn mean(layers: &[(BackendIndex, LayerSum)]) -> Option<LayerSum> {
    let count = layers.len() as u64;
    let sum = |of: fn(&LayerSum) -> u64| layers.iter().map(|(_, it)| of(it)).sum::<u64>();
    Some(LayerSum { ns: sum(|it| it.ns).checked_div(count)?, bytes: sum(|it| it.bytes) / count })
}

/// Of all of them.
fn left(scene: &Scene<'_>, devices: &[BackendIndex]) -> Option<Left> {
    let each = devices.iter().map(|&it| memory::left(scene.trace, scene.trace.backend(it)));
    each.reduce(|all, one| {
        let (all, one) = (all?, one?);
        Some(Left {
            free_bytes: all.free_bytes.saturating_add(one.free_bytes),
            total_bytes: all.total_bytes.saturating_add(one.total_bytes),
        })
    })?
}

/// llama.cpp counts the output as a layer, and puts it on the device before all others. Older builds
/// put it there behind all others, so that it is on the host beside some layers of the device.
fn gpu_layers(layers: u64, is_output_on_device: Option<bool>) -> Option<u64> {
    match layers {
        0 => Some(0),
        layers => is_output_on_device.map(|it| layers + u64::from(it)),
    }
}

fn is_output_on_device(scene: &Scene<'_>, place: usize) -> Option<bool> {
    let is_it = |key: &&OpKey| {
        key.layer.is_none() && key.part() == ModelPart::Output && is_matrix_product(scene.op(key))
    };
    let outputs = scene.tallies[place].ops.keys().filter(is_it);
    outputs.map(|key| !scene.is_of_host(key.backend)).reduce(|one, other| one && other)
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
    use super::LayerCosts;
    use crate::findings::staged::{explain, parse, tokens};
    use ggprof_trace::FreeMemory;

    fn layer(backend: &str, layer: u64, start: u64, each: u64) -> String {
        let product = |name: &str, at: u64| {
            let (from, to) = (start + at * each, start + (at + 1) * each);
            format!(
                "op {backend} MUL_MAT {from}..{to} {name}-{layer} f32[64] <- f32[64,64] f32[64] run=@\n\
                 op {backend} MUL_MAT {to}..{to} v{name}-{layer} f32[8] <- f32[64,8] f32[64] run=@\n"
            )
        };
        product("Qcur", 0) + &product("ffn_out", 1)
    }

    /// Two layers on the device and one on the host, which takes three times as long for it.
    #[test]
    fn layers_that_move() {
        let ops = layer("GPU", 0, 0, 50) + &layer("GPU", 1, 100, 50) + &layer("CPU", 2, 200, 150);
        let mut trace = parse(&tokens(4, 500, 500, &ops));
        let explained = explain(&trace);
        let [costs] = &explained.layer_costs[..] else { panic!("{:?}", explained.layer_costs) };
        assert_eq!((costs.on_device, costs.on_host), (2, 1));
        assert_eq!((costs.device_ns, costs.host_ns), (100, 300));
        assert_eq!(costs.bytes, 2 * (64 * 64 + 64 * 8) * 4);
        let estimates = |costs: &LayerCosts| -> Vec<_> {
            costs.estimates.iter().map(|it| (it.layers, it.gpu_layers, it.ns)).collect()
        };
        // Where the output is was not recorded.
        assert_eq!(estimates(costs), [(0, Some(0), Some(900)), (3, None, Some(300))]);
        assert_eq!(costs.fitting(), None);
        let with_output = |backend: &str, at: u64| {
            let output = format!(
                "op {backend} MUL_MAT {at}..{at} result_output f32[8] <- f32[64,8] f32[64] run=@\n"
            );
            let explained = explain(&parse(&tokens(4, 500, 500, &(ops.clone() + &output))));
            let most = estimates(&explained.layer_costs[0]).pop();
            most.and_then(|(_, gpu_layers, _)| gpu_layers)
        };
        // It counts as a layer: before the other ones, or behind them in older builds.
        assert_eq!((with_output("GPU", 500), with_output("CPU", 500)), (Some(4), Some(3)));
        let weights = costs.bytes;
        for (free_bytes, fitting) in [(weights - 1, 0), (2 * weights, 2)] {
            let (device, total_bytes, at_ns) = ("GPU".to_owned(), u64::MAX, 0);
            let told = FreeMemory { device, free_bytes, total_bytes, at_ns, process: None };
            trace.free_memory = vec![told];
            assert_eq!(explain(&trace).layer_costs[0].fitting(), Some(fitting));
        }
    }

    /// One layer on each of two devices, and one on the host.
    #[test]
    fn layers_of_several_devices_count_together() {
        let explained = explain(&parse(&format!(
            "backend 2 GPU2 gpu\n{}",
            tokens(
                4,
                500,
                500,
                &(layer("GPU", 0, 0, 50)
                    + &layer("GPU2", 1, 100, 100)
                    + &layer("CPU", 2, 300, 100))
            )
        )));
        let [costs] = &explained.layer_costs[..] else { panic!("{:?}", explained.layer_costs) };
        assert_eq!((costs.devices.len(), costs.on_device, costs.device_ns), (2, 2, 150));
    }

    /// Layers of the host that something else computes beside take longer than all that counts.
    #[test]
    fn what_would_be_less_than_nothing_is_not_known() {
        let ops = layer("GPU", 0, 0, 10)
            + &layer("CPU", 1, 0, 250)
            + &layer("CPU", 2, 0, 250)
            + &layer("CPU", 3, 0, 250);
        let explained = explain(&parse(&tokens(4, 500, 500, &ops)));
        let last = explained.layer_costs[0].estimates.last();
        assert_eq!(last.map(|it| (it.layers, it.ns)), Some((4, None)));
    }
}
