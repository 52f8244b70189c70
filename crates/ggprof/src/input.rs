//! Opens the recording that the user named.

use crate::cli::PartArgs;
use crate::exit::Outcome;
use crate::format::is_called_recording;
#[cfg(target_os = "linux")]
use crate::launch::Completed;
use crate::progress::Progress;
use crate::quantity::Moment;
use crate::recording::Recording;
use crate::{kept_peaks, messages};
use anyhow::{anyhow, bail};
use ggprof_analysis::{Filter, PhaseKind};
use ggprof_report::{caveats, units};
use ggprof_trace::Trace;
use ggprof_trace::formats::{self, Bytes, FileBytes, ReadError};
#[cfg(target_os = "linux")]
use std::borrow::Borrow;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
impl Recording {
    /// The recording of a process, under the name of its program.
    pub(crate) fn of_process(spool: &Path, process: &str) -> anyhow::Result<Self> {
        Self::read_from(Completed::as_it_is(spool), process)
    }

    /// The same with what the launcher adds.
    pub(crate) fn of_completed(spool: &Completed<'_>, process: &str) -> anyhow::Result<Self> {
        Self::read_from(Ok(spool), process)
    }

    fn read_from<'f, C: Borrow<Completed<'f>>>(
        spool: io::Result<C>,
        process: &str,
    ) -> anyhow::Result<Self> {
        let named = |program: &str| format!("{program} (process {process})");
        let trace =
            spool.map_err(ReadError::Io).and_then(|spool| read_file(spool.borrow().bytes()?));
        match trace {
            Ok(trace) => {
                let program = trace.provenance.as_ref().map_or("", |facts| &facts.command);
                let name = named(program);
                let peaks = kept_peaks::kept(&trace);
                Ok(Self { trace, name, peaks })
            }
            Err(error) => Err(anyhow!(messages::cannot_read(&named("the recording"), &error))),
        }
    }
}

impl Recording {
    /// Reads all files, and those in directories, and puts them on one axis of time.
    pub(crate) fn open_all(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let files = files_of(paths)?;
        if let [file] = &files[..] {
            return Self::open(file);
        }
        if let Some(twice) = named_twice(&files) {
            bail!(messages::named_twice(twice));
        }
        let mut names = Vec::new();
        let mut traces = Vec::new();
        for file in &files {
            let recording = Self::open(file)?;
            names.push(recording.name);
            traces.push(recording.trace);
        }
        let trace = ggprof_trace::merge(traces)
            .map_err(|error| anyhow!(messages::cannot_merge(&names, error)))?;
        Ok(Self { trace, name: names.join(", "), peaks: None })
    }

    /// Reads the file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let (name, result) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), read(io::stdin().lock()))
        } else {
            (path.display().to_string(), open_file(path))
        };
        match result {
            Ok(trace) => Ok(Self { trace, name, peaks: None }),
            Err(error) => Err(anyhow!(messages::cannot_read(&name, &error))),
        }
    }

    /// The part of the file that was asked about.
    pub(crate) fn open_part(path: &Path, part: &PartArgs) -> anyhow::Result<Self> {
        let mut recording = Self::open(path)?;
        recording.select(part)?;
        Ok(recording)
    }

    /// Leaves the part that was asked about, and finds what to hold it against.
    pub(crate) fn select(&mut self, part: &PartArgs) -> anyhow::Result<()> {
        self.peaks = kept_peaks::of_recording(&self.trace, part.peaks.as_deref())?;
        let start_ns = self.trace.span_ns().map_or(0, |(start_ns, _)| start_ns);
        let from_ns = part.from.map(|from| self.moment(from, start_ns)).transpose()?;
        // A clock time of the day after that is not reached any more is the one before: all that there is.
        let is_past = |&from_ns: &u64| {
            let is_clock = matches!(part.from, Some(Moment::Clock(_)));
            let moments = self.trace.unix_ns(start_ns).zip(self.trace.unix_ns(from_ns));
            is_clock
                && moments.is_some_and(|(start, from)| !units::is_same_day(start, from))
                && self.trace.span_ns().is_some_and(|(_, end_ns)| from_ns > end_ns)
        };
        let from_ns = from_ns.map(|from_ns| if is_past(&from_ns) { start_ns } else { from_ns });
        let to_ns = part.to.map(|to| self.moment(to, from_ns.unwrap_or(start_ns))).transpose()?;
        let filter = Filter {
            from_ns,
            to_ns,
            phase: part.phase.map(PhaseKind::from),
            request: part.request,
        };
        match filter.apply(&mut self.trace) {
            true => Ok(()),
            false => bail!(messages::nothing_selected(&self.name)),
        }
    }

    /// A moment in the recording's own time. A clock time is the first such moment from `since_ns` on,
    /// on whatever day that is.
    fn moment(&self, wanted: Moment, since_ns: u64) -> anyhow::Result<u64> {
        let start_ns = self.trace.span_ns().map_or(0, |(start_ns, _)| start_ns);
        let zone = jiff::tz::TimeZone::system();
        let instant = match wanted {
            Moment::SinceStart(time) => return Ok(start_ns.saturating_add(time.as_nanos() as u64)),
            Moment::Instant(instant) => instant,
            Moment::Date(date) => date.to_zoned(zone)?.timestamp(),
            Moment::Clock(time) => {
                let since = self.trace.unix_ns(since_ns).and_then(|unix_ns| {
                    Some(jiff::Timestamp::from_nanosecond(unix_ns.into()).ok()?.to_zoned(zone))
                });
                let since = since.ok_or_else(|| anyhow!(messages::no_clock_times(&self.name)))?;
                let same_day = since.with().time(time).build()?;
                let meant = if same_day < since { same_day.tomorrow()? } else { same_day };
                meant.timestamp()
            }
        };
        let unix_ns = u64::try_from(instant.as_nanosecond()).unwrap_or(0);
        let moment = self.trace.moment(unix_ns);
        moment.ok_or_else(|| anyhow!(messages::no_clock_times(&self.name)))
    }

    /// Says what is missing from it, where no report does.
    pub(crate) fn warn_of_losses(&self) {
        if self.trace.losses.is_empty() {
            return;
        }
        for loss in caveats(&self.trace).iter().filter(|caveat| caveat.is_loss()) {
            messages::warning(&loss.sentence());
        }
    }

    /// Says all that a report begins with, where the report is nothing but a table and the
    /// recording is not all that it should be.
    pub(crate) fn warn_if_incomplete(&self) {
        if self.outcome() == Outcome::Incomplete {
            caveats(&self.trace).iter().for_each(|caveat| messages::warning(&caveat.sentence()));
        }
    }

    /// Whether it is all that it should be.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.trace.losses.is_empty() && !self.trace.events.is_empty() {
            true => Outcome::Done,
            false => Outcome::Incomplete,
        }
    }
}

/// A file that was already named before it, by whatever path.
pub(crate) fn named_twice(files: &[PathBuf]) -> Option<&Path> {
    let mut known = HashSet::new();
    let is_known = |file: &&PathBuf| {
        let same = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
        !known.insert(same)
    };
    files.iter().find(is_known).map(PathBuf::as_path)
}

/// What the names stand for: a directory is a list of its recordings.
pub(crate) fn files_of(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let inside = path.is_dir().then(|| recordings_in(path)).transpose();
        let inside = inside.map_err(|error| {
            anyhow!(messages::cannot_read(&path.display().to_string(), &ReadError::Io(error)))
        })?;
        match inside {
            Some(inside) if inside.is_empty() => bail!(
                "{} has no recordings (*.ggprof, also .gz or .zst). Name the files that are meant.",
                path.display()
            ),
            Some(inside) => files.extend(inside),
            None => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// By name.
fn recordings_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if is_called_recording(&path) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads one of many files, without a bar of its own.
pub(crate) fn read_one_of_many(path: &Path) -> Result<Trace, ReadError> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    charged(formats::read_source(&FileBytes::new(file, length, Vec::new()))?)
}

fn open_file(path: &Path) -> Result<Trace, ReadError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(ReadError::Io(io::ErrorKind::IsADirectory.into()));
    }
    match metadata.is_file() {
        true => read_file(FileBytes::new(file, metadata.len(), Vec::new())),
        false => read(file),
    }
}

/// What comes through a pipe.
fn read(input: impl io::Read) -> Result<Trace, ReadError> {
    charged(formats::read(Progress::new(input, None))?)
}

fn read_file(file: FileBytes) -> Result<Trace, ReadError> {
    let length = Bytes::len(&file);
    charged(formats::read_source(&Progress::new(file, Some(length)))?)
}

fn charged(mut trace: Trace) -> Result<Trace, ReadError> {
    ggprof_analysis::charge(&mut trace);
    Ok(trace)
}
