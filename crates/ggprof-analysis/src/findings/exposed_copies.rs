//! R3: copies under which nothing computes. Those of weights are R5's.

use super::copied::CopiedGroup;
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::copies::TensorClass;
use ggprof_trace::CopyDirection;

#[derive(Debug, Clone, PartialEq)]
pub struct ExposedCopies {
    pub direction: CopyDirection,
    pub copies: Vec<CopiedGroup>,
}

pub(super) const RULE: Rule = Rule(3);

/// Of the phase's wall time.
const LEAST: f64 = 0.1;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let directions = [
        CopyDirection::HostToDevice,
        CopyDirection::DeviceToHost,
        CopyDirection::DeviceToDevice,
        CopyDirection::HostToHost,
    ];
    let is_weights =
        |row: &&CopiedGroup| matches!(row.class, TensorClass::Weights | TensorClass::Experts);
    let of_direction = |direction: CopyDirection| {
        let copies: Vec<CopiedGroup> = scene
            .copies_of(place)
            .filter(|row| row.direction == direction && row.exposed_ns > 0 && !is_weights(row))
            .cloned()
            .collect();
        let cost_ns = copies.iter().map(|row| row.exposed_ns).sum();
        (budget.share(cost_ns) >= LEAST).then_some(Finding {
            rule: RULE,
            budget: place,
            cost_ns,
            is_estimate: false,
            certainty: Certainty::Likely,
            what: What::ExposedCopies(ExposedCopies { direction, copies }),
        })
    };
    directions.into_iter().filter_map(of_direction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, tokens};

    #[test]
    fn copies_are_hidden_or_not() {
        let copied = |times: &str| {
            tokens(
                3,
                1000,
                1000,
                &format!("op GPU MUL_MAT 0..600 Qcur-0 run=@\ncopy GPU H2D {times} 64 inp_x run=@"),
            )
        };
        check(RULE, &copied("500..1000"), 3 * 400, &copied("100..600"));
    }

    /// Of six devices, all count.
    #[test]
    fn every_kind_of_copy_costs() {
        let copy = |at: u64| {
            let (start, end) = (at * 100, at * 100 + 100);
            format!("copy GPU{at} H2D {start}..{end} 64 inp_x run=@\n")
        };
        let copies: String = (0..6).map(copy).collect();
        let devices = (0..6).map(|at| format!("backend {} GPU{at} gpu\n", at + 2));
        let text = |copies: &str| {
            let ops = format!("{copies}op GPU MUL_MAT 600..1000 Qcur-0 run=@");
            format!("{}{}", devices.clone().collect::<String>(), tokens(3, 1000, 1000, &ops))
        };
        check(RULE, &text(&copies), 3 * 600, &text(""));
    }
}
