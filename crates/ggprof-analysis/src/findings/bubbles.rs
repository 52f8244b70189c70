//! R18: devices that wait for each other, or one that has nothing to do.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use ggprof_trace::BackendIndex;

#[derive(Debug, Clone, PartialEq)]
pub struct Bubbles {
    pub devices: Vec<BusyDevice>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyDevice {
    pub backend: BackendIndex,
    /// Of the phase's wall time.
    pub share: f64,
}

pub(super) const RULE: Rule = Rule(18);

/// Of the phase's wall time: together they are busy for at least so long, or something else is the
/// matter.
const LEAST_BUSY: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let devices: Vec<BusyDevice> = scene
        .devices_of(budget)
        .map(|backend| {
            let is_its =
                |spent| matches!(spent, Spent::Computing { backend: of, .. } if of == backend);
            BusyDevice { backend, share: budget.share(budget.sum(is_its)) }
        })
        .collect();
    let busy: f64 = devices.iter().map(|device| device.share).sum();
    if devices.len() < 2 || busy < LEAST_BUSY {
        return Vec::new();
    }
    // Were the work divided evenly, and done at the same time.
    let most = devices.iter().map(|device| device.share).fold(0.0, f64::max);
    let is_idle = devices.iter().any(|device| device.share < 0.05 * most);
    let saved = busy - busy / devices.len() as f64;
    let cost_ns = (budget.wall_ns as f64 * saved) as u64;
    let certainty = if is_idle { Certainty::Likely } else { Certainty::Possible };
    let what = What::Bubbles(Bubbles { devices });
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, found_in, tokens};
    use ggprof_trace::{Provenance, Trace, merge, text_fixture};

    #[test]
    fn one_of_two_devices_is_idle() {
        let ops = "op GPU MUL_MAT 0..1000 Qcur-0 run=@ measured=device";
        let one = tokens(3, 1000, 1000, ops);
        let found = check(RULE, &format!("backend 2 GPU2 gpu\n{one}"), 1500, &one);
        let What::Bubbles(Bubbles { devices }) = found.what else { panic!() };
        assert_eq!(devices.iter().map(|device| device.share).collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(found.certainty, Certainty::Likely);
    }

    /// Two workers, each with a device of its own, that wait for nobody.
    #[test]
    fn devices_of_other_processes_do_not_count() {
        let worker = |pid: u32, device: &str| {
            let ops = format!("op {device} MUL_MAT 0..600 Qcur-0 run=@ measured=device");
            let text = tokens(3, 1000, 600, &ops);
            let mut trace: Trace = text_fixture::parse(&format!("backend 0 {device} gpu\n{text}"));
            let clock_anchors = vec![(0, 1_000_000_000)];
            trace.provenance = Some(Provenance { pid, clock_anchors, ..Provenance::default() });
            trace
        };
        let costs = |trace: &Trace| -> Vec<_> {
            found_in(trace).into_iter().map(|it| (it.rule, it.cost_ns, it.what)).collect()
        };
        let alone = costs(&worker(1, "CUDA0"));
        assert!(!alone.is_empty());
        let both = merge(vec![worker(1, "CUDA0"), worker(2, "CUDA1")]).unwrap();
        assert_eq!(costs(&both), [&alone[..], &alone[..]].concat());
    }
}
