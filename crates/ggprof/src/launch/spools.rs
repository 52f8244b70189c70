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
        recordings_in(self.directory.path())
    }

    /// A place for something else that goes with the recordings.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Recordings of `GGML_PROFILE` whose programs have ended without making anything of
    /// them.
    pub(crate) fn left_behind() -> Vec<PathBuf> {
        let is_left = |file: &PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let pid = process_of(file);
            let pid = pid.split('.').next().unwrap_or_default();
            name.starts_with("ggprof-")
                && pid.parse::<u32>().is_ok()
                && !Path::new("/proc").join(pid).exists()
        };
        recordings_in(&std::env::temp_dir()).into_iter().filter(is_left).collect()
    }

    /// Keeps the directory because something went wrong with what should come out of it.
    pub(crate) fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

fn recordings_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_recording = |file: &PathBuf| {
        file.file_name().is_some_and(|name| name.to_string_lossy().contains(".ggprof"))
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_recording).collect();
    files.sort();
    files
}

/// The number of the process that made a recording, from the file's name: `42.ggprof`, or
/// `ggprof-42.ggprof` among others in a temporary directory. A process that became another
/// program makes a second one, `42.ggprof.1`: that is `42.1`.
pub(crate) fn process_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.trim_start_matches("ggprof-").replace(".ggprof", "")
}
