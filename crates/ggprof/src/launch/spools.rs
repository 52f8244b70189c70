//! The directory of the recordings, one file per process.

use super::holder::Holder;
use super::sockets::is_private;
use crate::messages;
use anyhow::anyhow;
use ggprof_spool::live::LiveSpool;
use ggprof_spool::{beside, layout, names};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory that only the user can open. It disappears with what is in it, unless kept.
pub(crate) struct Spools {
    directory: PathBuf,
    is_kept: bool,
    /// Held for as long as a launcher takes care of the directory, however the launcher ends.
    lock: Option<File>,
}

impl Spools {
    /// Makes the directory in the first place that takes one.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let places = places();
        for place in places.iter().chain([&PathBuf::from(".")]) {
            let made = tempfile::Builder::new()
                .prefix(names::AMONG_OTHERS_BEGIN)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(place);
            if let Ok(directory) = made {
                let lock = lock(directory.path());
                return Ok(Self { directory: directory.keep(), is_kept: false, lock });
            }
        }
        Err(anyhow!(
            "there is no place for recordings: neither {} nor /tmp nor the current directory can be \
             written. Set TMPDIR to a directory that you can write to.",
            places[0].display()
        ))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Whether others can tell that a launcher takes care of them. Some file systems have no locks.
    pub(crate) fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Where the agent of a process puts its recording; it puts its number for `%p`.
    pub(crate) fn pattern(&self) -> OsString {
        let directory = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        directory.join(names::RECORDING).into_os_string()
    }

    /// The recordings that were made, by their names. Of a process that was killed when it had
    /// just made its file, there is none.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = recordings_in(self.path());
        files.retain(|file| !is_blank(file));
        files
    }

    /// Whether a graph was computed in any of them.
    pub(crate) fn have_graph_runs(&self) -> bool {
        let header = |file: &PathBuf| LiveSpool::open(file).and_then(|spool| spool.header());
        self.files().iter().any(|file| header(file).is_ok_and(|header| header.graph_runs > 0))
    }

    /// Processes that used ggml and were started without the agent, as they tell themselves: of
    /// each a sentence.
    pub(crate) fn without_agent(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            files.filter(|file| beside::tells_of_process_without_agent(file)).collect();
        files.sort();
        let sentence = |file: &PathBuf| {
            let program = std::fs::read(file).unwrap_or_default();
            let pid = file.file_stem().unwrap_or_default().to_string_lossy();
            messages::without_agent(&String::from_utf8_lossy(&program), &pid)
        };
        files.iter().map(sentence).collect()
    }

    /// A place for something else that goes with the recordings.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Recordings of the user that nobody takes care of, the newest last: of `GGML_PROFILE` in
    /// programs that were killed, and in directories whose launchers were.
    pub(crate) fn left_behind() -> Vec<PathBuf> {
        let entries = places().into_iter().flat_map(std::fs::read_dir).flatten().flatten();
        let entries = entries.map(|entry| entry.path());
        let named = entries.filter(|path| {
            path.file_name().is_some_and(|name| {
                name.as_encoded_bytes().starts_with(names::AMONG_OTHERS_BEGIN.as_bytes())
            })
        });
        let mut left: Vec<PathBuf> = named
            .flat_map(|path| match is_private(&path) {
                true if lock(&path).is_some() => recordings_in(&path),
                true => Vec::new(),
                false => vec![path],
            })
            .filter(|file| is_recording(file) && is_left(file))
            .collect();
        left.sort();
        left.dedup();
        left.sort_by_key(|file| file.metadata().and_then(|found| found.modified()).ok());
        left
    }

    /// Whether a launcher takes care of the directory that this recording is in. Of one that lies
    /// elsewhere nothing is known.
    pub(super) fn has_launcher(recording: &Path) -> bool {
        let directory = recording.parent().filter(|directory| is_private(directory));
        directory.is_none_or(|directory| lock(directory).is_none())
    }

    /// Keeps the directory because something went wrong with what should come out of it.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.directory.clone()
    }
}

impl Drop for Spools {
    /// Under another name first: what outlives the program could make something in it while it
    /// is emptied.
    fn drop(&mut self) {
        if !self.is_kept {
            let gone = self.directory.with_extension("gone");
            let renamed = std::fs::rename(&self.directory, &gone);
            // Nobody is there to be told.
            let _ = std::fs::remove_dir_all(renamed.map_or(&self.directory, |()| &gone));
        }
    }
}

/// Where there is room for what is needed for a while.
fn places() -> Vec<PathBuf> {
    vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()]
}

/// `None` while another process holds it.
fn lock(directory: &Path) -> Option<File> {
    let opened = File::open(directory).ok()?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(opened)
}

pub(super) fn recordings_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|file| is_recording(file)).collect();
    files.sort();
    files
}

/// Whether not even the first bytes were written.
fn is_blank(file: &Path) -> bool {
    let mut start = [0; layout::MAGIC.len()];
    let read = File::open(file).and_then(|mut file| file.read(&mut start));
    read.is_ok() && start.iter().all(|&byte| byte == 0)
}

/// Checks its name, and that it is a file: ggprof must not wait for a pipe or follow a link.
fn is_recording(file: &Path) -> bool {
    let is_named =
        file.file_name().is_some_and(|it| it.to_string_lossy().contains(names::RECORDING_ENDING));
    is_named && std::fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
}

/// Whether it is the user's own, and of a process that has ended.
fn is_left(file: &Path) -> bool {
    let pid = process_of(file).split('.').next().unwrap_or_default().parse::<u32>();
    let user = rustix::process::geteuid().as_raw();
    let found = std::fs::symlink_metadata(file).ok();
    let own = found.filter(|found| found.is_file() && found.uid() == user);
    own.zip(pid.ok()).is_some_and(|(found, pid)| Holder::find(&found, pid).is_none())
}

/// The number of the process that made a recording, from the file's name: `42.ggprof`, or
/// `ggprof-42.ggprof` among others in a temporary directory. A process that became another
/// program makes a second one, `42.ggprof.1`: that is `42.1`.
pub(crate) fn process_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.trim_start_matches(names::AMONG_OTHERS_BEGIN).replace(names::RECORDING_ENDING, "")
}
