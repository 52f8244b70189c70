//! `ggprof diff`: what changed between two sides, and what contributes to it.

use crate::baseline::Baseline;
use crate::cli::{DiffArgs, FormatArg, JudgedArgs, PrintArgs, ShownArgs};
use crate::comparison::Sides;
use crate::exit::Outcome;
use crate::fail_if::{FailIf, Found};
use crate::{messages, printing};
use anyhow::bail;
use ggprof_analysis::diff::Diff;
use ggprof_report::documents::{self, Compared};
use std::path::PathBuf;

pub(crate) fn diff(arguments: &DiffArgs) -> anyhow::Result<Outcome> {
    let (a, b) = sides(arguments)?;
    let sides = Sides::read(a, b, &arguments.part)?;
    conclude(&sides, &arguments.judged, &arguments.shown, &arguments.print)
}

/// The recordings of each side.
fn sides(arguments: &DiffArgs) -> anyhow::Result<(&[PathBuf], &[PathBuf])> {
    match (&arguments.files[..], &arguments.vs[..]) {
        ([a, b], []) => Ok((std::slice::from_ref(a), std::slice::from_ref(b))),
        (a, b @ [_, ..]) => Ok((a, b)),
        (files, []) => bail!(
            "{} recordings do not make two sides. Name two, or put `--vs` between the sides: \
             ggprof diff A1 A2 --vs B1 B2.",
            files.len()
        ),
    }
}

/// Prints what changed, and says whether it is what a script asked about.
pub(super) fn conclude(
    sides: &Sides,
    judged: &JudgedArgs,
    shown: &ShownArgs,
    print: &PrintArgs,
) -> anyhow::Result<Outcome> {
    let baseline = judged.baseline.as_deref().map(Baseline::open).transpose()?;
    let mut diff = sides.diff(shown.by.into());
    baseline.iter().for_each(|baseline| baseline.apply(&mut diff, sides));
    show(sides, &diff, shown, print)?;
    if let Some(baseline) = baseline {
        baseline.learn(sides)?;
    }
    let found: Vec<Found> = judged.fail_if.iter().map(|it| it.look_at(&diff)).collect();
    for (condition, found) in judged.fail_if.iter().zip(&found) {
        say(condition, *found);
    }
    Ok(match found.contains(&Found::Fails) {
        true => Outcome::Changed,
        false if sides.is_incomplete() || diff.phases.is_empty() => Outcome::Incomplete,
        false => Outcome::Done,
    })
}

fn say(condition: &FailIf, found: Found) {
    match found {
        Found::Holds => {}
        Found::Fails => messages::note(&format!("ggprof: {condition} is true.")),
        Found::Unclear => messages::warning(&format!(
            "whether {condition} cannot be told from so many runs: a change of that size may be \
             noise. Make more of them, or record longer ones."
        )),
        Found::NoPhase => messages::warning(&format!(
            "{condition} was not looked at: the two sides have no such phase in common."
        )),
    }
}

fn show(sides: &Sides, diff: &Diff, shown: &ShownArgs, print: &PrintArgs) -> anyhow::Result<()> {
    let is_for_people = matches!(print.format, FormatArg::Table | FormatArg::Markdown);
    let document = documents::diff(&Compared {
        diff,
        differences: &sides.differences(),
        names: sides.names(),
        warnings: sides.losses(),
        most: is_for_people.then_some(shown.top),
    });
    printing::print(print, &[document])
}
