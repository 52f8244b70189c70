//! `ggprof diff`: what changed between two sides, and what contributes to it.

use crate::baseline::Baseline;
use crate::cli::{DiffArgs, JudgedArgs, PrintArgs, ShownArgs};
use crate::comparison::Sides;
use crate::exit::Outcome;
use crate::fail_if::{FailIf, Found};
use crate::format::FormatArg;
use crate::format::Output;
use crate::input::named_twice;
use crate::recording::Recording;
use crate::{messages, output, printing};
use anyhow::bail;
use ggprof_analysis::diff::Diff;
use ggprof_report::documents::{self, Compared};
use ggprof_report::{Document, viewer};
use std::path::{Path, PathBuf};

pub(crate) fn diff(arguments: &DiffArgs) -> anyhow::Result<Outcome> {
    let (a, b) = sides(arguments)?;
    for side in [a, b] {
        if let Some(twice) = named_twice(side) {
            bail!(messages::named_twice(twice));
        }
    }
    let recordings = a.iter().chain(b).map(PathBuf::as_path);
    let inputs: Vec<&Path> = recordings.chain(arguments.part.peaks.as_deref()).collect();
    arguments.print.check(&inputs)?;
    if let Some(page) = &arguments.html {
        page.check(&inputs)?;
        output::apart([&*page.path, arguments.print.path()])?;
    }
    let baseline = Baseline::of(&arguments.judged)?;
    let open = |path: &PathBuf| Recording::open_part(path, &arguments.part);
    let first = [open(&a[0])?, open(&b[0])?];
    let mut sides = Sides::of_first(&first[0], &first[1]);
    // A page shows them. They are not read again: a pipe gives what is in it once.
    let on_page = arguments.html.as_ref().map(|page| (page, first));
    sides.read_others([a, b], &arguments.part)?;
    if let Some(both) = sides.named_twice() {
        bail!(messages::same_recording(both));
    }
    let diff = judged(&sides, baseline.as_ref(), &arguments.shown);
    if let Some((page, first)) = on_page {
        write_page(page, &first, &document(&sides, &diff, None))?;
    }
    show(&sides, &diff, &arguments.shown, &arguments.print)?;
    conclude(&sides, &diff, baseline, &arguments.judged)
}

/// Prints what changed in the end, and says whether it is what a script asked about.
pub(super) fn finish(
    sides: &Sides,
    baseline: Option<Baseline>,
    asked: &JudgedArgs,
    shown: &ShownArgs,
    print: &PrintArgs,
) -> anyhow::Result<Outcome> {
    let diff = judged(sides, baseline.as_ref(), shown);
    show(sides, &diff, shown, print)?;
    conclude(sides, &diff, baseline, asked)
}

/// What changed, with what is usual on this machine.
fn judged(sides: &Sides, baseline: Option<&Baseline>, shown: &ShownArgs) -> Diff {
    let mut diff = sides.diff(shown.by.into());
    baseline.into_iter().for_each(|baseline| baseline.apply(&mut diff, sides));
    diff
}

/// Both timelines and the comparison.
fn write_page(page: &Output, first: &[Recording; 2], document: &Document) -> anyhow::Result<()> {
    let recordings = first.each_ref().map(|it| (&it.trace, &*it.name));
    page.fill(|out| viewer::write_pair(recordings, document, out))?;
    messages::note(&format!("HTML page written to {}.", page.path.display()));
    Ok(())
}

/// The recordings of each side.
fn sides(arguments: &DiffArgs) -> anyhow::Result<(&[PathBuf], &[PathBuf])> {
    match (&arguments.files[..], &arguments.vs[..]) {
        ([a, b], []) => Ok((std::slice::from_ref(a), std::slice::from_ref(b))),
        (a, b @ [_, ..]) => Ok((a, b)),
        ([_], []) => bail!(
            "One recording has nothing to be compared with. Name a second one: ggprof diff A B."
        ),
        (files, []) => bail!(
            "{} recordings do not make two sides. Name two, or put `--vs` between the sides: \
             ggprof diff A1 A2 --vs B1 B2.",
            files.len()
        ),
    }
}

/// Says whether what changed is what a script asked about, and keeps what it tells of this machine.
fn conclude(
    sides: &Sides,
    diff: &Diff,
    baseline: Option<Baseline>,
    asked: &JudgedArgs,
) -> anyhow::Result<Outcome> {
    if let Some(baseline) = baseline {
        baseline.learn(sides)?;
    }
    let found: Vec<Found> = asked.fail_if.iter().map(|it| it.look_at(diff)).collect();
    for (condition, found) in asked.fail_if.iter().zip(&found) {
        say(condition, *found);
    }
    if !found.contains(&Found::Fails) {
        check_phases(asked, diff)?;
    }
    Ok(match found.contains(&Found::Fails) {
        true => Outcome::Changed,
        false if sides.is_incomplete() || diff.phases.is_empty() => Outcome::Incomplete,
        false => Outcome::Done,
    })
}

fn say(condition: &FailIf, found: Found) {
    match found {
        // Of the last, the command fails.
        Found::Holds | Found::NoPhase => {}
        Found::Fails => messages::note(&format!("ggprof: {condition} is true.")),
        Found::Unclear => messages::warning(&format!(
            "whether {condition} cannot be told from so many runs: a change of that size may be \
             noise. Make more of them, or record longer ones."
        )),
        Found::Alone => messages::warning(&format!(
            "whether {condition} cannot be told from one recording a side: how much recordings of the \
             same differ is unknown. Compare five a side (`--vs`), or name a --baseline that knows it."
        )),
    }
}

/// Refuses conditions on phases that the two sides do not have.
pub(super) fn check_phases(asked: &JudgedArgs, diff: &Diff) -> anyhow::Result<()> {
    let mut conditions = asked.fail_if.iter();
    match conditions.find(|condition| condition.look_at(diff) == Found::NoPhase) {
        Some(condition) => bail!(no_phase(condition, diff)),
        None => Ok(()),
    }
}

/// A condition that looks at nothing would never be true again.
fn no_phase(condition: &FailIf, diff: &Diff) -> String {
    let names: Vec<String> =
        diff.phases.iter().map(|phase| documents::compared_phase(&phase.name)).collect();
    let common = match names.is_empty() {
        true => "they have none in common".to_owned(),
        false => format!("they have {} in common", names.join(", ")),
    };
    format!("{condition} cannot be looked at: the two sides have no such phase; {common}.")
}

fn show(sides: &Sides, diff: &Diff, shown: &ShownArgs, print: &PrintArgs) -> anyhow::Result<()> {
    let is_for_people = matches!(print.format(), FormatArg::Table | FormatArg::Markdown);
    printing::print(print, &[document(sides, diff, is_for_people.then_some(shown.top))])
}

fn document(sides: &Sides, diff: &Diff, most: Option<usize>) -> Document {
    documents::diff(&Compared {
        diff,
        differences: &sides.differences(),
        names: sides.names(),
        warnings: sides.losses(),
        most,
    })
}
