//! R1: ops on the host beside a device that computes the rest.

use super::copied::is_between_ops;
use super::scene::{OpKey, OpSum, Scene};
use super::{Certainty, Finding, Rule, What, splits};
use crate::budget::{Budget, ModelPart, Spent};
use crate::layers::Module;
use crate::libllama::uses_libllama;
use crate::placement::{Reason, reason_of};
use ggprof_trace::{BackendIndex, StringId};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Ops on the host beside a device that computes most.
#[derive(Debug, Clone, PartialEq)]
pub struct HostOps {
    pub device: BackendIndex,
    pub which: WhichHostOps,
    /// The longest first.
    pub ops: Vec<HostOp>,
    /// Copies and waits of the scheduler that these ops cause.
    pub around_ns: u64,
    /// What the device would need for the same.
    pub on_device_ns: Option<u64>,
}

/// Which ops are on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichHostOps {
    /// Whole layers. How many there are is not known beside a device whose ops are not seen.
    Layers { first: u32, last: u32, count: u32, of: Option<u32> },
    /// The experts of layers whose other parts are on the device.
    Experts { layers: u32, of: Option<u32> },
    /// What comes after the last layer.
    Output,
    /// An op of layers that the device computes otherwise, or of none.
    Op { layers: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOp {
    pub op: StringId,
    pub part: ModelPart,
    /// A tensor of it, and the shape and type of what it reads.
    pub example: ggprof_trace::EventId,
    pub count: u64,
    pub ns: u64,
    pub reason: Reason,
}

pub(super) const RULE: Rule = Rule(1);

/// Evidence is the longest ops.
const SHOWN: usize = 5;

/// Which of the cases of [`WhichHostOps`] an op is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    Layers,
    Experts,
    Output,
    Op,
}

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let Some(device) = main_device(scene, place) else { return Vec::new() };
    let tally = &scene.tallies[place];
    let layers = Layers::of(scene, place);
    let mut cases: BTreeMap<Case, Vec<(OpKey, OpSum)>> = BTreeMap::new();
    for (key, sum) in tally.ops.iter().filter(|(key, _)| scene.is_of_host(key.backend)) {
        if !is_input(scene, key) {
            cases.entry(layers.case(key)).or_default().push((*key, *sum));
        }
    }
    let host_ns: u64 = cases.values().flatten().map(|(_, sum)| sum.ns).sum();
    let around_ns = around(scene, place, budget);
    let of_case = |(case, ops): (Case, Vec<(OpKey, OpSum)>)| {
        let own_ns: u64 = ops.iter().map(|(_, sum)| sum.ns).sum();
        // What lies between the ops is shared out by their time.
        let around_ns =
            (u128::from(around_ns) * u128::from(own_ns) / u128::from(host_ns.max(1))) as u64;
        let on_device_ns = on_device(scene, place, device, &ops);
        let what = What::HostOps(HostOps {
            device,
            which: layers.which(case, &ops),
            ops: shown(scene, ops),
            around_ns,
            on_device_ns,
        });
        let whole_ns = (own_ns + around_ns).min(budget.wall_ns);
        let cost_ns = whole_ns.saturating_sub(on_device_ns.unwrap_or(0));
        let certainty = certainty(&what);
        Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }
    };
    cases.into_iter().map(of_case).collect()
}

/// The device that computes at least half of the nodes, if there is one.
fn main_device(scene: &Scene<'_>, place: usize) -> Option<BackendIndex> {
    let tally = &scene.tallies[place];
    let mut counts: HashMap<BackendIndex, u64> = HashMap::new();
    let (mut on_host, mut on_devices) = (0, 0);
    for (key, sum) in &tally.ops {
        let is_whole_split = scene.op(key) == ggprof_trace::Signature::WHOLE_SPLIT;
        match scene.is_of_host(key.backend) {
            true => on_host += sum.count,
            false => {
                // A split stands for as many nodes as there may be.
                let count = if is_whole_split { u64::from(u32::MAX) } else { sum.count };
                on_devices += count;
                *counts.entry(key.backend).or_default() += count;
            }
        }
    }
    let main = counts.into_iter().max_by_key(|(backend, count)| (*count, Reverse(*backend)));
    main.map(|(backend, _)| backend).filter(|_| on_devices >= on_host)
}

/// Looking up embeddings and preparing them stays on the host, whatever is asked for.
fn is_input(scene: &Scene<'_>, key: &OpKey) -> bool {
    key.layer.is_none() && (scene.op(key) == "GET_ROWS" || key.module == Module::Input)
}

/// What the scheduler and copies of activations take, because work changes sides. The scheduler also stops at
/// each weight that it copies, which is no change.
fn around(scene: &Scene<'_>, place: usize, budget: &Budget) -> u64 {
    let copies = scene.copies_of(place).filter(|row| is_between_ops(row));
    let copied_ns: u64 = copies.map(|row| row.exposed_ns).sum();
    let by_change = 1.0 - splits::part_of_weights(scene, place, budget);
    let scheduling_ns = budget.sum(|spent| spent == Spent::Scheduling) as f64 * by_change;
    copied_ns + budget.sum(|spent| spent == Spent::Barriers) + scheduling_ns as u64
}

/// Which layers are where.
struct Layers {
    on_device: HashSet<u32>,
    on_host: HashSet<u32>,
    all: HashSet<u32>,
    /// A device whose ops are not seen has layers that nobody counts.
    are_all_seen: bool,
    /// Others than libllama call other things output.
    is_output_known: bool,
}

impl Layers {
    fn of(scene: &Scene<'_>, place: usize) -> Self {
        let mut layers = Self {
            on_device: HashSet::new(),
            on_host: HashSet::new(),
            all: HashSet::new(),
            are_all_seen: false,
            is_output_known: uses_libllama(scene.trace),
        };
        // Of other phases as well: in samples, few splits of a device show their layers.
        for (at, tally) in scene.tallies.iter().enumerate() {
            for key in tally.ops.keys() {
                let Some(layer) = key.layer else { continue };
                layers.all.insert(layer.0);
                layers.are_all_seen |= !scene.is_of_host(key.backend);
                let is_product = scene.op(key) == "MUL_MAT";
                if is_product && at == place {
                    let is_of_host = scene.is_of_host(key.backend);
                    let there =
                        if is_of_host { &mut layers.on_host } else { &mut layers.on_device };
                    there.insert(layer.0);
                }
            }
        }
        layers
    }

    fn case(&self, key: &OpKey) -> Case {
        match key.layer {
            None if key.part() == ModelPart::Output && self.is_output_known => Case::Output,
            None => Case::Op,
            Some(layer) if self.is_whole(layer.0) => Case::Layers,
            Some(_) if key.part() == ModelPart::Experts => Case::Experts,
            Some(_) => Case::Op,
        }
    }

    /// Whether all of a layer is on the host.
    fn is_whole(&self, layer: u32) -> bool {
        self.on_host.contains(&layer) && !self.on_device.contains(&layer)
    }

    fn which(&self, case: Case, ops: &[(OpKey, OpSum)]) -> WhichHostOps {
        let layers: HashSet<u32> = ops.iter().filter_map(|(key, _)| Some(key.layer?.0)).collect();
        let count = layers.len() as u32;
        let of = self.are_all_seen.then_some(self.all.len() as u32);
        match case {
            Case::Layers => WhichHostOps::Layers {
                first: layers.iter().copied().min().unwrap_or(0),
                last: layers.iter().copied().max().unwrap_or(0),
                count,
                of,
            },
            Case::Experts => WhichHostOps::Experts { layers: count, of },
            Case::Output => WhichHostOps::Output,
            Case::Op => WhichHostOps::Op { layers: count },
        }
    }
}

/// What the device would take for the ops: as long as for the same ops of other layers, or else as
/// long as it takes to read their bytes at the best rate that was seen of it.
fn on_device(
    scene: &Scene<'_>,
    place: usize,
    device: BackendIndex,
    ops: &[(OpKey, OpSum)],
) -> Option<u64> {
    let mut known: HashMap<_, (u64, u64)> = HashMap::new();
    for (key, sum) in scene.tallies[place].ops.iter().filter(|(key, _)| key.backend == device) {
        let entry = known.entry(key.signature).or_default();
        *entry = (entry.0 + sum.ns, entry.1 + sum.count);
    }
    let best = super::limit::best_seen(scene, device);
    // Whole numbers, because a sum of others depends on their order, which is none.
    let mut all_ns = 0;
    for (key, sum) in ops {
        let each_ns = match known.get(&key.signature) {
            Some((ns, count)) => *ns as f64 / *count as f64,
            None => scene.work(key).bytes_moved().unwrap_or(0) as f64 / best?,
        };
        all_ns += (each_ns * sum.count as f64).round() as u64;
    }
    Some(all_ns)
}

/// Ops of one kind and reason together, the longest first.
fn shown(scene: &Scene<'_>, ops: Vec<(OpKey, OpSum)>) -> Vec<HostOp> {
    let mut shown: Vec<HostOp> = Vec::new();
    for (key, sum) in ops {
        let (op, part) = (scene.signature(&key).op, key.part());
        let node = scene.trace.events.get(sum.example).node;
        let reason = reason_of(scene.trace, key.backend, node, key.module);
        let same = |it: &&mut HostOp| (it.op, it.part, it.reason) == (op, part, reason);
        match shown.iter_mut().find(same) {
            Some(known) => {
                known.count += sum.count;
                known.ns += sum.ns;
                known.example = known.example.min(sum.example);
            }
            None => shown.push(HostOp {
                op,
                part,
                example: sum.example,
                count: sum.count,
                ns: sum.ns,
                reason,
            }),
        }
    }
    shown.sort_by_key(|it| (Reverse(it.ns), it.example));
    shown.truncate(SHOWN);
    shown
}

/// Where the scheduler's reasons were recorded, there is nothing to guess, but for a device of which
/// nothing is seen.
fn certainty(what: &What) -> Certainty {
    use WhichHostOps::{Experts, Layers};
    match what {
        What::HostOps(HostOps {
            which: Layers { of: None, .. } | Experts { of: None, .. },
            ..
        }) => Certainty::Likely,
        What::HostOps(HostOps { ops, .. }) if ops.first().is_some_and(is_told) => {
            Certainty::Certain
        }
        _ => Certainty::Likely,
    }
}

/// Whether the scheduler's reason is known: of what is no processor to it, nobody asked.
fn is_told(op: &HostOp) -> bool {
    !matches!(op.reason, Reason::Unknown | Reason::OnlyBackend | Reason::OnDevice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, parse, tokens};

    /// Two layers of which the host has one.
    #[test]
    fn a_layer_on_the_host() {
        let on = |backend: &str| {
            tokens(
                3,
                1000,
                1000,
                &format!(
                    "op GPU MUL_MAT 0..100 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                     op GPU MUL_MAT 100..200 ffn_out-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                     op GPU ADD 200..210 l_out-0 f32[64] run=@ split=0
                     op {backend} MUL_MAT 300..600 Qcur-1 f32[64] <- f32[64,64] f32[64] run=@ split=1
                     op {backend} MUL_MAT 600..900 ffn_out-1 f32[64] <- f32[64,64] f32[64] run=@ split=1
                     op GPU MUL_MAT 950..1000 result_output f32[64] <- f32[64,64] f32[64] run=@ split=2"
                ),
            )
        };
        // 600 ns on the host and 90 ns until it has the layer; the device needs 2 x 83 ns, which is
        // the mean of its three products.
        let found = check(RULE, &on("CPU"), 3 * (600 + 90) - 3 * 2 * 83 - 2, &on("GPU"));
        let What::HostOps(HostOps { which, .. }) = &found.what else { panic!("{found:?}") };
        assert_eq!(*which, WhichHostOps::Layers { first: 1, last: 1, count: 1, of: Some(2) });
    }

    #[test]
    fn experts_on_the_host() {
        let on = |backend: &str| {
            tokens(
                3,
                1000,
                1000,
                &format!(
                    "op GPU MUL_MAT 0..100 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@
                     op {backend} MUL_MAT_ID 100..900 ffn_moe_up-0 f32[64] run=@ split=1
                     op GPU MUL_MAT 900..1000 result_output f32[64] <- f32[64,64] f32[64] run=@ split=2"
                ),
            )
        };
        let found = check(RULE, &on("CPU"), 3 * 800, &on("GPU"));
        let What::HostOps(HostOps { which, .. }) = &found.what else { panic!("{found:?}") };
        assert_eq!(*which, WhichHostOps::Experts { layers: 1, of: Some(1) });
    }

    /// The scheduler stops at a weight of each of three layers; one small op is on the host.
    #[test]
    fn waiting_for_weights_is_not_changing_sides() {
        let layer = |at: u64| {
            let (start, split) = (at * 240, 2 * at);
            let (from, to) = (start + 100, start + 220);
            format!(
                "copy GPU H2D {start}..{from} 64 GPU#blk.{at}.ffn_up.weight#0 run=@ split={split}
                 op GPU MUL_MAT {from}..{to} Qcur-{at} f32[64] <- f32[64,64] f32[64] run=@ split={split}\n"
            )
        };
        let layers: String = (0..3).map(layer).collect();
        let ops = format!("{layers}op CPU SET_ROWS 900..901 cache-0 f32[64] run=@ split=7");
        let explained = crate::findings::staged::explain(&parse(&tokens(3, 1000, 1000, &ops)));
        let found = explained.findings.iter().find(|finding| finding.rule == RULE);
        // Of 299 ns of the scheduler a quarter, for one split of four.
        let Some(What::HostOps(HostOps { around_ns, .. })) = found.map(|it| &it.what) else {
            panic!("{explained:#?}")
        };
        assert_eq!(*around_ns, 3 * 299 / 4);
    }

    /// How many layers a server has is not seen, so the host's are not all there are.
    #[test]
    fn layers_beside_a_device_whose_ops_are_not_seen() {
        let ops = "op CPU MUL_MAT 0..400 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                   op CPU MUL_MAT 400..800 ffn_out-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                   op GPU SPLIT 800..1000 - run=@ split=1 measured=host_call";
        let found = crate::findings::staged::found(&tokens(3, 1000, 1000, ops));
        let What::HostOps(HostOps { which, on_device_ns, .. }) = &found[0].what else {
            panic!("{found:?}")
        };
        assert_eq!(*which, WhichHostOps::Layers { first: 0, last: 0, count: 1, of: None });
        assert_eq!((*on_device_ns, found[0].certainty), (None, Certainty::Likely));
    }

    /// One op behind the layers: of a language model, or of something else that ends in another way.
    #[test]
    fn what_belongs_to_no_layer_is_not_always_the_output() {
        let which = |name: &str| {
            let ops = format!(
                "op GPU MUL_MAT 0..100 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                 op GPU MUL_MAT 100..200 ffn_out-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                 op CPU MUL_MAT 200..1000 {name} f32[64] <- f32[64,64] f32[64] run=@ split=1"
            );
            let found = crate::findings::staged::found(&tokens(3, 1000, 1000, &ops));
            found
                .into_iter()
                .filter(|it| it.rule == RULE)
                .map(|it| match it.what {
                    What::HostOps(HostOps { which, .. }) => which,
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(which("result_output"), [WhichHostOps::Output]);
        assert_eq!(which("mel_filter"), [WhichHostOps::Op { layers: 0 }]);
        assert_eq!(which("inp_scaled"), []);
    }

    /// A library for products that computes on the same processor was not asked for reasons.
    #[test]
    fn certain_is_what_the_scheduler_says() {
        let ops = "op GPU MUL_MAT 0..100 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                   op GPU MUL_MAT 100..200 ffn_out-0 f32[64] <- f32[64,64] f32[64] run=@ split=0
                   op BLAS MUL_MAT 200..600 Qcur-1 f32[64] <- f32[64,64] f32[64] run=@ split=1
                   op BLAS MUL_MAT 600..1000 ffn_out-1 f32[64] <- f32[64,64] f32[64] run=@ split=1";
        let text = format!("backend 2 BLAS accel\n{}", tokens(3, 1000, 1000, ops));
        let found = crate::findings::staged::found(&text);
        assert_eq!((found[0].rule, found[0].certainty), (RULE, Certainty::Likely));
    }
}
