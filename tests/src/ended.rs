//! Running a program that may hang.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How a program ended, with what it printed; an error if it had to be ended.
pub fn within(limit: Duration, command: &mut Command) -> Result<Output, String> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started.spawn().map_err(|error| error.to_string())?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let deadline = Instant::now() + limit;
    let read = |pipe: &mut dyn Read| {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
    };
    std::thread::scope(|scope| {
        let out = scope.spawn(|| out.as_mut().map(|pipe| read(pipe)).unwrap_or_default());
        let err = scope.spawn(|| err.as_mut().map(|pipe| read(pipe)).unwrap_or_default());
        let mut hangs = false;
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if Instant::now() > deadline && !hangs => {
                    hangs = true;
                    child.kill().map_err(|error| error.to_string())?;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let (stdout, stderr) = (out.join(), err.join());
        let (stdout, stderr) = (stdout.unwrap_or_default(), stderr.unwrap_or_default());
        if hangs {
            return Err(format!("it had not ended after {} s", limit.as_secs()));
        }
        Ok(Output { status, stdout, stderr })
    })
}
