//! Opens the recording that the user named.

use crate::exit::Outcome;
use crate::launch::Completed;
use crate::messages;
use crate::progress::Progress;
use anyhow::anyhow;
use ggprof_report::caveats;
use ggprof_trace::Trace;
use ggprof_trace::formats::{self, ReadError};
use std::borrow::Borrow;
use std::fs::File;
use std::io;
use std::path::Path;

/// A recording and what people call it.
pub(crate) struct Recording {
    pub(crate) trace: Trace,
    pub(crate) name: String,
}

impl Recording {
    /// What a process left behind, under the name of its program.
    pub(crate) fn of_process(spool: &Path, process: &str) -> anyhow::Result<Self> {
        Self::read_from(Completed::as_it_is(spool), process)
    }

    /// The same with what the launcher adds.
    pub(crate) fn of_completed(spool: &Completed<'_>, process: &str) -> anyhow::Result<Self> {
        Self::read_from(Ok(spool), process)
    }

    fn read_from<'f, C: Borrow<Completed<'f>>>(
        spool: io::Result<C>,
        process: &str,
    ) -> anyhow::Result<Self> {
        let named = |program: &str| format!("{program} (process {process})");
        let trace = spool.map_err(ReadError::Io).and_then(|spool| {
            let spool = spool.borrow();
            read(spool.open()?, Some(spool.len()))
        });
        match trace {
            Ok(trace) => {
                let program = trace.provenance.as_ref().map_or("", |facts| &facts.command);
                let name = named(program);
                Ok(Self { trace, name })
            }
            Err(error) => Err(anyhow!(messages::cannot_read(&named("the recording"), &error))),
        }
    }

    /// Reads the file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let (name, result) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), read(io::stdin().lock(), None))
        } else {
            (path.display().to_string(), open_file(path))
        };
        match result {
            Ok(trace) => Ok(Self { trace, name }),
            Err(error) => Err(anyhow!(messages::cannot_read(&name, &error))),
        }
    }

    /// Says what is missing from it, where no report does.
    pub(crate) fn warn_of_losses(&self) {
        for loss in caveats(&self.trace).iter().filter(|caveat| caveat.is_loss()) {
            messages::warning(&loss.sentence());
        }
    }

    /// Whether it is all that it should be.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.trace.losses.is_empty() && !self.trace.events.is_empty() {
            true => Outcome::Done,
            false => Outcome::Incomplete,
        }
    }
}

fn open_file(path: &Path) -> Result<Trace, ReadError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(ReadError::Io(io::ErrorKind::IsADirectory.into()));
    }
    read(file, metadata.is_file().then_some(metadata.len()))
}

fn read(input: impl io::Read, length: Option<u64>) -> Result<Trace, ReadError> {
    formats::read(Progress::new(input, length))
}
