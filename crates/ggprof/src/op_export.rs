//! Writes ops for `test-backend-ops`, and says what it could not write.

use crate::cli::NumbersArgs;
use crate::recording::Recording;
use crate::{messages, output};
use anyhow::{Context, anyhow, bail};
use ggprof_analysis::distinct_ops;
use ggprof_report::left_out_words;
use ggprof_trace::NodeId;
use ggprof_trace::formats::op_lines::{self, Numbers};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn write(
    recording: &Recording,
    top: Option<usize>,
    numbers: &NumbersArgs,
    output: &Path,
) -> anyhow::Result<()> {
    let trace = &recording.trace;
    let numbers = numbers_of(recording, numbers)?;
    let ops = distinct_ops(trace);
    let nodes: Vec<NodeId> = ops.iter().take(top.unwrap_or(ops.len())).map(|op| op.node).collect();
    let written = op_lines::lines(trace, &nodes, &numbers);
    output::to_file(output, |out| {
        written.lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    })?;
    for sentence in left_out_words::sentences(trace, &written.left_out) {
        messages::note(&sentence);
    }
    if output.as_os_str() != "-" {
        messages::note(&format!(
            "{} operations written to {}; read them with `test-backend-ops perf -b CPU --test-file`, or \
             another backend: without -b, it leaves the CPU out.",
            written.lines.len(),
            output.display()
        ));
    }
    Ok(())
}

fn numbers_of(recording: &Recording, arguments: &NumbersArgs) -> anyhow::Result<Numbers> {
    if let Some(library) = &arguments.reader {
        return of_library(library);
    }
    if let Some(file) = &arguments.ids_of {
        let other = Recording::open(file)?;
        let numbers = Numbers::of_other(&other.trace);
        if numbers.is_empty() {
            bail!(
                "{} does not say how its ggml numbers its ops; recordings of ggprof do, from format 6 \
                 on. Name the library itself: --for LIBGGML.",
                other.name
            );
        }
        return Ok(numbers);
    }
    let numbers = Numbers::of_recording(&recording.trace);
    if numbers.is_empty() {
        bail!(
            "{} does not say how its ggml numbers its ops. Name the libggml-base that will read the \
             lines: --for LIBGGML; or a recording of ggprof with the same ggml: --ids-of FILE.",
            recording.name
        );
    }
    Ok(numbers)
}

/// Asks a library for its numbers, in a process that it may end.
fn of_library(library: &Path) -> anyhow::Result<Numbers> {
    // The loader searches its directories for a name without a slash.
    let library = library
        .canonicalize()
        .with_context(|| format!("{} cannot be opened. Check the path", library.display()))?;
    let mut worker = Command::new(std::env::current_exe()?);
    worker.arg("op-worker").arg("numbers").arg(&library).stdin(Stdio::null());
    let ended = worker.output().context("the process that asks the library cannot be started")?;
    let numbers = Numbers::of_listing(&String::from_utf8_lossy(&ended.stdout));
    if numbers.is_empty() {
        let said = String::from_utf8_lossy(&ended.stderr);
        let said = said.trim().trim_start_matches("ggprof: ");
        return Err(match said.is_empty() {
            true => {
                anyhow!("{} ended the process that asked it ({})", library.display(), ended.status)
            }
            false => anyhow!("{} tells no numbers: {said}", library.display()),
        });
    }
    Ok(numbers)
}
