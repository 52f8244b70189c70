//! `ggprof convert`: a recording in other formats, chosen by the name of the file; recordings as
//! tables.

use crate::cli::ConvertArgs;
use crate::exit::Outcome;
use crate::format::Output;
use crate::input::files_of;
use crate::recording::Recording;
use crate::{messages, output, tables};
use anyhow::{anyhow, bail};
use ggprof_trace::formats::{ReadError, copy_recording};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) fn convert(arguments: &ConvertArgs) -> anyhow::Result<Outcome> {
    let ConvertArgs { files, output: outputs, tables, .. } = arguments;
    let files = &files_of(files)?;
    if *tables {
        return to_tables(arguments, files);
    }
    if files.len() > 1 {
        bail!(
            "Several recordings do not fit into one file. Write tables: --to parquet -o DIR; or put \
             processes that ran at the same time on one axis: ggprof merge."
        );
    }
    output::apart(outputs.iter().map(|output| &*output.path))?;
    for (file, output) in files.iter().flat_map(|file| outputs.iter().map(move |it| (file, it))) {
        let peaks = arguments.part.peaks.as_deref();
        output.check(&[file.as_path()].into_iter().chain(peaks).collect::<Vec<_>>())?;
        if output.is_recording() {
            check_copy(arguments, file, output)?;
        }
    }
    of_each(arguments, files, |file, recording| {
        outputs.iter().try_for_each(|output| {
            let copy = |out: &mut dyn Write| copied(file, out);
            output::to_file(&output.path, |out| output.write(recording, copy, out))
        })
    })
}

fn to_tables(arguments: &ConvertArgs, files: &[PathBuf]) -> anyhow::Result<Outcome> {
    let [directory] = &arguments.output[..] else {
        bail!("Tables are written into one directory. Name it once: --to parquet -o DIR.");
    };
    let _new_folders = tables::prepare(&directory.path)?;
    let write = |file: &Path, recording: &Recording| {
        tables::write(recording, file, &directory.path, arguments.with_hosts)
    };
    if let [_] = files {
        return of_each(arguments, files, write);
    }
    // One of many that cannot be read does not keep the others from being written.
    let (mut outcome, mut failed) = (Outcome::Done, Vec::new());
    for file in files {
        match Recording::open_part(file, &arguments.part) {
            Ok(recording) if written(&recording, file, &write)? == Outcome::Done => {}
            Ok(_) => outcome = Outcome::Incomplete,
            Err(error) => failed.push(error),
        }
    }
    if failed.len() == files.len() && !failed.is_empty() {
        return Err(failed.swap_remove(0));
    }
    failed.iter().for_each(|error| messages::warning(&format!("{error:#}")));
    Ok(if failed.is_empty() { outcome } else { Outcome::Incomplete })
}

/// Reads one recording after the other.
fn of_each(
    arguments: &ConvertArgs,
    files: &[PathBuf],
    write: impl Fn(&Path, &Recording) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Done;
    for file in files {
        if written(&Recording::open_part(file, &arguments.part)?, file, &write)? != Outcome::Done {
            outcome = Outcome::Incomplete;
        }
    }
    Ok(outcome)
}

fn written(
    recording: &Recording,
    file: &Path,
    write: &impl Fn(&Path, &Recording) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    write(file, recording)?;
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
