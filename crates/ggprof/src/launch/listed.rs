//! The other side of `control`: what `ggprof ctl` asks the user's launchers. It finds them by
//! connecting to their sockets, and trusts them no more than necessary: each has a limited time and
//! a limited number of bytes.

use super::sockets::{self, Launcher};
use anyhow::{Context, anyhow};
use ggprof_report::render::printable;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A launcher lists its recordings at once, but a stop waits for the graph run under way.
const TO_LIST: Duration = Duration::from_secs(5);
const TO_ACT: Duration = Duration::from_secs(60);
/// Longer than any sentence, and than the list of any number of processes.
const LONGEST_LINE: u64 = 1000;
const LONGEST_LIST: u64 = 1 << 20;

/// A process that a launcher of the user records.
pub(crate) struct Listed {
    socket: PathBuf,
    pub(crate) launcher: Launcher,
    pub(crate) pid: u32,
    state: String,
    graph_runs: u64,
    bytes: u64,
    losses: u64,
    since_unix_ns: Option<u64>,
    until_unix_ns: Option<u64>,
    pub(crate) program: String,
}

impl Listed {
    pub(crate) fn line(&self) -> String {
        let Listed { pid, program, state, graph_runs, bytes, .. } = self;
        let megabytes = *bytes as f64 / 1e6;
        let (program, state) = (printable(program), printable(state));
        format!("{pid}  {program}  {state}  {graph_runs} graph runs  {megabytes:.1} MB\n")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "pid": self.pid,
            "program": self.program,
            "state": self.state,
            "graph_runs": self.graph_runs,
            "bytes": self.bytes,
            "since_unix_ns": self.since_unix_ns,
            "until_unix_ns": self.until_unix_ns,
            "losses": self.losses,
        })
    }

    /// Sends a request about it to the launcher; returns what comes after its `ok`.
    pub(crate) fn ask(&self, verb: &str) -> anyhow::Result<impl BufRead + use<>> {
        ask(&self.socket, &format!("{verb} {}", self.pid), TO_ACT)
    }

    fn parse(socket: &Path, line: &str) -> Option<Listed> {
        let mut fields = line.splitn(8, ' ');
        Some(Listed {
            launcher: Launcher::of(socket)?,
            socket: socket.to_owned(),
            pid: fields.next()?.parse().ok()?,
            state: fields.next()?.to_owned(),
            graph_runs: fields.next()?.parse().ok()?,
            bytes: fields.next()?.parse().ok()?,
            losses: fields.next()?.parse().ok()?,
            since_unix_ns: moment(fields.next()?)?,
            until_unix_ns: moment(fields.next()?)?,
            program: fields.next()?.to_owned(),
        })
    }
}

/// A moment, or `-` where there is none; `None` for anything else.
fn moment(field: &str) -> Option<Option<u64>> {
    if field == "-" { Some(None) } else { field.parse().ok().map(Some) }
}

/// What every launcher says, and a sentence about each that does not. One that refuses is gone.
pub(crate) fn list_all() -> (Vec<Listed>, Vec<String>) {
    let (mut recorded, mut silent) = (Vec::new(), Vec::new());
    for socket in sockets::all() {
        match list(&socket) {
            Ok(processes) => recorded.extend(processes),
            Err(error) if is_refused(&error) => _ = std::fs::remove_file(&socket),
            Err(error) => silent.push(format!("{}: {error:#}", socket.display())),
        }
    }
    (recorded, silent)
}

fn list(socket: &Path) -> anyhow::Result<Vec<Listed>> {
    let mut text = String::new();
    let read = ask(socket, "status", TO_LIST)?.take(LONGEST_LIST).read_to_string(&mut text);
    read.context("its launcher gave no complete answer")?;
    let processes = text.lines().map(|line| Listed::parse(socket, line));
    processes
        .collect::<Option<_>>()
        .context("its launcher is another version of ggprof; use the same version for both")
}

fn is_refused(error: &anyhow::Error) -> bool {
    let io = error.root_cause().downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// Sends a request to a launcher; returns a reader of what comes after its `ok`.
fn ask(socket: &Path, request: &str, patience: Duration) -> anyhow::Result<impl BufRead + use<>> {
    let lost = || "its launcher does not answer. Is it stopped?";
    let mut stream = UnixStream::connect(socket).with_context(lost)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    writeln!(stream, "{request}").with_context(lost)?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.by_ref().take(LONGEST_LINE).read_line(&mut first).with_context(lost)?;
    match first.strip_suffix('\n') {
        Some("ok") => Ok(reader),
        Some(sentence) => Err(anyhow!("{sentence}")),
        None => Err(anyhow!(lost())),
    }
}
