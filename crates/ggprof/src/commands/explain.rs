//! `ggprof explain`: where each token's time goes, why, and what to change.

use crate::cli::ExplainArgs;
use crate::exit::Outcome;
use crate::printing;
use crate::recording::Recording;
use ggprof_report::documents;
use std::path::{Path, PathBuf};

pub(crate) fn explain(arguments: &ExplainArgs) -> anyhow::Result<Outcome> {
    let files = arguments.files.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = files.chain(arguments.part.peaks.as_deref()).collect();
    arguments.print.check(&inputs)?;
    let mut recording = Recording::open_all(&arguments.files)?;
    recording.select(&arguments.part)?;
    let document = documents::explain(&recording.trace, &recording.name, recording.peaks.as_ref());
    printing::print(&arguments.print, &[document])?;
    Ok(recording.outcome())
}
