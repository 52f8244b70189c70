//! A directory of tables: a folder for each, with a file for each recording in it, so that recordings
//! are added at any time, and those that are there stay as they are.

use crate::interruption::Removal;
use crate::recording::Recording;
use crate::{messages, output};
use anyhow::anyhow;
use ggprof_report::tables::{self, TABLES};
use std::fs;
use std::io;
use std::path::Path;

/// Makes the folders, before anything is read. Those that are new go with what is returned, unless
/// something came into them.
pub(crate) fn prepare(directory: &Path) -> anyhow::Result<Vec<Removal>> {
    let folders = TABLES.map(|table| directory.join(table.name()));
    let mut new = Vec::new();
    for folder in [directory].into_iter().chain(folders.iter().map(|folder| &**folder)) {
        match Removal::of_directory(|| fs::create_dir(folder).map(|()| folder.to_owned())) {
            // A folder goes after those in it.
            Ok((removal, _)) => new.insert(0, removal),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => {
                let is_file = error.kind() == io::ErrorKind::AlreadyExists;
                let error = if is_file { io::ErrorKind::NotADirectory.into() } else { error };
                return Err(anyhow!(messages::cannot_write(folder, &error)));
            }
        }
    }
    Ok(new)
}

/// Writes all tables of a recording that was read from `file`.
pub(crate) fn write(
    recording: &Recording,
    file: &Path,
    directory: &Path,
    with_hosts: bool,
) -> anyhow::Result<()> {
    let Recording { trace, peaks, .. } = recording;
    let name = file.file_name().map(|name| name.to_string_lossy()).filter(|name| name != "-");
    let hidden = tables::Recording::new(trace, name.as_deref(), peaks.as_ref());
    let recording = if with_hosts { hidden.with_hosts() } else { hidden };
    let part = |table: tables::EngineTable| {
        let path = directory.join(table.name()).join(format!("{}.parquet", recording.id()));
        output::part(&path, |out| recording.write(table, out))
    };
    // Queries join the tables, so a recording is in all of them or in none.
    output::appear(TABLES.into_iter().map(part).collect::<anyhow::Result<Vec<_>>>()?)
}
