//! `ggprof diff`: what changed between two sides, and what contributes to it.

use crate::cli::{DiffArgs, FormatArg, PrintArgs, ShownArgs};
use crate::comparison::{self, Side};
use crate::exit::Outcome;
use crate::printing;
use anyhow::bail;
use ggprof_analysis::diff::{Diff, Difference};
use ggprof_report::documents::{self, Compared};
use std::path::PathBuf;

pub(crate) fn diff(arguments: &DiffArgs) -> anyhow::Result<Outcome> {
    let (a, b) = sides(arguments)?;
    let sides = comparison::read(a, b, &arguments.part)?;
    let (diff, differences) = comparison::changes(&sides, arguments.shown.by.into());
    print(&sides, &diff, &differences, &arguments.shown, &arguments.print)?;
    let is_incomplete = sides.iter().any(Side::is_incomplete) || diff.phases.is_empty();
    Ok(if is_incomplete { Outcome::Incomplete } else { Outcome::Done })
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

pub(super) fn print(
    sides: &[Side; 2],
    diff: &Diff,
    differences: &[Difference],
    shown: &ShownArgs,
    print: &PrintArgs,
) -> anyhow::Result<()> {
    let is_for_people = matches!(print.format, FormatArg::Table | FormatArg::Markdown);
    let [a, b] = sides;
    let document = documents::diff(&Compared {
        diff,
        differences,
        names: (a.names.clone(), b.names.clone()),
        warnings: a.losses.iter().chain(&b.losses).cloned().collect(),
        most: is_for_people.then_some(shown.top),
    });
    printing::print(print, &[document])
}
