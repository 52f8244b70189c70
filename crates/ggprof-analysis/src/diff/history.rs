//! How much recordings of the same program differ on a machine, from comparisons that were made there
//! before: a change within that is no change, and one recording a side tells nothing without it.

use super::comparison::{Diff, PhaseDiff, PhaseName, correct_chances};
use super::identity::{Identity, Origin};
use super::ledger::{Ledger, PhaseLedger};
use crate::statistics::ALARMS;

/// A change must be so many times the usual one to be larger four times out of five: 2.33 deviations are
/// usual, and 0.84 are added so that this happens that often.
const SEEN: f64 = (2.33 + 0.84) / 2.33;

/// Two recordings of the same, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub of: Origin,
    pub phase: PhaseName,
    /// Which ones they are.
    pub recordings: [String; 2],
    /// By how much they differ, of what a unit took.
    pub share: f64,
}

/// The differences between the recordings of a side, in the order in which they were made.
pub fn pairs<'l>(side: impl Iterator<Item = (&'l Ledger, &'l Identity)>) -> Vec<Pair> {
    let side: Vec<_> = side.collect();
    let of_the_same = side.windows(2).filter(|both| both[0].1.origin == both[1].1.origin);
    of_the_same.flat_map(|both| pairs_of(both[0], both[1])).collect()
}

fn pairs_of(before: (&Ledger, &Identity), after: (&Ledger, &Identity)) -> Vec<Pair> {
    let named = |phase: &PhaseLedger| PhaseName { kind: phase.kind, label: phase.label.clone() };
    let unit_ns = |phase: &PhaseLedger| phase.wall_ns as f64 / phase.units as f64;
    let pair = |phase: &PhaseLedger| {
        let later = after.0.phases.iter().find(|later| named(later) == named(phase))?;
        let (one, other) = (unit_ns(phase), unit_ns(later));
        (phase.units > 0 && later.units > 0).then(|| Pair {
            of: before.1.origin.clone(),
            phase: named(phase),
            recordings: [before.1, after.1].map(|it| it.recording.clone()),
            share: (other - one).abs() / one.min(other).max(1.0),
        })
    };
    before.0.phases.iter().filter_map(pair).collect()
}

/// Adds pairs to those that are known. Each must have a recording that none of them has: the same
/// recordings once more, in whatever order, tell nothing new.
pub fn learn(known: &mut Vec<Pair>, found: Vec<Pair>) {
    for pair in found {
        let is_known = |recording: &String| {
            let of_it = |old: &Pair| old.recordings.contains(recording);
            known.iter().any(|old| old.of == pair.of && old.phase == pair.phase && of_it(old))
        };
        if !pair.recordings.iter().all(is_known) {
            known.push(pair);
        }
    }
}

/// How far two sides of the same may be apart, of what a unit took, 98 times out of 100. `None` if too
/// little is known of that program and phase. `sizes` are the recordings of each side.
pub fn usual(
    history: &[Pair],
    of: &Origin,
    phase: &PhaseName,
    sizes: (usize, usize),
) -> Option<f64> {
    let is_meant = |pair: &&Pair| pair.of == *of && pair.phase == *phase;
    let mut shares: Vec<f64> = history.iter().filter(is_meant).map(|pair| pair.share).collect();
    shares.sort_unstable_by(f64::total_cmp);
    // A further one is as likely to be the largest as each of them. So the largest of 49 is exceeded by two
    // in a hundred, and that of fewer by more.
    let exceeded_by = (ALARMS * (shares.len() + 1) as f64) as usize;
    let largest = shares.get(shares.len() - exceeded_by)?;
    // Medians vary less than single recordings: by 1.25 deviations over the root of their number.
    let smaller = match sizes.0.min(sizes.1) {
        0..=2 => 1.0,
        several => 1.25 / (several as f64).sqrt(),
    };
    Some(largest * smaller)
}

impl Diff {
    /// Notes what is usual on this machine of all that the recordings are of. With that, one recording a
    /// side can be tested.
    pub fn with_history(&mut self, history: &[Pair], of: &[&Origin]) {
        let mut tested = Vec::new();
        for phase in &mut self.phases {
            let usual = |of: &&Origin| usual(history, of, &phase.name, phase.recordings);
            // One of which nothing is known may differ by anything.
            let all: Option<Vec<f64>> = of.iter().map(usual).collect();
            phase.usual_share = all.and_then(|all| all.into_iter().reduce(f64::max));
            if phase.is_alone() && phase.knows_noise() {
                phase.total.chance = phase.total.interval.map(|interval| interval.chance);
                tested.push((phase.recordings, &mut phase.total));
            }
        }
        correct_chances(tested, self.looks);
    }
}

impl PhaseDiff {
    /// Whether each side has one recording of it.
    pub fn is_alone(&self) -> bool {
        self.recordings == (1, 1)
    }

    /// Whether it is known how much recordings of the same differ: from several a side, or from those that
    /// were made on the machine before.
    pub fn knows_noise(&self) -> bool {
        !self.is_alone() || self.usual_share.is_some()
    }

    /// Whether its change is more than noise.
    pub fn is_certain(&self) -> bool {
        let is_usual = |usual: f64| self.total.share().is_some_and(|share| share.abs() <= usual);
        self.knows_noise() && self.total.is_certain() && !self.usual_share.is_some_and(is_usual)
    }

    /// The most that its change may be; `None` where that is unknown.
    pub fn most_ns(&self) -> Option<f64> {
        let high = self.total.interval?.high;
        match self.is_alone() {
            true => Some(high.max(self.total.ns() + self.usual_ns()?)),
            false => Some(high),
        }
    }

    /// A true change of this size would have been seen four times out of five; `None` where none would.
    pub fn smallest_seen_ns(&self) -> Option<f64> {
        let seen_ns = self.total.smallest_seen_ns?;
        self.knows_noise().then(|| seen_ns.max(self.usual_ns().unwrap_or(0.0) * SEEN))
    }

    fn usual_ns(&self) -> Option<f64> {
        Some(self.usual_share? * self.total.a_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Change;
    use crate::phases::PhaseKind;
    use crate::statistics::Interval;

    fn phase(kind: PhaseKind) -> PhaseName {
        PhaseName { kind, label: None }
    }

    fn of(program: &str) -> Origin {
        Origin { program: program.to_owned(), ..Origin::default() }
    }

    /// The first recording and the second, which differ by a part of a thousand.
    fn pair(first: u32, second: u32) -> Pair {
        let recordings = [first, second].map(|it| it.to_string());
        let phase = phase(PhaseKind::Generation);
        Pair { of: of("llama-bench"), phase, recordings, share: f64::from(first) / 1000.0 }
    }

    #[test]
    fn what_is_usual() {
        let history: Vec<Pair> = (1..=149).map(|at| pair(at, at + 1)).collect();
        let [tokens, prompt] = [PhaseKind::Generation, PhaseKind::Prompt].map(phase);
        let found = |of: &Origin, phase: &PhaseName, sizes| {
            usual(&history, of, phase, sizes).map(|share| (share * 1e5).round() / 1e5)
        };
        let bench = of("llama-bench");
        assert_eq!(found(&bench, &tokens, (1, 1)), Some(0.147));
        assert_eq!(found(&bench, &tokens, (25, 30)), Some(0.03675));
        assert_eq!(found(&bench, &prompt, (1, 1)), None);
        assert_eq!(found(&of("node"), &tokens, (1, 1)), None);
        let elsewhere = Origin { machine: "another".to_owned(), ..bench.clone() };
        assert_eq!(found(&elsewhere, &tokens, (1, 1)), None);
        assert_eq!(usual(&history[..49], &bench, &tokens, (1, 1)), Some(0.049));
        assert_eq!(usual(&history[..48], &bench, &tokens, (1, 1)), None);
    }

    #[test]
    fn the_same_recordings_tell_nothing_new() {
        let mut known = Vec::new();
        learn(&mut known, vec![pair(1, 2), pair(2, 3)]);
        learn(&mut known, vec![pair(2, 1), pair(1, 3)]);
        learn(&mut known, vec![pair(3, 4), pair(4, 3)]);
        assert_eq!(known, [pair(1, 2), pair(2, 3), pair(3, 4)]);
        // Of another program they may have the same names.
        let other = Pair { of: of("node"), ..pair(1, 2) };
        learn(&mut known, vec![other.clone()]);
        assert_eq!(known.last(), Some(&other));
    }

    /// A change of 8 % of 100 ns that the blocks of both recordings show.
    fn alone(usual_share: Option<f64>) -> Diff {
        let (chance, least_chance) = (0.001, 0.001);
        let interval = Interval { low: 7.0, high: 9.0, chance, least_chance, deviation: 0.5 };
        let (interval, chance, smallest_seen_ns) = (Some(interval), None, None);
        let total = Change { a_ns: 100.0, b_ns: 108.0, interval, chance, smallest_seen_ns };
        let phase = PhaseDiff {
            name: phase(PhaseKind::Generation),
            recordings: (1, 1),
            units: (1, 1),
            total,
            usual_share: None,
            rows: vec![],
            alike: None,
            rest_ns: 0.0,
        };
        let (sizes, phases) = ((1, 1), vec![phase]);
        let mut diff = Diff { sizes, looks: 1, phases, only_a: vec![], only_b: vec![] };
        let usual = |share: f64| (1..=60).map(|at| Pair { share, ..pair(at, at + 1) }).collect();
        let history: Vec<Pair> = usual_share.map(usual).unwrap_or_default();
        diff.with_history(&history, &[&of("llama-bench")]);
        diff
    }

    /// What is usual of one program tells nothing of another one.
    #[test]
    fn both_sides_must_be_known() {
        let mut diff = alone(Some(0.05));
        let history: Vec<Pair> = (1..=60).map(|at| pair(at, at + 1)).collect();
        diff.with_history(&history, &[&of("llama-bench"), &of("node")]);
        assert_eq!(diff.phases[0].usual_share, None);
        let of_node = |pair: &Pair| Pair { of: of("node"), share: 0.2, ..pair.clone() };
        let both = [history.clone(), history.iter().map(of_node).collect()].concat();
        diff.with_history(&both, &[&of("llama-bench"), &of("node")]);
        assert_eq!(diff.phases[0].usual_share, Some(0.2));
    }

    #[test]
    fn one_recording_a_side_needs_to_know_what_is_usual() {
        let [unknown, less, more] = [None, Some(0.05), Some(0.1)].map(alone);
        let told = |diff: &Diff| {
            let phase = &diff.phases[0];
            let rounded = |ns: Option<f64>| ns.map(f64::round);
            (phase.is_certain(), rounded(phase.most_ns()), rounded(phase.smallest_seen_ns()))
        };
        assert_eq!(told(&unknown), (false, None, None));
        assert_eq!(told(&less), (true, Some(13.0), Some(7.0)));
        assert_eq!(told(&more), (false, Some(18.0), Some(14.0)));
    }
}
