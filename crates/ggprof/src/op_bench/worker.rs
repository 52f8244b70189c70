//! The process in which one op runs.

use anyhow::Context;
use ggprof_ops::{Trial, TrialTime};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_millis(5);

/// What a trial took, or why there is nothing to say: a clause.
pub(super) fn measured(trial: &Trial, limit: Duration) -> Result<TrialTime, String> {
    let ended = run(trial, limit).map_err(|error| format!("{error:#}"))?;
    let Some((status, answer, said)) = ended else {
        return Err(format!("it took longer than {} s", limit.as_secs_f64()));
    };
    if status.success() {
        return serde_json::from_str(&answer).map_err(|error| format!("no answer came: {error}"));
    }
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last = last.trim().trim_start_matches("ggprof: ");
    Err(match status.signal() {
        Some(signal) if last.is_empty() => {
            format!("the library ended its process (signal {signal})")
        }
        Some(signal) => format!("the library ended its process (signal {signal}): {last}"),
        None => last.to_owned(),
    })
}

type Ended = (ExitStatus, String, String);

/// How it ended and what it printed; `None` if it was ended because it took too long.
fn run(trial: &Trial, limit: Duration) -> anyhow::Result<Option<Ended>> {
    let mut command = Command::new(std::env::current_exe().context("ggprof cannot find itself")?);
    command.arg("op-worker").arg("bench");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the process for it cannot be started")?;
    let text = serde_json::to_string(trial)?;
    // What it reads is more than a pipe holds only if it does not read.
    let sent = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes()));
    let (answer, said) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let Some(status) = ended(&mut child, limit)? else { return Ok(None) };
    let [answer, said] = [answer, said].map(|it| it.join().unwrap_or_default());
    if status.success() {
        sent.transpose().context("it did not listen")?;
    }
    Ok(Some((status, answer, said)))
}

/// Reads all that a process prints, so that it never waits for us.
fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn ended(child: &mut Child, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(PATIENCE);
    }
}
