//! `ggprof deliver`: the agent runs this for `GGML_PROFILE`. The recorded program waits for it and
//! lends it its streams; the agent removes the recording when this has succeeded.

use super::run;
use crate::cli::{DeliverArgs, SummaryTo};
use crate::exit::{self, Outcome};
use crate::format::Format;
use crate::input::Recording;
use crate::{launch, messages, output};
use anyhow::anyhow;
use ggprof_spool::place;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) fn deliver(arguments: &DeliverArgs) -> anyhow::Result<Outcome> {
    let delivered = Recording::of_process(&arguments.spool, &launch::process_of(&arguments.spool))
        .and_then(|recording| match &arguments.output {
            Some(path) => write(&recording, path),
            None => run::print_summary(SummaryTo::Stdout, &recording).map(|()| recording.outcome()),
        });
    delivered.map_err(|error| match exit::is_closed_pipe(&error) {
        true => error,
        false => anyhow!(
            "GGML_PROFILE: {error:#} The recording is kept; open it with: ggprof report {}",
            arguments.spool.display()
        ),
    })
}

fn write(recording: &Recording, path: &Path) -> anyhow::Result<Outcome> {
    let path = with_process(path, recording);
    // The in-tree profiler knows two formats.
    let format = match Format::of(&path) {
        Format::Text => Format::Text,
        _ => Format::Json,
    };
    output::to_file(&path, |out| format.write(recording, out))?;
    messages::note(&format!("Profile written to {}.", path.display()));
    recording.warn_of_losses();
    Ok(recording.outcome())
}

/// Programs whose children use ggml have several.
fn with_process(path: &Path, recording: &Recording) -> PathBuf {
    let pid = recording.trace.provenance.as_ref().map_or(0, |facts| facts.pid);
    PathBuf::from(OsString::from_vec(place::of_process(path.as_os_str().as_bytes(), pid)))
}
