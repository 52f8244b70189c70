//! What the exit code means; `ggprof --help` says the same.

#[cfg(target_os = "linux")]
use crate::launch::NotStarted;
use std::io;
use std::process::ExitCode;

/// The command failed and has written nothing. (2, a wrong command line, is clap's.)
pub(crate) const FAILED: u8 = 1;

/// How a command that did its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Everything was written, but the recording is damaged, cut off or empty.
    Incomplete,
    /// There is a change that a script asked about.
    Changed,
    /// A command was run, and ended with this code.
    Command(u8),
}

impl Outcome {
    pub(crate) fn code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::Incomplete => ExitCode::from(3),
            Self::Changed => ExitCode::from(4),
            Self::Command(code) => ExitCode::from(code),
        }
    }
}

/// The code of a command that failed.
pub(crate) fn of_failure(error: &anyhow::Error) -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(command) = error.downcast_ref::<NotStarted>() {
        return ExitCode::from(command.code);
    }
    let _ = error;
    ExitCode::from(FAILED)
}

/// Whether the reader of our output has closed the pipe, which is not an error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
