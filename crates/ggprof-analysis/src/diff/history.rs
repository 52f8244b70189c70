//! How much recordings of the same program differ on a machine, from comparisons that were made there
//! before: a change within that is no change.

use super::comparison::{Diff, PhaseDiff, PhaseName};
use super::ledger::{Ledger, PhaseLedger};
use crate::percentiles::percentile;

/// Fewer differences do not tell what is usual.
const LEAST_PAIRS: usize = 10;

/// Two recordings of the same, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub program: String,
    pub phase: PhaseName,
    /// By how much they differ, of what a unit took.
    pub share: f64,
}

/// The differences between the recordings of a side, in the order in which they were made.
pub fn pairs(program: &str, side: &[Ledger]) -> Vec<Pair> {
    let named = |phase: &PhaseLedger| PhaseName { kind: phase.kind, label: phase.label.clone() };
    let unit_ns = |phase: &PhaseLedger| phase.wall_ns as f64 / phase.units as f64;
    let mut pairs = Vec::new();
    for both in side.windows(2) {
        for phase in &both[0].phases {
            let name = named(phase);
            let later = both[1].phases.iter().find(|later| named(later) == name);
            let Some(later) = later.filter(|later| later.units > 0 && phase.units > 0) else {
                continue;
            };
            let (before, after) = (unit_ns(phase), unit_ns(later));
            let share = (after - before).abs() / before.min(after).max(1.0);
            pairs.push(Pair { program: program.to_owned(), phase: name, share });
        }
    }
    pairs
}

/// How far two sides of the same may be apart, of what a unit took, 19 times out of 20. `None` if too
/// little is known of that program and phase.
pub fn usual(
    history: &[Pair],
    program: &str,
    phase: &PhaseName,
    sizes: (usize, usize),
) -> Option<f64> {
    /// Shares become whole numbers of this part.
    const PART: f64 = 1e9;
    let is_meant = |pair: &&Pair| pair.program == program && pair.phase == *phase;
    let shares = history.iter().filter(is_meant).map(|pair| (pair.share * PART).ceil() as u64);
    let mut shares: Vec<u64> = shares.collect();
    let largest = percentile(&mut shares, 95) as f64 / PART;
    // Medians vary less than single recordings: by 1.25 deviations over the root of their number.
    let smaller = match sizes.0.min(sizes.1) {
        0..=2 => 1.0,
        several => 1.25 / (several as f64).sqrt(),
    };
    (shares.len() >= LEAST_PAIRS).then_some(largest * smaller)
}

impl Diff {
    /// Notes what is usual on this machine.
    pub fn with_history(&mut self, history: &[Pair], program: &str) {
        for phase in &mut self.phases {
            phase.usual_share = usual(history, program, &phase.name, self.sizes);
        }
    }
}

impl PhaseDiff {
    /// Whether its change is more than noise. One recording a side tells that only together with what
    /// is usual on the machine.
    pub fn is_certain(&self) -> bool {
        match self.usual_share.zip(self.total.share()) {
            Some((usual, share)) => share.abs() > usual && self.total.is_certain(),
            None => self.total.is_certain(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::PhaseKind;

    #[test]
    fn what_is_usual() {
        let phase = PhaseName { kind: PhaseKind::Generation, label: None };
        let other = PhaseName { kind: PhaseKind::Prompt, label: None };
        let pair = |at: u32| Pair {
            program: "llama-bench".to_owned(),
            phase: phase.clone(),
            share: f64::from(at) / 1000.0,
        };
        let history: Vec<Pair> = (1..=20).map(pair).collect();
        let found = |program: &str, phase: &PhaseName, sizes| {
            usual(&history, program, phase, sizes).map(|share| (share * 1e5).round() / 1e5)
        };
        assert_eq!(found("llama-bench", &phase, (1, 1)), Some(0.019));
        assert_eq!(found("llama-bench", &phase, (25, 30)), Some(0.00475));
        assert_eq!(found("llama-bench", &other, (1, 1)), None);
        assert_eq!(found("node", &phase, (1, 1)), None);
        assert_eq!(usual(&history[..9], "llama-bench", &phase, (1, 1)), None);
    }
}
