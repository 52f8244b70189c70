//! Two sides of recordings on the way to a comparison.
//!
//! A ledger needs to know what the other side computes together. So the first recording of each side
//! is read first, and all others one after the other: only what is compared stays in memory.

use crate::cli::PartArgs;
use crate::exit::Outcome;
use crate::input::Recording;
use ggprof_analysis::diff::{
    self, Depth, Diff, Difference, Fusions, Ledger, Settings, compare, differences, fusions, ledger,
};
use ggprof_report::caveats;
use std::path::PathBuf;

/// One side.
#[derive(Default)]
pub(crate) struct Side {
    ledgers: Vec<Ledger>,
    settings: Vec<Settings>,
    pub(crate) names: Vec<String>,
    /// What is missing from its recordings, as sentences.
    pub(crate) losses: Vec<String>,
    is_incomplete: bool,
}

impl Side {
    /// Takes a recording; what the other side computes together is taken together.
    pub(crate) fn add(&mut self, recording: &Recording, fused_there: &Fusions) {
        self.ledgers.push(ledger(&recording.trace, fused_there));
        self.settings.push(diff::settings(&recording.trace));
        self.names.push(recording.name.clone());
        let losses = caveats(&recording.trace);
        let losses = losses.iter().filter(|caveat| caveat.is_loss());
        self.losses.extend(losses.map(|loss| format!("{}: {}", recording.name, loss.sentence())));
        self.is_incomplete |= recording.outcome() == Outcome::Incomplete;
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }
}

/// Reads the recordings of both sides.
pub(crate) fn read(a: &[PathBuf], b: &[PathBuf], part: &PartArgs) -> anyhow::Result<[Side; 2]> {
    let open = |path: &PathBuf| -> anyhow::Result<Recording> {
        let mut recording = Recording::open(path)?;
        recording.select(part)?;
        Ok(recording)
    };
    let [first_a, first_b] = [open(&a[0])?, open(&b[0])?];
    let fused = [fusions(&first_b.trace), fusions(&first_a.trace)];
    let mut sides = [Side::default(), Side::default()];
    sides[0].add(&first_a, &fused[0]);
    sides[1].add(&first_b, &fused[1]);
    drop((first_a, first_b));
    for (side, (paths, fused)) in sides.iter_mut().zip([a, b].into_iter().zip(&fused)) {
        for path in &paths[1..] {
            side.add(&open(path)?, fused);
        }
    }
    Ok(sides)
}

/// What changed from the first side to the second.
pub(crate) fn changes([a, b]: &[Side; 2], depth: Depth) -> (Diff, Vec<Difference>) {
    let diff = compare(&a.ledgers, &b.ledgers, depth);
    (diff, differences(&a.settings, &b.settings))
}
