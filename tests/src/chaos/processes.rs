//! Processes of a run, as the system describes them.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that all processes of a run have, whoever started them.
pub(super) const MARK: &str = "CHAOS_RUN";
/// What becomes the program, and what starts it.
const NOT_YET: &str = "under_hazards_c.program";
const LAUNCHER: &str = "ggprof";

/// The program that was started as `pid`, or by the launcher that was. For a moment, a process is
/// still what its parent is.
pub(super) fn program_of(pid: u32) -> Option<u32> {
    let file = runs(pid)?;
    if Some(&file) == runs(std::process::id()).as_ref() {
        return None;
    }
    match file.file_name()?.to_str() {
        Some(NOT_YET) => None,
        Some(LAUNCHER) => children(pid).into_iter().find_map(program_of),
        _ => Some(pid),
    }
}

/// The file that a process executes.
fn runs(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// All processes of the run.
pub(super) fn marked(mark: &str) -> Vec<u32> {
    let entry = format!("{MARK}={mark}\0");
    let has_mark = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(entry.len()).any(|part| part == entry.as_bytes())
    };
    pids().filter(has_mark).filter(|pid| is_alive(*pid)).collect()
}

pub(super) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

pub(super) fn name(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The most address space that it has had.
pub(super) fn peak_bytes(pid: u32) -> Option<u64> {
    let kib = status_field(pid, "VmPeak:")?;
    Some(kib.trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Whether the process has a handler for the signal.
pub(super) fn handles(pid: u32, signal: Signal) -> bool {
    let handled = status_field(pid, "SigCgt:").and_then(|text| u64::from_str_radix(&text, 16).ok());
    handled.is_some_and(|handled| handled >> (signal.as_raw() - 1) & 1 == 1)
}

pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        _ = kill_process(pid, signal);
    }
}

fn status_field(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

fn children(pid: u32) -> Vec<u32> {
    pids().filter(|one| stat(*one).is_some_and(|(_, parent)| parent == pid)).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The state and the parent; the name before them may hold anything.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
