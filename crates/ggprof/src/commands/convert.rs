//! `ggprof convert`: a recording in other formats, chosen by the name of the file.

use crate::cli::ConvertArgs;
use crate::exit::Outcome;
use crate::input::Recording;
use crate::{messages, output};
use ggprof_report::{caveats, text, viewer};
use ggprof_trace::formats::{csv, ggml_json};
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn convert(arguments: &ConvertArgs) -> anyhow::Result<Outcome> {
    let recording = Recording::open(&arguments.file)?;
    for path in &arguments.output {
        output::to_file(path, |out| write(&recording, path, out))?;
    }
    for loss in caveats(&recording.trace).iter().filter(|caveat| caveat.is_loss()) {
        messages::warning(&loss.sentence());
    }
    Ok(recording.outcome())
}

/// Writes the recording in the format that the name of the file asks for.
pub(super) fn write(recording: &Recording, path: &Path, out: &mut dyn Write) -> io::Result<()> {
    let Recording { trace, name } = recording;
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("txt") => write_text(recording, out),
        Some("csv") => csv::write(trace, out),
        Some("html" | "htm") => viewer::write(trace, name, None, out),
        _ => write_json(recording, out),
    }
}

pub(super) fn write_text(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(text::text(&recording.trace).as_bytes())
}

pub(super) fn write_json(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    ggml_json::write(&recording.trace, out)
}
