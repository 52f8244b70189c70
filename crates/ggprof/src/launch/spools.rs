//! The directory that recordings are made in, one file per process.

use anyhow::anyhow;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory that only the user can open. It disappears with what is in it, unless kept.
pub(crate) struct Spools {
    directory: TempDir,
}

impl Spools {
    /// Makes the directory in the first place that takes one.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let places = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), ".".into()];
        for place in &places {
            let made = tempfile::Builder::new()
                .prefix("ggprof-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(place);
            if let Ok(directory) = made {
                return Ok(Self { directory });
            }
        }
        Err(anyhow!(
            "there is no place to record to: neither {} nor /tmp nor the current directory can be \
             written. Set TMPDIR to a directory of yours.",
            places[0].display()
        ))
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the agent of a process puts its recording; it puts its number for `%p`.
    pub(crate) fn pattern(&self) -> OsString {
        let directory = self.directory.path();
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        directory.join("%p.ggprof").into_os_string()
    }

    /// The recordings that were made, by their names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.path()).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        files
    }

    /// Keeps the directory because something went wrong with what should come out of it.
    pub(crate) fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

/// The number of the process that made a recording, from the file's name. A process that
/// became another program makes a second one, `42.ggprof.1`: that is `42.1`.
pub(crate) fn process_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.replace(".ggprof", "")
}
