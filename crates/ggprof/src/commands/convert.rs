//! `ggprof convert`: a recording in other formats, chosen by the name of the file.

use crate::cli::ConvertArgs;
use crate::exit::Outcome;
use crate::format::Format;
use crate::input::Recording;
use crate::output;

pub(crate) fn convert(arguments: &ConvertArgs) -> anyhow::Result<Outcome> {
    let mut recording = Recording::open(&arguments.file)?;
    recording.select(&arguments.part)?;
    for path in &arguments.output {
        output::to_file(path, |out| Format::of(path).write(&recording, out))?;
    }
    recording.warn_of_losses();
    Ok(recording.outcome())
}
