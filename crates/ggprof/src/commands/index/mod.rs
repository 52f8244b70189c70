//! `ggprof index`: how fast the recordings below a directory were, by commit.

mod directory;

use crate::cli::IndexArgs;
use crate::exit::Outcome;
use crate::{messages, output, printing};
use anyhow::bail;
use directory::Index;
use ggprof_analysis::catalogue::series;
use ggprof_report::documents::{self, Catalogued};
use ggprof_report::viewer;

pub(crate) fn index(arguments: &IndexArgs) -> anyhow::Result<Outcome> {
    arguments.print.check(&[])?;
    if let Some(page) = &arguments.html {
        page.check(&[])?;
        output::apart([&*page.path, arguments.print.path()])?;
    }
    let index = Index::of(&arguments.directory)?;
    let unreadable = index.unreadable();
    unreadable.iter().for_each(|why| messages::warning(why));
    let (recordings, copies) = index.recordings();
    if recordings.is_empty() {
        bail!(
            "{} has no recordings (*.ggprof) that can be read, nor have directories below it. \
             `ggprof run -o NAME.ggprof -- COMMAND` makes one.",
            arguments.directory.display()
        );
    }
    let question = arguments.question();
    let series = series(&recordings, &question);
    let damaged = recordings.iter().filter(|(_, entry)| !entry.is_complete).count();
    let catalogued = Catalogued {
        recordings: recordings.len(),
        read: index.read,
        copies,
        unreadable: unreadable.len(),
        damaged,
    };
    let document = documents::index(&series, &question.by, catalogued);
    if let Some(page) = &arguments.html {
        page.fill(|out| viewer::write_history(&series, &document, out))?;
        messages::note(&format!("History written to {}.", page.path.display()));
    }
    printing::print(&arguments.print, &[document])?;
    let is_whole = unreadable.is_empty() && damaged == 0;
    Ok(if is_whole { Outcome::Done } else { Outcome::Incomplete })
}
