//! `ggprof merge`: several recordings as one, on one axis of time.

use crate::cli::MergeArgs;
use crate::exit::Outcome;
use crate::input::files_of;
use crate::recording::Recording;
use crate::{output, terminal};
use anyhow::bail;
use ggprof_report::{documents, render};
use std::io;
use std::path::{Path, PathBuf};

pub(crate) fn merge(arguments: &MergeArgs) -> anyhow::Result<Outcome> {
    let files = files_of(&arguments.files)?;
    if files.len() < 2 {
        bail!("One recording needs no merging. Name those of at least two processes.");
    }
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    output::apart(arguments.output.iter().map(|output| &*output.path))?;
    for output in &arguments.output {
        output.check(&inputs)?;
        if output.is_recording() {
            bail!(
                "{} would be a recording, which one process makes. Write several as .json, which \
                 ggprof reads like a recording.",
                output.path.display()
            );
        }
    }
    let recording = Recording::open_all(&files)?;
    for output in &arguments.output {
        let none = |_: &mut dyn io::Write| Ok(());
        output::to_file(&output.path, |out| output.write(&recording, none, out))?;
    }
    let is_printed = arguments.output.iter().any(|output| output.path.as_os_str() == "-");
    if !is_printed {
        let merged = documents::merged(&recording.trace, &recording.name);
        let text = render::console(&merged, &terminal::stdout_style());
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(recording.outcome())
}
