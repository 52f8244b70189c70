//! A directory of tables: a folder for each, with a file for each recording in it, so that recordings
//! are added at any time, and those that are there stay as they are.

use crate::input::Recording;
use crate::{messages, output};
use anyhow::anyhow;
use ggprof_report::tables::{self, TABLES};
use std::fs;
use std::io;
use std::path::Path;

/// Makes the folders, before anything is read.
pub(crate) fn prepare(directory: &Path) -> anyhow::Result<()> {
    let folders = TABLES.map(|table| directory.join(table.name()));
    for folder in [directory].into_iter().chain(folders.iter().map(|folder| &**folder)) {
        let made = match fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match folder.is_dir() {
                true => Ok(()),
                false => Err(io::ErrorKind::NotADirectory.into()),
            },
            made => made,
        };
        made.map_err(|error| anyhow!(messages::cannot_write(folder, &error)))?;
    }
    Ok(())
}

/// Writes all tables of a recording that was read from `file`.
pub(crate) fn write(recording: &Recording, file: &Path, directory: &Path) -> anyhow::Result<()> {
    let Recording { trace, peaks, .. } = recording;
    let name = file.file_name().map(|name| name.to_string_lossy()).filter(|name| name != "-");
    let recording = tables::Recording::new(trace, name.as_deref(), peaks.as_ref());
    for table in TABLES {
        let path = directory.join(table.name()).join(format!("{}.parquet", recording.id()));
        output::to_file(&path, |out| recording.write(table, out))?;
    }
    Ok(())
}
