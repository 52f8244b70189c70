//! `ggprof ctl`: starts, stops and copies recordings of programs that are running.

use super::run::present;
use crate::cli::{CtlArgs, CtlVerb, StatusFormat, SummaryTo};
use crate::exit::Outcome;
use crate::format::Output;
use crate::interruption::Removal;
use crate::launch::{Completed, Launcher, Listed, list_all};
use crate::recording::Recording;
use crate::{messages, output};
use anyhow::{Context, bail};
use ggprof_spool::layout::BLOCK_BYTES;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use tempfile::NamedTempFile;

const NOTHING: &str = "\
nothing is being recorded: no program that was started with `ggprof run` uses ggml now. Programs \
that were started in another way with the agent inside can be sent SIGUSR2: it starts and stops \
their recording.";

pub(crate) fn ctl(arguments: &CtlArgs) -> anyhow::Result<Outcome> {
    let (verb, pid) = match &arguments.verb {
        CtlVerb::Status { pid, .. } => ("status", *pid),
        CtlVerb::Start { pid } => ("start", *pid),
        CtlVerb::Stop { pid } => ("stop", *pid),
        CtlVerb::Snapshot { pid, .. } => ("snapshot", *pid),
        CtlVerb::Metrics { pid } => ("metrics", *pid),
    };
    if let CtlVerb::Snapshot { output, .. } = &arguments.verb {
        output::apart(output.iter().map(|output| &*output.path))?;
        output.iter().try_for_each(|output| output.check(&[]))?;
    }
    let recorded = all_of(pid)?;
    if let CtlVerb::Status { format, .. } = arguments.verb {
        let text = status(&recorded, format);
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
        return Ok(Outcome::Done);
    }
    let process = one(&format!("ctl {verb}"), &recorded)?;
    let mut answer = process.ask(verb)?;
    match &arguments.verb {
        CtlVerb::Snapshot { output, .. } => snapshot(process, answer, output),
        CtlVerb::Metrics { .. } => {
            let mut text = Vec::new();
            answer.read_to_end(&mut text)?;
            output::to_stdout(|out| out.write_all(&text))?;
            Ok(Outcome::Done)
        }
        CtlVerb::Start { .. } => said(process, "is recorded from the next graph run on"),
        _ => said(process, "is not recorded any more; the program goes on"),
    }
}

/// The one that is being recorded, or the one with this number.
pub(super) fn find(command: &str, pid: Option<u32>) -> anyhow::Result<Listed> {
    let recorded = all_of(pid)?;
    one(command, &recorded)?;
    recorded.into_iter().next().context(NOTHING)
}

fn one<'a>(command: &str, recorded: &'a [Listed]) -> anyhow::Result<&'a Listed> {
    match recorded {
        [process] => Ok(process),
        _ => bail!(several(command, recorded)),
    }
}

/// What is being recorded, at least one.
fn all_of(pid: Option<u32>) -> anyhow::Result<Vec<Listed>> {
    let (mut recorded, silent) = list_all();
    if let Some(pid) = pid {
        recorded = of_process(recorded, pid);
    }
    if recorded.is_empty() {
        match (pid, silent.first()) {
            (_, Some(silent)) => bail!("cannot find out what is being recorded: {silent}"),
            (Some(pid), None) => {
                bail!(
                    "process {pid} is not recorded. `ggprof ctl status` lists the processes that are."
                )
            }
            (None, None) => bail!(NOTHING),
        }
    }
    silent.iter().for_each(|silent| messages::warning(silent));
    Ok(recorded)
}

fn status(recorded: &[Listed], format: StatusFormat) -> String {
    match format {
        StatusFormat::Table => recorded.iter().map(Listed::line).collect(),
        StatusFormat::Json => {
            let all: Vec<_> = recorded.iter().map(Listed::json).collect();
            format!("{:#}\n", serde_json::Value::from(all))
        }
    }
}

/// Those with this number, or with this launcher. Numbers are meant as they are here: those
/// of other containers count where there is none.
fn of_process(mut recorded: Vec<Listed>, pid: u32) -> Vec<Listed> {
    recorded.retain(|process| process.pid == pid || process.launcher.pid == pid);
    let namespace = Launcher::here().namespace;
    let is_here = |process: &Listed| process.launcher.namespace == namespace;
    if recorded.iter().any(is_here) {
        recorded.retain(is_here);
    }
    recorded
}

fn said(process: &Listed, what: &str) -> anyhow::Result<Outcome> {
    messages::note(&format!("{} (process {}) {what}.", process.program, process.pid));
    Ok(Outcome::Done)
}

fn snapshot(process: &Listed, pieces: impl Read, outputs: &[Output]) -> anyhow::Result<Outcome> {
    let (_removal, file) = received(pieces)?;
    let recording = Recording::of_process(file.path(), &process.pid.to_string())?;
    // The launcher has sent all that it knows.
    let completed = Completed::as_it_is(file.path())?;
    present(&recording, &completed, outputs, SummaryTo::Stdout)?;
    Ok(recording.outcome())
}

/// A file of the copy that a launcher sends, which may be large.
pub(super) fn received(pieces: impl Read) -> anyhow::Result<(Removal, NamedTempFile)> {
    let made = Removal::of(|| tempfile::Builder::new().prefix("ggprof-snapshot-").tempfile())?;
    receive(pieces, made.1.as_file()).context("the copy cannot be made")?;
    Ok(made)
}

/// Puts the pieces that a launcher sends where they belong in a file. The first of the file
/// comes last: if the launcher ends before that, there is no recording.
fn receive(mut pieces: impl Read, file: &File) -> std::io::Result<()> {
    let mut number = [0; 8];
    let mut piece = Vec::new();
    loop {
        match pieces.read_exact(&mut number) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        let offset = u64::from_le_bytes(number);
        pieces.read_exact(&mut number)?;
        let length = u64::from_le_bytes(number) as usize;
        if length > BLOCK_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        piece.resize(length, 0);
        pieces.read_exact(&mut piece)?;
        file.write_all_at(&piece, offset)?;
    }
}

fn several(command: &str, recorded: &[Listed]) -> String {
    let lines: String = recorded.iter().map(|process| format!("\n  {}", process.line())).collect();
    format!("several programs are recorded. Say which: `ggprof {command} PID`.{}", lines.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::send;

    #[test]
    fn what_is_longer_than_a_block_arrives_whole() {
        let part: Vec<u8> = (0..3 * BLOCK_BYTES + 7).map(|at| at as u8).collect();
        let mut sent = Vec::new();
        send(&mut sent, 10, &part).unwrap();
        let (_removal, file) = received(&sent[..]).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap()[10..], part);
    }
}
