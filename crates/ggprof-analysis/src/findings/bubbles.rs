//! R18: devices that wait for each other, or one that has nothing to do.

use super::scene::Scene;
use super::{BusyDevice, Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};

pub(super) const RULE: Rule = Rule(18);

/// Of the phase's wall time: together they are busy for at least so long, or something else is the
/// matter.
const LEAST_BUSY: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let devices: Vec<BusyDevice> = scene
        .devices()
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
    let what = What::Bubbles { devices };
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: true, certainty, what }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, tokens};

    #[test]
    fn one_of_two_devices_is_idle() {
        let ops = "op GPU MUL_MAT 0..1000 Qcur-0 run=@ measured=device";
        let one = tokens(3, 1000, 1000, ops);
        let found = check(RULE, &format!("backend 2 GPU2 gpu\n{one}"), 1500, &one);
        let What::Bubbles { devices } = found.what else { panic!() };
        assert_eq!(devices.iter().map(|device| device.share).collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(found.certainty, Certainty::Likely);
    }
}
