//! One of many runs of a command, each recorded into a file. Each is made by a `ggprof run` of its own,
//! so that it is recorded as any other, and what it prints is shown only if it fails.

use super::NotStarted;
use crate::messages;
use anyhow::{Context, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Lines of a failed command's output that are shown.
const LAST_LINES: usize = 8;

/// How often it is looked whether the command has ended.
const PATIENCE: Duration = Duration::from_millis(20);

pub(crate) struct Trial<'a> {
    pub(crate) variables: &'a [(OsString, OsString)],
    /// Of `ggprof run`.
    pub(crate) options: &'a [OsString],
    pub(crate) command: &'a [OsString],
}

impl Trial<'_> {
    /// Runs the command once. The recording, whose name has the process behind it if there were
    /// several: then it is the largest.
    pub(crate) fn record(&self, file: &Path) -> anyhow::Result<PathBuf> {
        let printed = file.with_extension("log");
        let log = File::create(&printed)
            .map_err(|error| anyhow!(messages::cannot_write(&printed, &error)))?;
        let ggprof = std::env::current_exe().context("ggprof cannot find itself")?;
        let mut command = Command::new(ggprof);
        command.arg("run").args(self.options).arg("-o").arg(file).arg("--").args(self.command);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let status = wait(command.spawn()?)?;
        if !status.success() {
            let text = std::fs::read(&printed).unwrap_or_default();
            show_last_lines(&String::from_utf8_lossy(&text));
            let name = self.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
            let sentence = format!("{name} failed ({status}). Does it run alone?");
            match NotStarted::of_code(status.code(), &sentence) {
                Some(not_started) => bail!(not_started),
                None => bail!(sentence),
            }
        }
        let _ = std::fs::remove_file(printed);
        recording(file).ok_or_else(|| anyhow!(messages::NOTHING_RECORDED))
    }
}

/// The user does not want any more runs.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("interrupted. The runs until now were not enough to compare.")
    }
}

impl std::error::Error for Interrupted {}

/// Waits for its end. A signal that only ggprof got goes to it as well, and ends all runs.
fn wait(mut child: Child) -> anyhow::Result<ExitStatus> {
    let got = Arc::new(AtomicUsize::new(0));
    let ids: Vec<_> = [SIGINT, SIGTERM]
        .into_iter()
        .filter_map(|signal| {
            signal_hook::flag::register_usize(signal, got.clone(), signal as usize).ok()
        })
        .collect();
    let mut passed_on = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if got.load(Ordering::Relaxed) != 0 && !passed_on {
            passed_on = true;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            pid.into_iter().for_each(|pid| _ = kill_process(pid, Signal::TERM));
        }
        std::thread::sleep(PATIENCE);
    };
    ids.into_iter().for_each(|id| _ = signal_hook::low_level::unregister(id));
    match got.load(Ordering::Relaxed) {
        0 => Ok(status),
        _ => Err(Interrupted.into()),
    }
}

fn recording(file: &Path) -> Option<PathBuf> {
    if file.exists() {
        return Some(file.to_owned());
    }
    let stem = file.file_stem()?.to_string_lossy().into_owned();
    let entries = std::fs::read_dir(file.parent()?).ok()?.flatten();
    let of_it = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&format!("{stem}.")) && name.ends_with(".ggprof")
    });
    of_it.max_by_key(|path| path.metadata().map_or(0, |found| found.len()))
}

fn show_last_lines(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    messages::progress_is_over();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().for_each(|line| messages::note(line));
}
