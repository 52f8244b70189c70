//! An earlier recording of a program whose launcher was killed: nobody else will ask for its end.

use super::maps;
use crate::launch::{RecordedProcess, Spools};
use crate::messages;
use ggprof_spool::names;
use std::io;
use std::path::PathBuf;

/// Ends it, so that another one can begin; whether there was one. Its file stays.
pub(super) fn end(pid: u32) -> io::Result<bool> {
    let mut files: Vec<PathBuf> = maps::of(pid)?.into_iter().map(|mapping| mapping.path).collect();
    files.retain(|file| file.to_string_lossy().contains(names::RECORDING_ENDING) && file.is_file());
    files.sort();
    files.dedup();
    files.retain(|file| !Spools::has_launcher(file));
    let mut was_there = false;
    for recorded in RecordedProcess::alive(&files) {
        if recorded.is_recording()? {
            recorded.stop()?;
            was_there = true;
            messages::note(&format!(
                "An earlier recording of it, whose ggprof was killed, ends here: {}",
                recorded.file.display()
            ));
        }
    }
    Ok(was_there)
}
