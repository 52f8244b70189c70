//! `ggprof deliver`: the agent runs this for `GGML_PROFILE`. The recorded program waits for it and
//! lends it its streams; the agent removes the recording when this has succeeded.

use super::run;
use crate::cli::{DeliverArgs, SummaryTo};
use crate::exit::{self, Outcome};
use crate::format::Output;
use crate::launch::{Completed, Heir};
use crate::recording::Recording;
use crate::{launch, messages, output};
use anyhow::anyhow;
use ggprof_spool::place;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) fn deliver(arguments: &DeliverArgs) -> anyhow::Result<Outcome> {
    let delivered = Recording::of_process(&arguments.spool, &launch::process_of(&arguments.spool))
        .and_then(|recording| match &arguments.output {
            Some(path) => write(&recording, path, arguments),
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

fn write(recording: &Recording, path: &Path, arguments: &DeliverArgs) -> anyhow::Result<Outcome> {
    let pid = recording.trace.provenance.as_ref().map_or(0, |facts| facts.pid);
    let named = with_process(path, pid);
    let output =
        Output::named(named.clone().into()).map_err(|why| anyhow!("{}: {why}.", path.display()))?;
    let completed = Completed::as_it_is(&arguments.spool)?;
    let copy = |out: &mut dyn Write| io::copy(&mut completed.open()?, out).map(|_| ());
    let write = |out: &mut dyn Write| output.write(recording, copy, out);
    let path = if named == path {
        let heir = Heir { pid, output: &output, again: arguments.again };
        output::to_settled_file(path, write, || heir.settle())?
    } else {
        output::to_file(&named, write)?;
        named
    };
    messages::note(&format!("Profile written to {}.", path.display()));
    recording.warn_of_losses();
    Ok(recording.outcome())
}

/// The path with the process for each `%p`.
fn with_process(path: &Path, pid: u32) -> PathBuf {
    PathBuf::from(OsString::from_vec(place::of_process(path.as_os_str().as_bytes(), pid)))
}
