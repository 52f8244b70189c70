//! `--baseline DIR`: how much recordings of the same program differ on this machine, kept from one
//! comparison to the next.

use crate::cli::JudgedArgs;
use crate::comparison::Sides;
use crate::{messages, output};
use ggprof_analysis::diff::{Diff, Pair, learn, read_pairs, written_pairs};
use std::path::{Path, PathBuf};

/// Older ones make room for newer ones.
const MOST_PAIRS: usize = 5000;

pub(crate) struct Baseline {
    file: PathBuf,
    pairs: Vec<Pair>,
}

impl Baseline {
    /// The one that was asked for.
    pub(crate) fn of(asked: &JudgedArgs) -> anyhow::Result<Option<Self>> {
        asked.baseline.as_deref().map(Self::open).transpose()
    }

    /// What is kept in a directory; nothing yet if it is new. What is compared may have taken hours, so
    /// whether it can be added to is found out now.
    fn open(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)
            .map_err(|error| anyhow::anyhow!(messages::cannot_write(directory, &error)))?;
        let file = directory.join("same-program.json");
        output::check(&file)?;
        let text = std::fs::read(&file).unwrap_or_default();
        let pairs = read_pairs(&text);
        if pairs.is_none() && !text.is_empty() {
            messages::warning(&format!(
                "{} is not what ggprof wrote there, so what is usual on this machine is not known \
                 yet; it will be written anew.",
                file.display()
            ));
        }
        Ok(Self { file, pairs: pairs.unwrap_or_default() })
    }

    pub(crate) fn apply(&self, diff: &mut Diff, sides: &Sides) {
        diff.with_history(&self.pairs, &sides.origins());
    }

    /// Adds how much the recordings of each side differ.
    pub(crate) fn learn(mut self, sides: &Sides) -> anyhow::Result<()> {
        let known = self.pairs.len();
        learn(&mut self.pairs, sides.pairs());
        if self.pairs.len() == known {
            return Ok(());
        }
        self.pairs.drain(..self.pairs.len().saturating_sub(MOST_PAIRS));
        output::to_file(&self.file, |out| out.write_all(&written_pairs(&self.pairs)))
    }
}
