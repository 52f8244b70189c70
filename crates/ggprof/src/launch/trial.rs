//! One of many runs of a command, each recorded into a file. Each is made by a `ggprof run` of its own,
//! so that it is recorded as any other, and what it prints is shown only if it fails.

use super::NotStarted;
use crate::inherited::was_ignored;
use crate::messages;
use anyhow::{Context, anyhow, bail};
use ggprof_spool::names;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
    pub(crate) interruption: &'a Interruption,
}

impl Trial<'_> {
    /// Runs the command once. Its recordings, at least one; their names have the process behind them if
    /// there are several.
    pub(crate) fn record(&self, file: &Path) -> anyhow::Result<Vec<PathBuf>> {
        self.interruption.check()?;
        // Those of an earlier run would be taken for this one's.
        remove(file);
        let printed = file.with_extension("log");
        let log = File::create(&printed)
            .map_err(|error| anyhow!(messages::cannot_write(&printed, &error)))?;
        let ggprof = std::env::current_exe().context("ggprof cannot find itself")?;
        let mut command = Command::new(ggprof);
        command.arg("run").args(self.options).arg("-o").arg(file).arg("--").args(self.command);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let status = self.interruption.wait(command.spawn()?)?;
        if !status.success() {
            let text = std::fs::read(&printed).unwrap_or_default();
            show_last_lines(&String::from_utf8_lossy(&text));
            let name = self.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
            // Of the program or of ggprof: what they printed tells.
            let sentence = format!(
                "recording {name} failed ({status}); the last that was printed is above. Does it run \
                 alone?"
            );
            match NotStarted::of_code(status.code(), &sentence) {
                Some(not_started) => bail!(not_started),
                None => bail!(sentence),
            }
        }
        let _ = std::fs::remove_file(printed);
        match recordings(file) {
            none if none.is_empty() => bail!(messages::NOTHING_RECORDED),
            recordings => Ok(recordings),
        }
    }
}

/// Removes what a run has recorded under this name.
pub(crate) fn remove(file: &Path) {
    // What cannot be removed cannot be written either.
    recordings(file).iter().for_each(|path| _ = std::fs::remove_file(path));
}

/// The recordings in a directory that have this name with a number behind it: `a1.ggprof`, `a12.42.ggprof`.
pub(crate) fn numbered(directory: &Path, name: &str) -> Vec<PathBuf> {
    let is_meant = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let number =
            file.strip_prefix(name).and_then(|rest| rest.strip_suffix(names::RECORDING_ENDING));
        number.is_some_and(|number| match number.split_once('.') {
            Some((number, process)) => is_number(number) && is_number(process),
            None => is_number(number),
        })
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_meant).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// What has been recorded under this name: one recording, or one of each process.
fn recordings(file: &Path) -> Vec<PathBuf> {
    let stem = format!("{}.", file.file_stem().unwrap_or_default().to_string_lossy());
    let is_of_process = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process =
            name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(names::RECORDING_ENDING));
        process.is_some_and(is_number)
    };
    let entries = file.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    let entries = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|it| it == file || is_of_process(it)).collect();
    found.sort();
    found
}

/// The user does not want any more runs.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(
            "interrupted, and nothing was compared. With --keep DIR, recordings stay for `ggprof diff`.",
        )
    }
}

impl std::error::Error for Interrupted {}

/// Hears signals that are to end all runs, also between two of them.
pub(crate) struct Interruption {
    got: Arc<AtomicUsize>,
    heard: Vec<SigId>,
}

impl Interruption {
    pub(crate) fn listen() -> Self {
        let got = Arc::new(AtomicUsize::new(0));
        let hear =
            |signal| signal_hook::flag::register_usize(signal, got.clone(), signal as usize).ok();
        let signals = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let heard = signals.filter(|&signal| !was_ignored(signal)).filter_map(hear).collect();
        Self { got, heard }
    }

    /// Fails if one came.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.got.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Interrupted.into()),
        }
    }

    /// Waits for the end of a run. A signal that only ggprof got goes to it as well.
    fn wait(&self, mut child: Child) -> anyhow::Result<ExitStatus> {
        let mut passed_on = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.check().is_err() && !passed_on {
                passed_on = true;
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                pid.into_iter().for_each(|pid| _ = kill_process(pid, Signal::TERM));
            }
            std::thread::sleep(PATIENCE);
        };
        self.check().map(|()| status)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.heard.drain(..).for_each(|id| _ = signal_hook::low_level::unregister(id));
    }
}

fn show_last_lines(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    messages::progress_is_over();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().for_each(|line| messages::note(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While a recording is read, no run waits for the signal.
    #[test]
    fn a_signal_between_two_runs_ends_all() {
        let directory = tempfile::tempdir().unwrap();
        let interruption = Interruption::listen();
        interruption.check().unwrap();
        signal_hook::low_level::raise(SIGTERM).unwrap();
        let trial = Trial {
            variables: &[],
            options: &[],
            command: &["true".into()],
            interruption: &interruption,
        };
        let error = trial.record(&directory.path().join("a1.ggprof")).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn recordings_of_a_run() {
        let directory = tempfile::tempdir().unwrap();
        let names = ["a1.ggprof", "a1.42.ggprof", "a1.x.ggprof", "a1.42.json", "a11.ggprof", "a1."];
        let file = |name: &str| directory.path().join(name);
        names.iter().for_each(|name| std::fs::write(file(name), "").unwrap());
        assert_eq!(recordings(&file("a1.ggprof")), [file("a1.42.ggprof"), file("a1.ggprof")]);
        let [one, two, eleven] =
            ["a1.42.ggprof", "a1.ggprof", "a11.ggprof"].map(|name| directory.path().join(name));
        let mut all = numbered(directory.path(), "a");
        all.sort();
        assert_eq!(all, [one, two, eleven]);
        remove(&file("a1.ggprof"));
        assert_eq!(directory.path().read_dir().unwrap().count(), 4);
    }
}
