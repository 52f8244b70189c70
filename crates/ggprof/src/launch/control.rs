//! The launcher's side of `ggprof ctl`: it listens on a socket and carries out requests on the
//! recordings of its program. The program itself has no thread or socket for this: its agent reads
//! a word of its file.
//!
//! A request is a line, `VERB PID`. The answer is a line, `ok` or a sentence; after `ok` comes the
//! result, up to the end of the stream.

use super::spools::recordings_in;
use super::{RecordedProcess, Samples, Standing, Watched, sensors, sockets};
use crate::messages;
use anyhow::{Context, bail};
use ggprof_analysis::live::Reading;
use ggprof_report::live::open_metrics;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Far more than a request needs; anything longer is not a request.
const LONGEST_REQUEST: u64 = 100;

/// How long to wait for the other end.
const PATIENCE: Duration = Duration::from_secs(5);

const OK: &[u8] = b"ok\n";

/// Recordings that metrics were asked of, each looked at from the first time on.
type WatchedFiles = Arc<Mutex<HashMap<PathBuf, Watched>>>;

/// Listens until it is dropped.
pub(crate) struct ControlSocket {
    socket: Option<PathBuf>,
}

impl ControlSocket {
    /// Recordings appear in this directory, and samples for copies of them. Without a socket all else works, so that is no
    /// error.
    pub(crate) fn listen(spools: &Path, samples: Arc<Mutex<Samples>>) -> ControlSocket {
        let listening = listen(spools.to_owned(), samples);
        if let Err(error) = &listening {
            messages::warning(&format!("`ggprof ctl` will not reach this recording: {error:#}"));
        }
        ControlSocket { socket: listening.ok() }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn listen(spools: PathBuf, samples: Arc<Mutex<Samples>>) -> anyhow::Result<PathBuf> {
    let (listener, socket) = sockets::listen()?;
    let measured = WatchedFiles::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (spools, samples) = (spools.clone(), samples.clone());
            let measured = measured.clone();
            std::thread::spawn(move || answer(stream, &spools, &samples, &measured));
        }
    });
    Ok(socket)
}

/// Only the user or root can connect: the socket is in a directory that only the user can open.
fn answer(
    mut stream: UnixStream,
    spools: &Path,
    samples: &Mutex<Samples>,
    measured: &WatchedFiles,
) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let done = request(&stream)
        .and_then(|request| carry_out(&request, spools, samples, measured, &mut stream));
    if let Err(error) = done {
        // The process that asked may be gone.
        let _ = stream.write_all(format!("{error:#}\n").as_bytes());
    }
}

fn request(stream: &UnixStream) -> anyhow::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn carry_out(
    request: &str,
    spools: &Path,
    samples: &Mutex<Samples>,
    measured: &WatchedFiles,
    out: &mut UnixStream,
) -> anyhow::Result<()> {
    let recorded = RecordedProcess::alive(&recordings_in(spools));
    let (verb, pid) = request.split_once(' ').unwrap_or((request, ""));
    if verb == "status" {
        let lines: String = recorded.iter().filter_map(status_line).collect();
        out.write_all(OK)?;
        return Ok(out.write_all(lines.as_bytes())?);
    }
    let process = recorded.iter().find(|process| process.pid.to_string() == pid);
    let process = process.with_context(|| format!("process {pid} is not recorded any more"))?;
    match verb {
        "start" if process.start()? => {}
        "start" => bail!(
            "the recording of process {pid} has given up, for lack of space or after a fault; what was \
             recorded until then is kept, and only another `ggprof run` records more"
        ),
        "stop" if process.stop()? => {}
        "stop" => {
            bail!(
                "process {pid} is still computing a graph, or a device has not delivered all times of \
                 the last one; recording stops when that is done, with the next graph at the latest"
            )
        }
        "snapshot" => {
            out.write_all(OK)?;
            // A copy without its end says that something went wrong; a sentence would look
            // like a part of it.
            let _ = process.send_snapshot(samples, out);
            return Ok(());
        }
        // Where it is, for somebody who reads it while it grows.
        "file" => {
            let file = process.file.canonicalize()?;
            out.write_all(OK)?;
            return Ok(out.write_all(file.as_os_str().as_encoded_bytes())?);
        }
        "metrics" => {
            let readings = sensors::lock(samples).latest();
            let text = metrics(&process.file, &readings, measured)?;
            out.write_all(OK)?;
            return Ok(out.write_all(text.as_bytes())?);
        }
        "sensors" => {
            let readings = serde_json::to_string(&sensors::lock(samples).latest())?;
            out.write_all(OK)?;
            return Ok(out.write_all(readings.as_bytes())?);
        }
        _ => bail!("this ggprof does not know \"{verb}\"; use the same version for both"),
    }
    Ok(out.write_all(OK)?)
}

fn metrics(file: &Path, readings: &[Reading], measured: &WatchedFiles) -> anyhow::Result<String> {
    let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
    if !measured.contains_key(file) {
        measured.insert(file.to_owned(), Watched::open(file)?);
    }
    let watched = measured.get_mut(file).context("it was just opened")?;
    watched.look()?;
    Ok(open_metrics(watched.counters(), readings))
}

/// Fields of a status, with the program's name, which may hold anything, last.
fn status_line(process: &RecordedProcess) -> Option<String> {
    let Standing { state, graph_runs, bytes, losses, since_unix_ns, until_unix_ns, program } =
        process.standing().ok()?;
    let moment = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| ns.to_string());
    let (since, until) = (moment(since_unix_ns), moment(until_unix_ns));
    let program = program.replace(char::is_control, "?");
    let pid = process.pid;
    Some(format!("{pid} {state} {graph_runs} {bytes} {losses} {since} {until} {program}\n"))
}
