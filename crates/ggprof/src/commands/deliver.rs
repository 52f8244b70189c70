//! `ggprof deliver`: what the agent runs for `GGML_PROFILE`. The program that was recorded is
//! waiting, with its own streams; the agent removes the recording when this has worked.

use super::{convert, run};
use crate::cli::{DeliverArgs, SummaryTo};
use crate::exit::{self, Outcome};
use crate::input::Recording;
use crate::{launch, messages, output};
use anyhow::anyhow;
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
    output::to_file(&path, |out| match path.extension() {
        Some(extension) if extension == "txt" => convert::write_text(recording, out),
        _ => convert::write_json(recording, out),
    })?;
    messages::note(&format!("Profile written to {}.", path.display()));
    run::warn_of_losses(recording);
    Ok(recording.outcome())
}

/// `%p` stands for the process id: programs whose children use ggml have several.
fn with_process(path: &Path, recording: &Recording) -> PathBuf {
    let pid = recording.trace.provenance.as_ref().map_or(0, |facts| facts.pid).to_string();
    let mut rest = path.as_os_str().as_bytes();
    let mut whole = Vec::new();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"%p") {
        whole.extend_from_slice(&rest[..at]);
        whole.extend_from_slice(pid.as_bytes());
        rest = &rest[at + 2..];
    }
    whole.extend_from_slice(rest);
    PathBuf::from(std::ffi::OsString::from_vec(whole))
}
