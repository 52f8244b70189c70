//! Two sides of recordings on the way to a comparison.
//!
//! A ledger needs to know what the other side computes together. So the first recording of each side
//! is read first, and all others one after the other: only what is compared stays in memory.

use crate::cli::PartArgs;
use crate::exit::Outcome;
use crate::recording::Recording;
use ggprof_analysis::diff::{
    self, Depth, Diff, Difference, Fusions, Identity, Ledger, Origin, Pair, Settings, differences,
    fusions, identity, ledger, look, pairs,
};
use ggprof_report::caveats;
use std::collections::HashMap;
use std::path::PathBuf;

/// The sides, of which each has at least one recording.
pub(crate) struct Sides {
    sides: [Side; 2],
    /// What the other side computes together.
    fused: [Fusions; 2],
    /// How often they are compared, with more and more recordings.
    looks: usize,
}

/// One side.
#[derive(Default)]
struct Side {
    ledgers: Vec<Ledger>,
    identities: Vec<Identity>,
    settings: Vec<Settings>,
    names: Vec<String>,
    /// What is missing from its recordings, as sentences.
    losses: Vec<String>,
    is_incomplete: bool,
}

impl Side {
    fn add(&mut self, recording: &Recording, fused_there: &Fusions) {
        self.ledgers.push(ledger(&recording.trace, fused_there));
        self.identities.push(identity(&recording.trace));
        self.settings.push(diff::settings(&recording.trace));
        self.names.push(recording.name.clone());
        let losses = caveats(&recording.trace);
        let losses = losses.iter().filter(|caveat| caveat.is_loss());
        self.losses.extend(losses.map(|loss| format!("{}: {}", recording.name, loss.sentence())));
        self.is_incomplete |= recording.outcome() == Outcome::Incomplete;
    }

    fn named_twice(&self) -> Option<[&str; 2]> {
        let mut known = HashMap::new();
        self.identities.iter().zip(&self.names).find_map(|(identity, name)| {
            known.insert(&identity.recording, &**name).map(|first: &str| [first, name])
        })
    }
}

impl Sides {
    pub(crate) fn of_first(a: &Recording, b: &Recording) -> Self {
        let fused = [fusions(&b.trace), fusions(&a.trace)];
        let mut sides = Self { sides: [Side::default(), Side::default()], fused, looks: 1 };
        sides.add(0, a);
        sides.add(1, b);
        sides
    }

    /// Chance may show a change each time, so each of several looks has its part of the alarms.
    pub(crate) fn are_looked_at(&mut self, times: usize) {
        self.looks = times;
    }

    /// Takes a further recording of a side.
    pub(crate) fn add(&mut self, side: usize, recording: &Recording) {
        self.sides[side].add(recording, &self.fused[side]);
    }

    /// Reads all recordings of each side but the first.
    pub(crate) fn read_others(
        &mut self,
        sides: [&[PathBuf]; 2],
        part: &PartArgs,
    ) -> anyhow::Result<()> {
        for (side, paths) in sides.into_iter().enumerate() {
            for path in &paths[1..] {
                self.add(side, &Recording::open_part(path, part)?);
            }
        }
        Ok(())
    }

    /// Two names of one side that stand for the same recording: a copy, or the same in another format.
    pub(crate) fn named_twice(&self) -> Option<[&str; 2]> {
        self.sides.iter().find_map(Side::named_twice)
    }

    /// What changed from the first side to the second.
    pub(crate) fn diff(&self, depth: Depth) -> Diff {
        let [a, b] = &self.sides;
        look(&a.ledgers, &b.ledgers, depth, self.looks)
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        let [a, b] = &self.sides;
        differences(&a.settings, &b.settings)
    }

    /// The differences between the recordings of each side.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let of_side = |side: &Side| pairs(side.ledgers.iter().zip(&side.identities));
        self.sides.iter().flat_map(of_side).collect()
    }

    /// What the recordings are of.
    pub(crate) fn origins(&self) -> Vec<&Origin> {
        let identities = self.sides.iter().flat_map(|side| &side.identities);
        identities.map(|it| &it.origin).fold(Vec::new(), |mut all, origin| {
            if !all.contains(&origin) {
                all.push(origin);
            }
            all
        })
    }

    pub(crate) fn names(&self) -> [Vec<String>; 2] {
        self.sides.each_ref().map(|side| side.names.clone())
    }

    pub(crate) fn losses(&self) -> Vec<String> {
        self.sides.iter().flat_map(|side| side.losses.iter().cloned()).collect()
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.sides.iter().any(|side| side.is_incomplete)
    }
}
