//! A limited look at a program: until its first graph run, its end, or a time limit. It runs in its
//! own process group, which is ended with it.

use super::{Agent, Ended, NotStarted, preload};
use anyhow::anyhow;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// For a program to end by itself when it was asked to.
const FOR_ITS_END: Duration = Duration::from_secs(5);

/// What was seen.
#[derive(Debug)]
pub(crate) struct Look {
    /// How it ended by itself; `None` if we ended it.
    pub(crate) ended: Option<Ended>,
    /// The processes it consisted of.
    pub(crate) processes: Vec<Process>,
}

/// A process, as the system describes it.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) program: PathBuf,
    pub(crate) has_agent: bool,
    /// Its libraries that are called after ggml.
    pub(crate) ggml: Vec<PathBuf>,
    /// All files whose code it has.
    pub(crate) code: Vec<PathBuf>,
}

/// Runs the command with the agent, its output going to a file, until `is_enough`.
pub(crate) fn look(
    command: &[OsString],
    agent: &Agent,
    variables: &[(&str, OsString)],
    output: &Path,
    patience: Duration,
    mut is_enough: impl FnMut() -> bool,
) -> anyhow::Result<Look> {
    let [program, arguments @ ..] = command else { return Err(anyhow!("no command was given")) };
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let output = File::create(output)?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", preload::with_agent(agent))
        .env(preload::SANITIZER, preload::sanitizer_options())
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()
        .map_err(|error| NotStarted::new(program, &error))?;
    let (start, mut processes) = (Instant::now(), BTreeMap::new());
    let ended = loop {
        processes.extend(group(child.id()));
        if let Some(status) = child.try_wait()? {
            break Some(Ended::new(status));
        }
        if start.elapsed() > patience || interrupted.load(Ordering::Relaxed) || is_enough() {
            break None;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    };
    end(&mut child, ended.is_some())?;
    Ok(Look { ended, processes: processes.into_values().collect() })
}

/// Ends what is left of the group: first as one asks a program, then without asking.
fn end(child: &mut Child, has_ended: bool) -> anyhow::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal: Signal| group.map(|group| kill_process_group(group, signal));
    signal(Signal::TERM);
    let start = Instant::now();
    while !has_ended && child.try_wait()?.is_none() && start.elapsed() < FOR_ITS_END {
        std::thread::sleep(BETWEEN_LOOKS);
    }
    signal(Signal::KILL);
    child.wait()?;
    Ok(())
}

/// The processes of a group by their numbers.
fn group(number: u32) -> BTreeMap<u32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let members = pids.filter(|&pid| group_of(pid) == Some(number));
    members.filter_map(|pid| Some((pid, describe(pid)?))).collect()
}

/// The third field after the name, which is in brackets and may contain anything.
fn group_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn describe(pid: u32) -> Option<Process> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let file = |line: &'_ str| line.find('/').map(|at| PathBuf::from(&line[at..]));
    let mut files: Vec<PathBuf> = maps.lines().filter_map(file).collect();
    files.dedup();
    let is_code = |line: &&str| line.split(' ').nth(1).is_some_and(|may| may.contains('x'));
    let code = maps.lines().filter(is_code).filter_map(file).collect();
    let named = |file: &Path, part: &str| {
        file.file_name().is_some_and(|name| name.to_string_lossy().contains(part))
    };
    let has_agent = files.iter().any(|file| named(file, super::agent::FILE));
    let ggml = files.into_iter().filter(|file| named(file, "libggml")).collect();
    Some(Process { program, has_agent, ggml, code })
}
