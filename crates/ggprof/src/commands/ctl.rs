//! `ggprof ctl`: starts, stops and copies recordings of programs that are running.

use super::run::present;
use crate::cli::{CtlArgs, CtlVerb, SummaryTo};
use crate::exit::Outcome;
use crate::input::Recording;
use crate::launch::sockets;
use crate::{messages, output};
use anyhow::{Context, anyhow, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const NOTHING: &str = "\
nothing is being recorded: no program that was started with `ggprof run` uses ggml now. Programs \
that were started in another way with the agent inside can be sent SIGUSR2: it starts and stops \
their recording.";

pub(crate) fn ctl(arguments: &CtlArgs) -> anyhow::Result<Outcome> {
    let mut recorded = all_recorded();
    let (verb, pid) = match &arguments.verb {
        CtlVerb::Status { pid } => ("status", *pid),
        CtlVerb::Start { pid } => ("start", *pid),
        CtlVerb::Stop { pid } => ("stop", *pid),
        CtlVerb::Snapshot { pid, .. } => ("snapshot", *pid),
    };
    if let Some(pid) = pid {
        recorded.retain(|process| process.pid == pid || process.launcher == pid);
    }
    if recorded.is_empty() {
        match pid {
            Some(pid) => bail!("process {pid} is not recorded. `ggprof ctl status` lists them."),
            None => bail!(NOTHING),
        }
    }
    if verb == "status" {
        let lines: String = recorded.iter().map(Recorded::line).collect();
        output::to_stdout(|out| out.write_all(lines.as_bytes()))?;
        return Ok(Outcome::Done);
    }
    let [process] = &recorded[..] else { bail!(several(verb, &recorded)) };
    let answer = ask(&process.socket, &format!("{verb} {}", process.pid))?;
    match &arguments.verb {
        CtlVerb::Snapshot { output, .. } => snapshot(process, answer, output),
        CtlVerb::Start { .. } => said(process, "is recorded from the next graph run on"),
        _ => said(process, "is not recorded any more; the program goes on"),
    }
}

fn said(process: &Recorded, what: &str) -> anyhow::Result<Outcome> {
    messages::note(&format!("{} (process {}) {what}.", process.program, process.pid));
    Ok(Outcome::Done)
}

fn snapshot(process: &Recorded, pieces: impl Read, outputs: &[PathBuf]) -> anyhow::Result<Outcome> {
    let file = tempfile::Builder::new().prefix("ggprof-snapshot-").tempfile()?;
    receive(pieces, file.as_file()).context("the copy cannot be made")?;
    let recording = Recording::of_process(file.path(), &process.pid.to_string())?;
    present(&recording, file.path(), outputs, SummaryTo::Stdout)?;
    Ok(recording.outcome())
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
        piece.clear();
        pieces.by_ref().take(u64::from_le_bytes(number)).read_to_end(&mut piece)?;
        file.write_all_at(&piece, offset)?;
    }
}

/// A process that a launcher of the user records.
struct Recorded {
    socket: PathBuf,
    launcher: u32,
    pid: u32,
    state: String,
    graph_runs: u64,
    bytes: u64,
    program: String,
}

impl Recorded {
    fn line(&self) -> String {
        let Recorded { pid, program, state, graph_runs, bytes, .. } = self;
        let megabytes = *bytes as f64 / 1e6;
        format!("{pid}  {program}  {state}  {graph_runs} graph runs  {megabytes:.1} MB\n")
    }

    fn parse(socket: &Path, line: &str) -> Option<Recorded> {
        let mut fields = line.splitn(5, ' ');
        Some(Recorded {
            launcher: socket.file_stem()?.to_str()?.parse().ok()?,
            socket: socket.to_owned(),
            pid: fields.next()?.parse().ok()?,
            state: fields.next()?.to_owned(),
            graph_runs: fields.next()?.parse().ok()?,
            bytes: fields.next()?.parse().ok()?,
            program: fields.next()?.to_owned(),
        })
    }
}

/// What every launcher says; those that do not answer are gone.
fn all_recorded() -> Vec<Recorded> {
    let mut recorded = Vec::new();
    for socket in sockets::all() {
        match ask(&socket, "status") {
            Ok(answer) => {
                let lines = answer.lines().map_while(Result::ok);
                recorded.extend(lines.filter_map(|line| Recorded::parse(&socket, &line)));
            }
            Err(error) if is_refused(&error) => _ = std::fs::remove_file(&socket),
            Err(_) => {}
        }
    }
    recorded
}

fn is_refused(error: &anyhow::Error) -> bool {
    let io = error.root_cause().downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

fn several(verb: &str, recorded: &[Recorded]) -> String {
    let lines: String = recorded.iter().map(|process| format!("\n  {}", process.line())).collect();
    format!(
        "several programs are recorded. Say which: `ggprof ctl {verb} PID`.{}",
        lines.trim_end()
    )
}

/// Sends a request to a launcher; what stands behind its `ok`, still to be read.
fn ask(socket: &Path, request: &str) -> anyhow::Result<BufReader<UnixStream>> {
    let lost = || "the launcher of that recording does not answer. Is it still running?";
    let mut stream = UnixStream::connect(socket).with_context(lost)?;
    writeln!(stream, "{request}").with_context(lost)?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).with_context(lost)?;
    if first != "ok\n" {
        return Err(anyhow!("{}", first.trim_end()));
    }
    Ok(reader)
}
