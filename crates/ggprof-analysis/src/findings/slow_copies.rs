//! R4: copies to a device that are slower than the link.

use super::copied::CopiedGroup;
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::peaks::{HostMemory, LinkDirection};
use ggprof_trace::CopyDirection;

#[derive(Debug, Clone, PartialEq)]
pub struct SlowCopies {
    pub copies: Vec<CopiedGroup>,
    pub gb_per_s: f64,
    pub best_gb_per_s: f64,
    pub best: RateFrom,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateFrom {
    /// What was measured of this machine.
    Peaks,
    /// The best of the recording.
    BestSeen,
}

pub(super) const RULE: Rule = Rule(4);

/// Of the best rate.
const SLOW: f64 = 0.6;

pub(super) fn find(scene: &Scene<'_>, place: usize, _: &Budget) -> Vec<Finding> {
    let copies: Vec<CopiedGroup> = scene
        .copies_of(place)
        .filter(|row| row.direction == CopyDirection::HostToDevice && row.large.1 > 0)
        .cloned()
        .collect();
    let (bytes, ns) =
        copies.iter().fold((0, 0), |(bytes, ns), row| (bytes + row.large.0, ns + row.large.1));
    let Some((best_gb_per_s, best)) = best_rate(scene, &copies) else { return Vec::new() };
    let gb_per_s = bytes as f64 / ns.max(1) as f64;
    if ns == 0 || gb_per_s >= SLOW * best_gb_per_s {
        return Vec::new();
    }
    let exposed_ns: u64 = copies.iter().map(|row| row.exposed_ns).sum();
    let cost_ns = (exposed_ns as f64 * (1.0 - gb_per_s / best_gb_per_s)) as u64;
    vec![Finding {
        rule: RULE,
        budget: place,
        cost_ns,
        is_estimate: true,
        certainty: Certainty::Likely,
        what: What::SlowCopies(SlowCopies { copies, gb_per_s, best_gb_per_s, best }),
    }]
}

/// As it was measured of the link, or the best of all copies of the recording.
fn best_rate(scene: &Scene<'_>, copies: &[CopiedGroup]) -> Option<(f64, RateFrom)> {
    let measured = copies.first().and_then(|row| {
        let device = scene.peaks?.device_of(scene.trace, row.backend)?;
        device.copy_rate(LinkDirection::HostToDevice, HostMemory::Pinned)
    });
    if let Some(rate) = measured {
        return Some((rate / 1e9, RateFrom::Peaks));
    }
    let to_devices = scene.copies.iter().filter(|row| row.direction == CopyDirection::HostToDevice);
    let best = to_devices.filter_map(|row| row.gb_per_s()).reduce(f64::max)?;
    Some((best, RateFrom::BestSeen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{explain, parse, tokens};

    /// The prompt's copies show what the link can do.
    #[test]
    fn slower_than_the_link() {
        let prompt = "run 90000000..91000000
             op GPU MUL_MAT 90000000..90000100 Qcur-0 f32[64,32] run=3
             copy GPU H2D 90000100..90100100 2000000 inp_x run=3\n";
        let copied = |end: u64| {
            let ops = format!(
                "op GPU MUL_MAT 0..1000 Qcur-0 run=@
                 copy GPU H2D 1000..{end} 2000000 inp_x run=@"
            );
            explain(&parse(&format!("{}{prompt}", tokens(3, 1_000_000, 1_000_000, &ops))))
        };
        let slow = copied(1_000_000);
        let of_rule = |finding: &&crate::findings::Finding| finding.rule == RULE;
        let finding = slow.findings.iter().find(of_rule).expect("copies at a tenth of the rate");
        let What::SlowCopies(SlowCopies { gb_per_s, best_gb_per_s, .. }) = &finding.what else {
            panic!()
        };
        assert_eq!((gb_per_s.round(), best_gb_per_s.round()), (2.0, 20.0));
        assert!(copied(101_000).findings.iter().find(of_rule).is_none());
    }
}
