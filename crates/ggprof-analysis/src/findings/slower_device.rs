//! R23: a device that takes longer for the same ops than the host does: a driver in software, or small
//! graphics beside a strong processor.

use super::scene::{OpKey, Scene};
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use ggprof_trace::{BackendIndex, SignatureId};
use hashbrown::HashMap;
use std::cmp::Reverse;

/// What the same calls take on the device, and would take on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowerDevice {
    pub device: BackendIndex,
    pub calls: u64,
    pub device_ns: u64,
    pub host_ns: u64,
}

pub(super) const RULE: Rule = Rule(23);

/// Less may be noise, or what changing sides costs.
const LEAST_RATIO: f64 = 1.25;
/// Of what the device computes, the part that can be compared: one small op does not tell of layers.
const LEAST_PART: f64 = 0.25;

/// Time and number of calls.
type TimeAndCalls = (u64, u64);

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let (on_host, on_devices) = by_signature(scene, place);
    let of_it = |(device, ops): (BackendIndex, BySignature)| {
        Some((device, of_device(place, budget, device, &ops, &on_host)?))
    };
    let mut found: Vec<(BackendIndex, Finding)> =
        on_devices.into_iter().filter_map(of_it).collect();
    found.sort_by_key(|(device, finding)| (Reverse(finding.cost_ns), *device));
    found.into_iter().map(|(_, finding)| finding).collect()
}

type BySignature = HashMap<SignatureId, TimeAndCalls>;

fn by_signature(
    scene: &Scene<'_>,
    place: usize,
) -> (BySignature, HashMap<BackendIndex, BySignature>) {
    let mut on_host = BySignature::new();
    let mut on_devices: HashMap<BackendIndex, BySignature> = HashMap::new();
    let is_told = |key: &OpKey| scene.op(key) != ggprof_trace::Signature::WHOLE_SPLIT;
    for (key, op) in scene.tallies[place].ops.iter().filter(|(key, _)| is_told(key)) {
        let there = match scene.is_of_host(key.backend) {
            true => &mut on_host,
            false => on_devices.entry(key.backend).or_default(),
        };
        let sum = there.entry(key.signature).or_default();
        *sum = (sum.0 + op.ns, sum.1 + op.count);
    }
    for (device, signature, estimate) in scene.unseen_in(place) {
        if let Some(ops) = on_devices.get_mut(&device)
            && let Some(sum) = ops.get_mut(&signature)
        {
            *sum = (sum.0 + estimate.ns as u64, sum.1 + estimate.calls.round() as u64);
        }
    }
    (on_host, on_devices)
}

/// What the device takes for ops that the host computes, too, of the same shapes and types.
fn of_device(
    place: usize,
    budget: &Budget,
    device: BackendIndex,
    ops: &BySignature,
    on_host: &BySignature,
) -> Option<Finding> {
    let (mut device_ns, mut host_ns, mut calls) = (0, 0, 0);
    for (signature, (ns, count)) in ops {
        let Some((of_host_ns, of_host)) = on_host.get(signature) else { continue };
        device_ns += ns;
        host_ns += (u128::from(*of_host_ns) * u128::from(*count) / u128::from(*of_host)) as u64;
        calls += count;
    }
    let all_ns: u64 = ops.values().map(|(ns, _)| ns).sum();
    let is_part = device_ns as f64 >= LEAST_PART * all_ns as f64;
    if device_ns == 0 || !is_part || (device_ns as f64) < LEAST_RATIO * host_ns as f64 {
        return None;
    }
    Some(Finding {
        rule: RULE,
        budget: place,
        cost_ns: (device_ns - host_ns).min(budget.wall_ns),
        is_estimate: true,
        certainty: Certainty::Likely,
        what: What::SlowerDevice(SlowerDevice { device, calls, device_ns, host_ns }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, in_samples, tokens};

    /// One layer on each.
    #[test]
    fn a_layer_that_the_host_computes_faster() {
        let layers = |device_ns: u64, host_ns: u64| {
            let end_ns = device_ns + host_ns;
            let ops = format!(
                "op GPU MUL_MAT 0..{device_ns} Qcur-0 f32[64] <- f32[64,64] f32[64] run=@
                 op CPU MUL_MAT {device_ns}..{end_ns} Qcur-1 f32[64] <- f32[64,64] f32[64] run=@"
            );
            tokens(3, 1000, 1000, &ops)
        };
        let found = check(RULE, &layers(800, 200), 3 * 600, &layers(500, 500));
        let What::SlowerDevice(SlowerDevice { calls, device_ns, host_ns, .. }) = found.what else {
            panic!()
        };
        assert_eq!((calls, device_ns, host_ns), (3, 3 * 800, 3 * 200));
        // Where the device is the faster one, the host's layer is what costs.
        check(super::super::host_ops::RULE, &layers(200, 800), 3 * 600, &layers(800, 200));
    }

    /// Of every other token the device's ops are known.
    #[test]
    fn a_slower_device_in_samples() {
        let ops = "op GPU MUL_MAT 0..800 Qcur-0 f32[64] <- f32[64,64] f32[64] run=@
                   op CPU MUL_MAT 800..1000 Qcur-1 f32[64] <- f32[64,64] f32[64] run=@";
        let found = crate::findings::staged::found(&in_samples(&tokens(4, 1000, 1000, ops)));
        assert_eq!((found[0].rule, found[0].cost_ns), (RULE, 4 * 600));
        let What::SlowerDevice(SlowerDevice { calls, .. }) = found[0].what else { panic!() };
        assert_eq!(calls, 4);
    }

    /// The first norm is on the host, those behind it on the device.
    #[test]
    fn one_small_op_does_not_tell_of_layers() {
        let ops = "op CPU RMS_NORM 0..10 norm-0 f32[64] <- f32[64] run=@
                   op GPU MUL_MAT 100..800 up-0 f32[64] <- f32[64,64] f32[64] run=@
                   op GPU RMS_NORM 800..1000 norm-1 f32[64] <- f32[64] run=@";
        let found = crate::findings::staged::found(&tokens(3, 1000, 1000, ops));
        assert!(found.iter().all(|finding| finding.rule != RULE), "{found:?}");
    }

    /// A prompt on the device and its last token on the host tell nothing of each other.
    #[test]
    fn other_shapes_are_not_compared() {
        let ops = "op GPU MUL_MAT 0..900 up-0 f32[64,32] <- f32[64,64] f32[64,32] run=@
                   op CPU MUL_MAT 900..1000 up-1 f32[64] <- f32[64,64] f32[64] run=@";
        let found = crate::findings::staged::found(&tokens(3, 1000, 1000, ops));
        assert!(found.iter().all(|finding| finding.rule != RULE), "{found:?}");
    }
}
