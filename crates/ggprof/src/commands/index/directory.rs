//! The catalogue of a directory: what is known of its recordings, brought up to date by reading those
//! that are new or have changed.

use crate::format::is_called_recording;
use crate::input::read_one_of_many;
use crate::{messages, output};
use anyhow::bail;
use ggprof_analysis::catalogue::{self, CatalogueEntry, Found, KnownFile};
use ggprof_report::tables::recording_id;
use ggprof_trace::formats::ReadError;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The file in the directory.
const CATALOGUE: &str = ".ggprof-index";
/// Each reads a recording: more of them would take more memory than they save time.
const MOST_READERS: usize = 8;
/// What was read is kept this often, so that an interruption does not cost all of it.
const KEPT_EVERY: Duration = Duration::from_secs(20);

/// All recordings below a directory.
pub(crate) struct Index {
    known: Vec<KnownFile>,
    /// How many of them were read now.
    pub(crate) read: usize,
}

/// A file that is called a recording.
struct File {
    path: PathBuf,
    /// From the directory on.
    name: String,
    bytes: u64,
    /// 0 if that is not known: then nothing is kept of it.
    modified_unix_ns: u64,
}

impl Index {
    pub(crate) fn of(directory: &Path) -> anyhow::Result<Self> {
        let files = files_below(directory)?;
        let place = directory.join(CATALOGUE);
        let mut kept = kept_in(&place);
        let count_before = kept.len();
        let mut index = Self { known: Vec::with_capacity(files.len()), read: 0 };
        let mut changed = Vec::new();
        for file in files {
            let known = kept.remove(&file.name);
            match known.filter(|known| file.is_unchanged(known)) {
                Some(known) => index.known.push(known),
                None => changed.push(file),
            }
        }
        let is_same = changed.is_empty() && index.known.len() == count_before;
        index.read_all(changed, &place);
        index.known.sort_by(|one, other| one.file.cmp(&other.file));
        if !is_same && !index.keep(&place) {
            messages::note(
                "The catalogue cannot be kept there, so all recordings are read each time.",
            );
        }
        Ok(index)
    }

    /// Several at a time, from the first on.
    fn read_all(&mut self, files: Vec<File>, place: &Path) {
        let readers = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
        let (next, (send, receive)) = (AtomicUsize::new(0), mpsc::channel());
        thread::scope(|scope| {
            for _ in 0..readers.min(files.len()) {
                let (send, files, next) = (send.clone(), &files, &next);
                scope.spawn(move || {
                    while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Nobody listens any more only if the command is over.
                        let _ = send.send(file.read());
                    }
                });
            }
            drop(send);
            self.receive(receive, files.len(), place);
        });
    }

    fn receive(&mut self, found: mpsc::Receiver<KnownFile>, all: usize, place: &Path) {
        let (begin, mut kept_at) = (Instant::now(), Instant::now());
        for known in found {
            self.read += 1;
            self.known.push(known);
            if begin.elapsed() > Duration::from_millis(500) {
                messages::counted("recordings read", self.read, all);
            }
            if kept_at.elapsed() > KEPT_EVERY && self.keep(place) {
                kept_at = Instant::now();
            }
        }
        messages::progress_is_over();
    }

    /// Whether that was possible.
    fn keep(&self, place: &Path) -> bool {
        let lines = catalogue::lines(self.known.iter().filter(|known| known.modified_unix_ns > 0));
        output::to_file(place, |out| out.write_all(&lines)).is_ok()
    }

    /// Recordings with the names of their files, each once; and how many files hold one that another
    /// holds, too.
    pub(crate) fn recordings(&self) -> (Vec<(&str, &CatalogueEntry)>, usize) {
        let mut first: HashMap<&str, &str> = HashMap::new();
        let mut recordings = Vec::new();
        let mut copies = 0;
        for known in &self.known {
            let Found::Recording(entry) = &known.found else { continue };
            let name = first.entry(&entry.recording).or_insert(&known.file);
            match *name == known.file {
                true => recordings.push((known.file.as_str(), &**entry)),
                false => copies += 1,
            }
        }
        (recordings, copies)
    }

    /// Why files hold no recording, as sentences.
    pub(crate) fn unreadable(&self) -> Vec<&str> {
        self.known
            .iter()
            .filter_map(|known| match &known.found {
                Found::Unreadable(why) => Some(why.as_str()),
                Found::Recording(_) => None,
            })
            .collect()
    }
}

impl File {
    /// What is known of it still holds.
    fn is_unchanged(&self, known: &KnownFile) -> bool {
        self.modified_unix_ns > 0
            && (self.bytes, self.modified_unix_ns) == (known.bytes, known.modified_unix_ns)
    }

    fn read(&self) -> KnownFile {
        let read = read_one_of_many(&self.path);
        // What hinders the reading may be gone the next time, although the file is the same.
        let is_lasting = !matches!(read, Err(ReadError::Io(_)));
        let found = match read {
            Ok(trace) => Found::Recording(Box::new(catalogue::entry(&trace, recording_id(&trace)))),
            Err(error) => Found::Unreadable(messages::cannot_read(&self.name, &error)),
        };
        KnownFile {
            file: self.name.clone(),
            bytes: self.bytes,
            modified_unix_ns: if is_lasting { self.modified_unix_ns } else { 0 },
            found,
        }
    }
}

/// What the last call left, by the names of the files.
fn kept_in(place: &Path) -> HashMap<String, KnownFile> {
    let bytes = fs::read(place).unwrap_or_default();
    let kept = catalogue::read(&bytes);
    if kept.is_foreign || kept.damaged > 0 {
        let name = place.display();
        messages::note(&match kept.is_foreign {
            true => format!(
                "{name} is no catalogue of this version of ggprof: all recordings are read again, and \
                 it is written anew."
            ),
            false => format!(
                "{name} is damaged in {} of its lines: these recordings are read again.",
                kept.damaged
            ),
        });
    }
    kept.known.into_iter().map(|known| (known.file.clone(), known)).collect()
}

/// All files that are called recordings. Links to directories are not followed: they may lead in
/// circles.
fn files_below(directory: &Path) -> anyhow::Result<Vec<File>> {
    let cannot_read = |path: &Path, error: io::Error| {
        messages::cannot_read(&path.display().to_string(), &ReadError::Io(error))
    };
    if directory.is_file() {
        bail!("{} is a file. Name the directory that it is in.", directory.display());
    }
    let first = directory.read_dir();
    let first = first.map_err(|error| anyhow::anyhow!(cannot_read(directory, error)))?;
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let mut inside = Some(first);
    while let Some(entries) = inside {
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(_) if is_called_recording(&path) => files.extend(file(directory, path)),
                _ => {}
            }
        }
        // The next that can be opened.
        inside = std::iter::from_fn(|| folders.pop()).find_map(|folder| {
            let entries = folder.read_dir();
            entries.map_err(|error| messages::warning(&cannot_read(&folder, error))).ok()
        });
    }
    Ok(files)
}

/// `None` for what is no file. A name that is no text stays recognisable, but is not unique.
fn file(directory: &Path, path: PathBuf) -> Option<File> {
    let metadata = fs::metadata(&path).ok().filter(|metadata| metadata.is_file())?;
    let name = path.strip_prefix(directory).unwrap_or(&path);
    let (text, name) =
        (name.to_str().is_some(), name.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"));
    let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    let modified = metadata.modified().ok().and_then(since_1970).filter(|_| text);
    let modified_unix_ns = modified.map_or(0, |time| time.as_nanos() as u64);
    Some(File { path, name, bytes: metadata.len(), modified_unix_ns })
}
