//! Compares the ledgers of two sides: what a unit of each phase (a token, a graph run) took, and what
//! contributes to the change.
//!
//! With several recordings a side, a recording is a sample. What its tokens took is no set of
//! samples: they depend on each other. With one recording a side, blocks of consecutive steps are
//! drawn instead, which tells how steady each recording was, and not how much recordings differ. So
//! nothing is certain then, but a phase on a machine of which that is known (`history.rs`).

use super::alike::factors;
use super::key::{Activity, Depth, Key, Match};
use super::ledger::{Ledger, PhaseLedger};
use super::matching::{Called, Matched, matched};
use crate::phases::PhaseKind;
use crate::statistics::{
    ALARMS, Interval, Resamples, deviations_of_blocks_to_be_seen, deviations_to_be_seen,
    false_discovery_rates, least_p, mann_whitney, median,
};
use hashbrown::HashMap;
use std::cmp::Reverse;

/// Parts of a phase that take less, on both sides together, are not tested: nobody asks about them,
/// and each test makes all others less certain.
const LEAST_SHARE: f64 = 0.005;

#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Recordings of each side.
    pub sizes: (usize, usize),
    /// So many times it is looked at more and more recordings, and each time chance may show a change.
    pub looks: usize,
    pub phases: Vec<PhaseDiff>,
    /// Phases that only one side has, with what a unit of them took.
    pub only_a: Vec<(PhaseName, f64)>,
    pub only_b: Vec<(PhaseName, f64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhaseName {
    pub kind: PhaseKind,
    /// `None` for all phases of its kind.
    pub label: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PhaseDiff {
    pub name: PhaseName,
    /// Recordings of each side that have it.
    pub recordings: (usize, usize),
    /// Tokens or graph runs of each side, in all recordings.
    pub units: (u64, u64),
    pub total: Change,
    /// How far two sides of the same are apart on this machine, if that is known.
    pub usual_share: Option<f64>,
    /// Certain changes first, then those whose interval does not contain zero, then the others, what is
    /// only on one side at the end; of each the largest first.
    pub rows: Vec<DiffRow>,
    /// What all ops of a recording have in common, if that was taken away from their rows: not more than
    /// noise, or it would be in them.
    pub alike: Option<Change>,
    /// What medians of parts do not add up to. Nothing with one recording a side.
    pub rest_ns: f64,
}

/// Nanoseconds per unit on both sides, and what can be said of the difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub a_ns: f64,
    pub b_ns: f64,
    pub interval: Option<Interval>,
    /// How often chance alone does the same, corrected for how many were tested: of all changes with
    /// one that is not larger, at most that part is expected to be none. `None` where it was not
    /// tested, or cannot be.
    pub chance: Option<f64>,
    /// A true change of this size would have been seen four times out of five, if nothing else changed.
    /// `None` where none would, however large.
    pub smallest_seen_ns: Option<f64>,
}

impl Change {
    pub fn ns(&self) -> f64 {
        self.b_ns - self.a_ns
    }

    /// Of what it was.
    pub fn share(&self) -> Option<f64> {
        (self.a_ns > 0.0).then(|| self.ns() / self.a_ns)
    }

    /// Whether it is more than noise, as far as the samples can tell.
    pub fn is_certain(&self) -> bool {
        self.chance.is_some_and(|it| it <= ALARMS)
            && self.interval.is_some_and(|interval| interval.excludes_zero())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    pub how: Match,
    /// What both sides have in common, or the only side has.
    pub key: Key,
    /// The keys of each side that were taken together.
    pub a: Vec<Key>,
    pub b: Vec<Key>,
    pub change: Change,
    /// Calls per unit of each side, and the calls that were interrupted.
    pub calls: (f64, f64),
    pub interrupted: (f64, f64),
}

impl DiffRow {
    /// What of the change comes from another number of calls, and what from another time for a call.
    /// `None` where calls of the two sides are not the same.
    pub fn by_calls_and_time(&self) -> Option<(f64, f64)> {
        let (a, b) = self.calls;
        if self.how >= Match::SamePart || a <= 0.0 || b <= 0.0 {
            return None;
        }
        let (time_a, time_b) = (self.change.a_ns / a, self.change.b_ns / b);
        Some(((b - a) * time_a.midpoint(time_b), (time_b - time_a) * a.midpoint(b)))
    }
}

/// Compares two sides of at least one ledger each, rows as fine as `depth`.
pub fn compare(a: &[Ledger], b: &[Ledger], depth: Depth) -> Diff {
    look(a, b, depth, 1)
}

/// The same as one of several looks at more and more recordings.
pub fn look(a: &[Ledger], b: &[Ledger], depth: Depth, looks: usize) -> Diff {
    let by_label = labels(a.iter().chain(b));
    let sides = [a, b].map(|side| -> Vec<Side> {
        side.iter().map(|ledger| named(ledger, by_label, depth)).collect()
    });
    let [a, b] = &sides;
    let mut names: Vec<&PhaseName> = a.iter().chain(b).flat_map(|it| it.names.iter()).collect();
    let mut seen = hashbrown::HashSet::new();
    names.retain(|name| seen.insert(*name));
    let sizes = (a.len(), b.len());
    let mut diff = Diff { sizes, looks, phases: vec![], only_a: vec![], only_b: vec![] };
    for name in names {
        let [of_a, of_b] = [a, b].map(|side| -> Vec<&PhaseLedger> {
            side.iter().filter_map(|it| it.phases.get(name)).filter(|it| it.units > 0).collect()
        });
        match (of_a.is_empty(), of_b.is_empty()) {
            (false, false) => diff.phases.push(compare_phase(name, &of_a, &of_b)),
            (false, true) => diff.only_a.push((name.clone(), median(&wholes(&of_a)))),
            (true, false) => diff.only_b.push((name.clone(), median(&wholes(&of_b)))),
            (true, true) => {}
        }
    }
    diff.correct();
    diff
}

/// What a unit of each phase took, in each recording that has it.
pub(super) fn by_name(ledgers: &[Ledger]) -> Vec<(PhaseName, Vec<f64>)> {
    let by_label = labels(ledgers.iter());
    let sides: Vec<Side> =
        ledgers.iter().map(|ledger| named(ledger, by_label, Depth::Backend)).collect();
    let mut names: Vec<&PhaseName> = sides.iter().flat_map(|side| &side.names).collect();
    let mut seen = hashbrown::HashSet::new();
    names.retain(|name| seen.insert(*name));
    let times = |name: &PhaseName| {
        let phases = sides.iter().filter_map(|side| side.phases.get(name));
        wholes(&phases.filter(|phase| phase.units > 0).collect::<Vec<_>>())
    };
    names.into_iter().map(|name| (name.clone(), times(name))).collect()
}

/// Whether all have phases with the same names.
fn labels<'l>(mut ledgers: impl Iterator<Item = &'l Ledger>) -> bool {
    let labels = |ledger: &Ledger| {
        let mut labels: Vec<_> =
            ledger.phases.iter().map(|phase| (phase.kind, phase.label.clone())).collect();
        labels.sort();
        labels
    };
    let Some(first) = ledgers.next().map(labels) else { return true };
    first.iter().all(|(_, label)| label.is_some()) && ledgers.all(|it| labels(it) == first)
}

/// The phases of one recording under the names that they are compared by.
struct Side {
    names: Vec<PhaseName>,
    phases: HashMap<PhaseName, PhaseLedger>,
}

fn named(ledger: &Ledger, by_label: bool, depth: Depth) -> Side {
    let mut side = Side { names: Vec::new(), phases: HashMap::new() };
    for phase in &ledger.phases {
        let label = phase.label.clone().filter(|_| by_label);
        let name = PhaseName { kind: phase.kind, label };
        let phase = phase.cut(depth);
        match side.phases.get_mut(&name) {
            Some(known) => known.join(&phase),
            None => {
                side.names.push(name.clone());
                side.phases.insert(name, phase);
            }
        }
    }
    side
}

fn wholes(side: &[&PhaseLedger]) -> Vec<f64> {
    side.iter().map(|phase| phase.wall_ns as f64 / phase.units as f64).collect()
}

fn compare_phase(name: &PhaseName, a: &[&PhaseLedger], b: &[&PhaseLedger]) -> PhaseDiff {
    let (keys_a, keys_b) = (Keys::of(a), Keys::of(b));
    let test = Test::of(a, b);
    let whole_blocks = |side: &[&PhaseLedger]| -> Vec<(f64, f64)> {
        side[0].blocks.iter().map(|block| (block.wall_ns as f64, block.units as f64)).collect()
    };
    let total = test.change(&wholes(a), &wholes(b), || (whole_blocks(a), whole_blocks(b)));
    let matched = matched(&keys_a.called(), &keys_b.called());
    let factors = common_factors(&keys_a, &keys_b, &matched, &total);
    let factors = factors.as_deref();
    let both = Both { a: &keys_a, b: &keys_b, test: &test, total: &total, factors };
    let rows: Vec<DiffRow> = matched.iter().map(|row| both.row(row)).collect();
    let alike = factors.map(|factors| both.alike(&matched, factors));
    let named_ns: f64 = rows.iter().map(|row| &row.change).chain(&alike).map(Change::ns).sum();
    let units = |side: &[&PhaseLedger]| side.iter().map(|phase| phase.units).sum();
    let is_single = a.len() == 1 && b.len() == 1;
    let rest_ns = if is_single { 0.0 } else { total.ns() - named_ns };
    PhaseDiff {
        name: name.clone(),
        recordings: (a.len(), b.len()),
        units: (units(a), units(b)),
        total,
        usual_share: None,
        rows,
        alike,
        rest_ns,
    }
}

/// How much slower than usual each recording was, those of the first side first.
fn common_factors(
    a: &Keys<'_>,
    b: &Keys<'_>,
    rows: &[Matched],
    total: &Change,
) -> Option<Vec<f64>> {
    let is_op =
        |row: &&Matched| row.how == Match::Same && a.keys[row.a[0]].activity == Activity::Op;
    let times = |row: &Matched| [a.times(&row.a), b.times(&row.b)];
    let is_large = |[a, b]: &[Vec<f64>; 2]| is_tested(a, b, total);
    let ops = rows.iter().filter(is_op).map(times).filter(is_large);
    let ops: Vec<Vec<f64>> = ops.map(|both| both.concat()).collect();
    factors(&ops, (a.phases.len(), b.phases.len()))
}

fn is_tested(a: &[f64], b: &[f64], total: &Change) -> bool {
    median(a) + median(b) >= LEAST_SHARE * (total.a_ns + total.b_ns)
}

impl Diff {
    /// All phases were tested together, and all rows of all phases. Then rows are put in order: certain
    /// ones, then those whose interval does not contain zero, then the others, because on a busy machine
    /// the largest changes are noise; what is only on one side at the end; and the largest first.
    fn correct(&mut self) {
        let phases = self.phases.iter_mut();
        correct_chances(phases.map(|it| (it.recordings, &mut it.total)).collect(), self.looks);
        let rows = self.phases.iter_mut().flat_map(|phase| {
            let recordings = phase.recordings;
            phase.rows.iter_mut().map(move |row| (recordings, &mut row.change))
        });
        correct_chances(rows.collect(), self.looks);
        for phase in &mut self.phases {
            phase.rows.sort_by_cached_key(|row| {
                let size = (row.change.ns().abs() * 1000.0) as u64;
                let is_alone = row.how >= Match::OnlyA;
                let is_apart = row.change.interval.is_some_and(|it| it.excludes_zero());
                let sure = (Reverse(row.change.is_certain()), Reverse(is_apart));
                (is_alone, sure, Reverse(size), row.key.clone())
            });
        }
    }
}

/// Corrects the chances of what was tested together, and tells what would have been seen. Each change has
/// the recordings of its sides.
pub(super) fn correct_chances(mut changes: Vec<((usize, usize), &mut Change)>, looks: usize) {
    changes.retain(|(_, change)| change.chance.is_some());
    let chances: Vec<f64> = changes.iter().filter_map(|(_, change)| change.chance).collect();
    // One that changes alone must be so rare.
    let asked = ALARMS / (chances.len() * looks).max(1) as f64;
    let mut known: HashMap<(usize, usize), Option<f64>> = HashMap::new();
    for ((sizes, change), rate) in changes.into_iter().zip(false_discovery_rates(&chances)) {
        change.chance = Some((rate * looks as f64).min(1.0));
        let deviations = *known.entry(sizes).or_insert_with(|| match sizes {
            (1, 1) => Some(deviations_of_blocks_to_be_seen(asked)),
            several => deviations_to_be_seen(several, asked),
        });
        let interval = change.interval.filter(|interval| interval.least_chance <= asked);
        change.smallest_seen_ns =
            interval.zip(deviations).map(|(interval, it)| interval.deviation * it);
    }
}

/// How two sides are tested.
enum Test {
    Recordings(Resamples),
    /// One recording a side: their blocks. That the two differ in them is no sign that two recordings of
    /// the same would not, so it is no chance.
    Blocks(Resamples),
}

impl Test {
    fn of(a: &[&PhaseLedger], b: &[&PhaseLedger]) -> Self {
        if (a.len(), b.len()) != (1, 1) {
            return Self::Recordings(Resamples::of_sides(a.len(), b.len()));
        }
        let (blocks_a, blocks_b) = (a[0].blocks.len(), b[0].blocks.len());
        // The same steps: what becomes slower with the context does so on both sides.
        Self::Blocks(match a[0].steps == b[0].steps && blocks_a == blocks_b {
            true => Resamples::of_pairs(blocks_a),
            false => Resamples::of_sides(blocks_a, blocks_b),
        })
    }

    /// From what each recording took per unit; the blocks are asked for where they are needed.
    fn change(
        &self,
        a: &[f64],
        b: &[f64],
        blocks: impl FnOnce() -> (Vec<(f64, f64)>, Vec<(f64, f64)>),
    ) -> Change {
        let (interval, chance) = match self {
            Self::Recordings(resamples) => {
                let can_tell = least_p(a.len(), b.len()) <= ALARMS;
                let chance = can_tell.then(|| mann_whitney(a, b));
                (resamples.of_medians(a, b), chance)
            }
            Self::Blocks(resamples) => {
                let (a, b) = blocks();
                (resamples.of_rates(&a, &b), None)
            }
        };
        Change { interval, chance, ..Self::untested(a, b) }
    }

    fn untested(a: &[f64], b: &[f64]) -> Change {
        let (a_ns, b_ns) = (median(a), median(b));
        Change { a_ns, b_ns, interval: None, chance: None, smallest_seen_ns: None }
    }
}

/// The keys of a side, and what each recording has of them.
struct Keys<'l> {
    phases: &'l [&'l PhaseLedger],
    keys: Vec<&'l Key>,
    /// For each recording and key the place of its entry.
    places: Vec<Vec<Option<usize>>>,
}

impl<'l> Keys<'l> {
    fn of(phases: &'l [&'l PhaseLedger]) -> Self {
        let mut place_of: HashMap<&Key, usize> = HashMap::new();
        let mut keys: Vec<&Key> = Vec::new();
        for entry in phases.iter().flat_map(|phase| &phase.entries) {
            place_of.entry(&entry.key).or_insert_with(|| {
                keys.push(&entry.key);
                keys.len() - 1
            });
        }
        let places = phases.iter().map(|phase| {
            let mut places = vec![None; keys.len()];
            for (at, entry) in phase.entries.iter().enumerate() {
                places[place_of[&entry.key]] = Some(at);
            }
            places
        });
        Self { phases, places: places.collect(), keys }
    }

    fn called(&self) -> Vec<Called<'_>> {
        let calls = |key: usize| median(&self.each(&[key], |phase, at| phase.entries[at].calls));
        self.keys.iter().enumerate().map(|(at, key)| (*key, calls(at))).collect()
    }

    /// A sum over keys per unit, of each recording.
    fn each(&self, keys: &[usize], value: impl Fn(&PhaseLedger, usize) -> f64) -> Vec<f64> {
        let recordings = self.phases.iter().zip(&self.places);
        let sum = |(phase, places): (&&PhaseLedger, &Vec<Option<usize>>)| {
            let entries = keys.iter().filter_map(|&key| places[key]);
            // An empty sum of floats is a negative nothing.
            let sum = entries.fold(0.0, |sum, at| sum + value(phase, at));
            sum / phase.units as f64
        };
        recordings.map(sum).collect()
    }

    fn blocks(&self, keys: &[usize]) -> Vec<(f64, f64)> {
        let places: Vec<usize> = keys.iter().filter_map(|&key| self.places[0][key]).collect();
        let blocks = self.phases[0].blocks.iter();
        blocks
            .map(|block| {
                let ns: u64 = places.iter().map(|&at| block.ns[at]).sum();
                (ns as f64, block.units as f64)
            })
            .collect()
    }

    /// What they took per unit in each recording.
    fn times(&self, keys: &[usize]) -> Vec<f64> {
        self.each(keys, |phase, at| phase.entries[at].ns as f64)
    }

    fn calls(&self, keys: &[usize]) -> f64 {
        median(&self.each(keys, |phase, at| phase.entries[at].calls))
    }

    fn interrupted(&self, keys: &[usize]) -> f64 {
        median(&self.each(keys, |phase, at| phase.entries[at].interrupted as f64))
    }

    fn of_row(&self, keys: &[usize]) -> Vec<Key> {
        let mut keys: Vec<Key> = keys.iter().map(|&at| self.keys[at].clone()).collect();
        keys.sort();
        keys
    }
}

/// Both sides of a phase, and all that rows need to know of them.
struct Both<'d> {
    a: &'d Keys<'d>,
    b: &'d Keys<'d>,
    test: &'d Test,
    total: &'d Change,
    factors: Option<&'d [f64]>,
}

impl Both<'_> {
    fn row(&self, row: &Matched) -> DiffRow {
        let (keys_a, keys_b) = (self.a.of_row(&row.a), self.b.of_row(&row.b));
        let common = keys_a.iter().chain(&keys_b).cloned().reduce(|one, other| one.common(&other));
        let key = common.unwrap_or_default();
        DiffRow {
            how: row.how,
            change: self.change(row),
            key,
            a: keys_a,
            b: keys_b,
            calls: (self.a.calls(&row.a), self.b.calls(&row.b)),
            interrupted: (self.a.interrupted(&row.a), self.b.interrupted(&row.b)),
        }
    }

    /// What each recording of either side took.
    fn times(&self, row: &Matched) -> (Vec<f64>, Vec<f64>) {
        (self.a.times(&row.a), self.b.times(&row.b))
    }

    fn is_op(&self, row: &Matched) -> bool {
        let (mut a, mut b) = (row.a.iter(), row.b.iter());
        a.all(|&at| self.a.keys[at].activity == Activity::Op)
            && b.all(|&at| self.b.keys[at].activity == Activity::Op)
    }

    /// What was taken away from all ops of each recording.
    fn alike(&self, rows: &[Matched], factors: &[f64]) -> Change {
        let mut taken = [vec![0.0; self.a.phases.len()], vec![0.0; self.b.phases.len()]];
        for row in rows.iter().filter(|row| self.is_op(row)) {
            let (a, b) = self.times(row);
            let of_all = taken.iter_mut().flatten().zip(a.iter().chain(&b).zip(factors));
            of_all.for_each(|(taken, (ns, factor))| *taken += ns - ns / factor);
        }
        let [a, b] = &taken;
        Change { chance: None, ..self.test.change(a, b, Default::default) }
    }

    /// Of ops, apart from what all ops of a recording have in common.
    fn change(&self, row: &Matched) -> Change {
        let (mut a, mut b) = self.times(row);
        if let Some(factors) = self.factors.filter(|_| self.is_op(row)) {
            a.iter_mut().chain(&mut b).zip(factors).for_each(|(ns, factor)| *ns /= factor);
        }
        match is_tested(&a, &b, self.total) {
            true => self.test.change(&a, &b, || (self.a.blocks(&row.a), self.b.blocks(&row.b))),
            false => Test::untested(&a, &b),
        }
    }
}

impl PhaseLedger {
    /// The same with coarser keys.
    fn cut(&self, depth: Depth) -> Self {
        if depth == Depth::Kernel {
            return self.clone();
        }
        let (entries, blocks, steps) = (Vec::new(), Vec::new(), Vec::new());
        let label = self.label.clone();
        let mut cut = Self { kind: self.kind, label, units: 0, wall_ns: 0, entries, blocks, steps };
        let mut finer = self.clone();
        for entry in &mut finer.entries {
            entry.key = depth.cut(&entry.key);
        }
        cut.join(&finer);
        cut.label = finer.label;
        cut
    }
}

#[cfg(test)]
mod tests;
