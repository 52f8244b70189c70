//! The files with what machines can do: one for each machine that was measured, in the user's cache
//! directory. They are plain JSON, and may be copied to where recordings are read.

use crate::messages;
use anyhow::{Context, anyhow};
use ggprof_analysis::Peaks;
use ggprof_trace::Trace;
use ggprof_trace::formats::ReadError;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What a recording can be held against: the file that was named, or what is kept of the machine it
/// was made on.
pub(crate) fn of_recording(trace: &Trace, file: Option<&Path>) -> anyhow::Result<Option<Peaks>> {
    match file {
        Some(file) => read(file).map(Some),
        None => Ok(kept(trace)),
    }
}

/// Of several machines that it may have been, the one that has most of its devices; of these the
/// newest.
pub(crate) fn kept(trace: &Trace) -> Option<Peaks> {
    let files = fs::read_dir(directory()?).ok()?.flatten();
    // One that cannot be read is none: `ggprof peaks` will replace it.
    let all = files.filter_map(|file| read(&file.path()).ok());
    let fitting = all.filter_map(|peaks| Some((peaks.fit(trace)?, peaks)));
    let best = fitting.max_by_key(|(fit, peaks)| (*fit, peaks.measured_at_unix_s));
    best.map(|(_, peaks)| peaks)
}

fn read(file: &Path) -> anyhow::Result<Peaks> {
    let text = fs::read(file).map_err(|error| {
        anyhow!(messages::cannot_read(&file.display().to_string(), &ReadError::Io(error)))
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        anyhow!(
            "{} does not say what a machine can do: {error}. Name a file that `ggprof peaks` wrote.",
            file.display()
        )
    })
}

/// Where the peaks of this machine are kept.
pub(crate) fn place(peaks: &Peaks) -> anyhow::Result<PathBuf> {
    let directory = directory()
        .context("there is no place for it: neither XDG_CACHE_HOME nor HOME is set. Use -o FILE")?;
    fs::create_dir_all(&directory)
        .with_context(|| format!("{} cannot be created. Use -o FILE", directory.display()))?;
    Ok(directory.join(file_name(peaks)))
}

fn directory() -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let cache = std::env::var_os("XDG_CACHE_HOME").and_then(absolute);
    let own = || Some(std::env::var_os("HOME").and_then(absolute)?.join(".cache"));
    Some(cache.or_else(own)?.join("ggprof/peaks"))
}

/// Made of what tells machines apart; home directories are shared between them.
fn file_name(peaks: &Peaks) -> String {
    let devices = peaks.devices.iter().map(|device| device.name.as_str());
    let mut names = vec![peaks.cpu.name.as_str()];
    names.extend(devices);
    names.dedup();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = names.join(" ").chars().map(plain).take(150).collect();
    format!("{}-{}.json", name.trim_matches('-'), peaks.cpu.processors)
}
