//! `ggprof export`: parts of a recording for other programs.

use crate::cli::{Export, ExportOpsArgs};
use crate::exit::Outcome;
use crate::recording::Recording;
use crate::{op_export, output};
use std::path::Path;

pub(crate) fn export(what: &Export) -> anyhow::Result<Outcome> {
    match what {
        Export::Ops(arguments) => ops(arguments),
    }
}

fn ops(arguments: &ExportOpsArgs) -> anyhow::Result<Outcome> {
    let output = arguments.output.as_deref().unwrap_or(Path::new("-"));
    let inputs = [arguments.file.as_path()].into_iter().chain(arguments.part.peaks.as_deref());
    inputs.into_iter().try_for_each(|input| output::spare(input, output))?;
    output::check(output)?;
    let mut recording = Recording::open(&arguments.file)?;
    recording.select(&arguments.part)?;
    op_export::write(&recording, arguments.top, &arguments.numbers, output)?;
    recording.warn_of_losses();
    Ok(recording.outcome())
}
