//! The program that is recorded. It keeps its own streams, terminal, signals and exit status.

use super::{Agent, preload};
use crate::inherited;
use crate::messages;
use anyhow::anyhow;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    SIGABRT, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGQUIT, SIGSEGV, SIGSYS, SIGTERM, SIGTRAP,
    SIGUSR1, SIGUSR2,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

/// How the program ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended(ExitStatus);

impl Ended {
    pub(super) fn new(status: ExitStatus) -> Self {
        Self(status)
    }

    /// The exit code that a shell would give.
    pub(crate) fn code(self) -> u8 {
        let code = self.0.code().or_else(|| self.0.signal().map(|signal| 128 + signal));
        code.map_or(u8::MAX, |code| code as u8)
    }

    /// The signal of a fault that ended it, or a program that it started and whose code it
    /// passes on, as shells do.
    pub(crate) fn crash(self) -> Option<&'static str> {
        let signal = i32::from(self.code()) - 128;
        let is_fault =
            [SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP].contains(&signal);
        is_fault.then(|| signal_hook::low_level::signal_name(signal)).flatten()
    }
}

/// The program could not be started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    sentence: String,
    /// The exit code that a shell would give.
    pub(crate) code: u8,
}

impl NotStarted {
    pub(super) fn new(program: &OsStr, error: &io::Error) -> Self {
        let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
        Self { sentence: messages::cannot_start(program, error), code }
    }

    /// As a shell's exit code has it; `None` of other codes.
    pub(super) fn of_code(code: Option<i32>, sentence: &str) -> Option<Self> {
        let code = code.and_then(|code| u8::try_from(code).ok());
        let code = code.filter(|code| [126, 127].contains(code))?;
        Some(Self { sentence: sentence.to_owned(), code })
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for NotStarted {}

/// Runs `command` with `agent` loaded and these variables set, to its end. Those without a value are not
/// set: each one costs every process that is started. What `once_started` opens, the program does not
/// inherit.
pub(crate) fn run(
    command: &[OsString],
    agent: &Agent,
    variables: &[(&str, OsString)],
    once_started: impl FnOnce(),
) -> anyhow::Result<Ended> {
    let [program, arguments @ ..] = command else { return Err(anyhow!("no command was given")) };
    // Heard from before the program starts, so that none of them ends us alone.
    let heard = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];
    let signals = SignalsInfo::<WithOrigin>::new(heard)?;
    let handle = signals.handle();
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", preload::with_agent(agent));
    command.env(preload::SANITIZER, preload::sanitizer_options());
    for (name, value) in variables {
        match value.is_empty() {
            true => command.env_remove(name),
            false => command.env(name, value),
        };
    }
    let mut child = inherited::pass_on(&mut command)
        .spawn()
        .map_err(|error| NotStarted::new(program, &error))?;
    once_started();
    let pid = child.id();
    let forwarder = std::thread::spawn(move || forward(signals, pid));
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    Ok(Ended(status?))
}

/// Passes on signals that a process sent to us. Those of the terminal went to the program
/// already, because it is in our process group.
fn forward(mut signals: SignalsInfo<WithOrigin>, pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    for origin in &mut signals {
        if origin.process.is_some()
            && let Some(signal) = Signal::from_named_raw(origin.signal)
        {
            // The program may have ended just now.
            let _ = kill_process(pid, signal);
        }
    }
}
