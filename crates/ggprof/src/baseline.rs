//! `--baseline DIR`: how much recordings of the same program differ on this machine, kept from one
//! comparison to the next.

use crate::comparison::Sides;
use crate::{messages, output};
use ggprof_analysis::PhaseKind;
use ggprof_analysis::diff::{Diff, Pair, PhaseName, pairs};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Older ones make room for newer ones.
const MOST_PAIRS: usize = 5000;

const KINDS: [(&str, PhaseKind); 5] = [
    ("pp", PhaseKind::Prompt),
    ("tg", PhaseKind::Generation),
    ("mixed", PhaseKind::Mixed),
    ("enc", PhaseKind::Encoding),
    ("graphs", PhaseKind::Graph),
];

pub(crate) struct Baseline {
    file: PathBuf,
    pairs: Vec<Pair>,
}

impl Baseline {
    /// What is kept in a directory; nothing yet if it is new.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)
            .map_err(|error| anyhow::anyhow!(messages::cannot_write(directory, &error)))?;
        let file = directory.join("same-program.json");
        let text = std::fs::read(&file).unwrap_or_default();
        let kept: Value = serde_json::from_slice(&text).unwrap_or_default();
        if kept.is_null() && !text.is_empty() {
            messages::warning(&format!(
                "{} is not what ggprof wrote there, so what is usual on this machine is not known \
                 yet; it will be written anew.",
                file.display()
            ));
        }
        let pairs = kept.as_array().map(|kept| kept.iter().filter_map(pair).collect());
        Ok(Self { file, pairs: pairs.unwrap_or_default() })
    }

    pub(crate) fn apply(&self, diff: &mut Diff, sides: &Sides) {
        diff.with_history(&self.pairs, sides.program());
    }

    /// Adds how much the recordings of each side differ.
    pub(crate) fn learn(mut self, sides: &Sides) -> anyhow::Result<()> {
        let found: Vec<Pair> =
            sides.ledgers().flat_map(|side| pairs(sides.program(), side)).collect();
        if found.is_empty() {
            return Ok(());
        }
        self.pairs.extend(found);
        self.pairs.drain(..self.pairs.len().saturating_sub(MOST_PAIRS));
        let rows: Vec<Value> = self.pairs.iter().map(value).collect();
        output::to_file(&self.file, |out| {
            serde_json::to_writer(&mut *out, &rows)?;
            out.write_all(b"\n")
        })
    }
}

fn value(pair: &Pair) -> Value {
    let kind = KINDS.iter().find(|(_, kind)| *kind == pair.phase.kind).map(|(name, _)| *name);
    json!({
        "program": pair.program, "kind": kind, "phase": pair.phase.label, "difference": pair.share,
    })
}

fn pair(value: &Value) -> Option<Pair> {
    let name = value["kind"].as_str()?;
    let kind = KINDS.iter().find(|(it, _)| *it == name)?.1;
    let label = value["phase"].as_str().map(str::to_owned);
    let share = value["difference"].as_f64().filter(|it| it.is_finite() && *it >= 0.0)?;
    let program = value["program"].as_str()?.to_owned();
    Some(Pair { program, phase: PhaseName { kind, label }, share })
}
