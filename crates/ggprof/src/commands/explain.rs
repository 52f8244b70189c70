//! `ggprof explain`: where each token's time goes, why, and what to change.

use crate::cli::ExplainArgs;
use crate::exit::Outcome;
use crate::input::Recording;
use crate::printing;
use ggprof_report::documents;

pub(crate) fn explain(arguments: &ExplainArgs) -> anyhow::Result<Outcome> {
    arguments.print.check(&[&arguments.file])?;
    let mut recording = Recording::open(&arguments.file)?;
    recording.select(&arguments.part)?;
    let document = documents::explain(&recording.trace, &recording.name, recording.peaks.as_ref());
    printing::print(&arguments.print, &[document])?;
    Ok(recording.outcome())
}
