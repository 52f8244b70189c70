//! R24: a control group, such as a container, that is not let run for a part of the time, because it has used up
//! its limit of processor time.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::processors::throttled_processors;

#[derive(Debug, Clone, PartialEq)]
pub struct Throttled {
    /// Of the phase's wall time.
    pub share: f64,
}

pub(super) const RULE: Rule = Rule(24);

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let threads = scene.tallies[place].threads;
    let spans: Vec<(u64, u64)> = budget
        .phases
        .iter()
        .map(|&phase| &scene.phases.phases[phase as usize])
        .map(|phase| (phase.start_ns, phase.end_ns))
        .collect();
    let process = scene.process_of(budget);
    let standing = throttled_processors(scene.trace, process, &spans);
    let Some(standing) = standing else { return Vec::new() };
    // They stand all at once.
    let share = (standing / f64::from(threads.max(1))).min(1.0);
    vec![Finding {
        rule: RULE,
        budget: place,
        cost_ns: (budget.wall_ns as f64 * share) as u64,
        is_estimate: true,
        certainty: Certainty::Certain,
        what: What::Throttled(Throttled { share }),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{explain, found_in, parse, tokens};
    use ggprof_trace::{Quantity, Sensor};

    /// Two threads that compute for 3,000 ns, and a limit that they use up again and again.
    #[test]
    fn two_threads_with_one_processor() {
        let ops = "op CPU MUL_MAT 0..1000 Qcur-0 run=@ threads=2:2000:1000:0";
        let mut trace = parse(&tokens(3, 1000, 1000, ops));
        trace.sensors.push(Sensor {
            quantity: Quantity::ThrottledTime,
            device: 0,
            machine: 0,
            process: None,
            name: String::new(),
            is_forbidden: false,
            every_ns: 1000,
            times_ns: vec![0, 3000],
            values: vec![5, 8],
        });
        let first = &found_in(&trace)[0];
        assert_eq!((first.rule, first.cost_ns), (RULE, 1500));
        assert_eq!(first.what, What::Throttled(Throttled { share: 0.5 }));
        trace.sensors[0].values = vec![5, 5];
        assert!(explain(&trace).findings.iter().all(|finding| finding.rule != RULE));
    }
}
