//! `ggprof convert`: a recording in other formats, chosen by the name of the file; recordings as
//! tables.

use crate::cli::ConvertArgs;
use crate::exit::Outcome;
use crate::format::Output;
use crate::input::{Recording, files_of};
use crate::{messages, output, tables};
use anyhow::{anyhow, bail};
use ggprof_trace::formats::{ReadError, copy_recording};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn convert(arguments: &ConvertArgs) -> anyhow::Result<Outcome> {
    let ConvertArgs { files, output: outputs, tables, .. } = arguments;
    let files = &files_of(files)?;
    if files.len() > 1 && !outputs.is_empty() {
        bail!("Several recordings do not fit into one file. Write their tables with --tables DIR.");
    }
    for (file, output) in files.iter().flat_map(|file| outputs.iter().map(move |it| (file, it))) {
        output.check(&[file])?;
        if output.is_recording() {
            check_copy(arguments, file, output)?;
        }
    }
    tables.iter().try_for_each(|directory| tables::prepare(directory))?;
    let mut outcome = Outcome::Done;
    for file in files {
        if convert_one(arguments, file)? != Outcome::Done {
            outcome = Outcome::Incomplete;
        }
    }
    Ok(outcome)
}

fn convert_one(arguments: &ConvertArgs, file: &Path) -> anyhow::Result<Outcome> {
    let mut recording = Recording::open(file)?;
    recording.select(&arguments.part)?;
    for output in &arguments.output {
        let copy = |out: &mut dyn Write| copied(file, out);
        output::to_file(&output.path, |out| output.write(&recording, copy, out))?;
    }
    if let Some(directory) = &arguments.tables {
        tables::write(&recording, file, directory)?;
    }
    recording.warn_of_losses();
    Ok(recording.outcome())
}

/// Whether the recording itself can be written: it is copied as it is, whole, from a file.
fn check_copy(arguments: &ConvertArgs, file: &Path, output: &Output) -> anyhow::Result<()> {
    let name = output.path.display();
    if !arguments.part.is_all() {
        bail!("{name} would be a recording, which is only copied whole. Write a part as .json.");
    }
    if file.as_os_str() == "-" {
        bail!("{name} would be a recording, which is only copied from a file. Name the file.");
    }
    let start = File::open(file).map_err(ReadError::Io);
    match start.and_then(|file| copy_recording(file, &mut Enough)) {
        // It has begun to copy one.
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::WriteZero => Ok(()),
        Err(ReadError::NotAProfile(_)) => bail!(
            "{name} would be a recording, and {} is none: a recording cannot be made from another \
             format. Write .json.",
            file.display()
        ),
        Err(error) => {
            bail!(messages::cannot_read(&file.display().to_string(), &error))
        }
        Ok(()) => Ok(()),
    }
}

/// Takes nothing, so that a copy ends where it would begin.
struct Enough;

impl Write for Enough {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn copied(file: &Path, out: &mut dyn Write) -> io::Result<()> {
    copy_recording(File::open(file)?, out).map_err(|error| match error {
        ReadError::Io(error) => error,
        other => io::Error::other(anyhow!(other)),
    })
}
