//! Many runs, one after the other, with what is known of the programs kept in between.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::baseline::{Baseline, Unfit};
use super::round::{Choice, Finding};
use super::tally::Tally;
use crate::built::target_directory;

#[derive(Debug)]
pub struct Campaign {
    directory: PathBuf,
    baselines: BTreeMap<&'static str, Result<Baseline, Unfit>>,
    pub tally: Tally,
}

impl Campaign {
    /// In a fresh directory, short because the launcher's socket lies in it. Tests of one process
    /// run at the same time, and may choose the same programs.
    pub fn new() -> Campaign {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let directory = target_directory().join("chaos").join(name);
        Campaign { directory, baselines: BTreeMap::new(), tally: Tally::default() }
    }

    /// Carries out a choice; what is kept of a run with violations lies in the directory of its
    /// seed.
    pub fn run(&mut self, choice: &Choice) -> Finding {
        let name = choice.program.name;
        let directory = self.directory.join("baseline").join(name.replace(['/', ' '], "-"));
        let place = self.place(choice);
        let baseline = self.baselines.entry(name);
        let finding = match baseline.or_insert_with(|| Baseline::of(choice.program, &directory)) {
            Ok(baseline) => choice.run(baseline, &place),
            Err(Unfit::Unavailable(reason)) => Finding::Impossible(format!("{name}: {reason}")),
            Err(Unfit::Violated(how)) => Finding::Violated(vec![how.clone()]),
        };
        if !matches!(finding, Finding::Violated(_) | Finding::Unsteady(_)) {
            _ = std::fs::remove_dir_all(place);
        }
        self.tally.count(choice, &finding);
        finding
    }

    /// Where a run's files are.
    pub fn place(&self, choice: &Choice) -> PathBuf {
        self.directory.join(choice.seed.to_string())
    }
}

impl Default for Campaign {
    fn default() -> Campaign {
        Campaign::new()
    }
}
