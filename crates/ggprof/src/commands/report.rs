//! `ggprof report`: questions about a recording, printed or exported.

use crate::cli::{NumbersArgs, PrintArgs, ReportArgs};
use crate::comparison::Sides;
use crate::exit::Outcome;
use crate::format::FormatArg;
use crate::recording::Recording;
use crate::{messages, op_export, output, printing};
use ggprof_analysis::diff::Depth;
use ggprof_analysis::filter::leave_warm_ups_out;
use ggprof_report::documents::{self, By};
use ggprof_report::{Block, Document, timeline, viewer};
use ggprof_trace::formats::chrome;
use std::path::{Path, PathBuf};

/// Rows that `--inefficiency` shows.
const INEFFICIENT_OPS: usize = 10;

pub(crate) fn report(arguments: &ReportArgs) -> anyhow::Result<Outcome> {
    check(arguments)?;
    let mut recording = Recording::open_all(&arguments.files)?;
    recording.select(&arguments.part)?;
    if arguments.issue {
        leave_warm_ups_out(&mut recording.trace);
        return issue(arguments, &recording);
    }
    let exported = export(arguments, &recording)?;
    let documents = documents(arguments, &recording, exported);
    if !documents.is_empty() {
        printing::print(&arguments.print, &documents)?;
    }
    if !documents.is_empty() && arguments.print.format() == FormatArg::Csv {
        recording.warn_if_incomplete();
    } else if !shows_warnings(&documents) {
        recording.warn_of_losses();
    }
    Ok(recording.outcome())
}

/// Whether all files can be written that were asked for.
fn check(arguments: &ReportArgs) -> anyhow::Result<()> {
    let files = arguments.files.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> =
        files.chain(arguments.since.as_deref()).chain(arguments.part.peaks.as_deref()).collect();
    arguments.print.check(&inputs)?;
    let outputs = [&arguments.chrome_trace, &arguments.html_viewer];
    let written = outputs.into_iter().flatten().map(|output| &*output.path);
    let printed = arguments.print.output.iter().map(|output| &*output.path);
    output::apart(written.chain(printed).chain(arguments.export_ops.as_deref()))?;
    outputs.into_iter().flatten().try_for_each(|output| output.check(&inputs))?;
    if let Some(path) = &arguments.export_ops {
        inputs.iter().try_for_each(|input| output::spare(input, path))?;
        output::check(path)?;
    }
    Ok(())
}

/// What maintainers ask for, and what changed since another recording.
fn issue(arguments: &ReportArgs, recording: &Recording) -> anyhow::Result<Outcome> {
    let since = arguments.since.as_deref().map(|path| before(path, arguments)).transpose()?;
    let diff = since.as_ref().map(|it| Sides::of_first(it, recording).diff(Depth::Shape));
    let document = documents::issue(&recording.trace, diff.as_ref());
    let asked = arguments.print.asked_format().unwrap_or(FormatArg::Markdown);
    printing::print(&PrintArgs { format: Some(asked), ..arguments.print.clone() }, &[document])?;
    since.iter().for_each(Recording::warn_of_losses);
    let is_whole = since.iter().chain([recording]).all(|it| it.outcome() == Outcome::Done);
    Ok(if is_whole { Outcome::Done } else { Outcome::Incomplete })
}

/// The same part of an earlier recording.
fn before(path: &Path, arguments: &ReportArgs) -> anyhow::Result<Recording> {
    let mut recording = Recording::open_part(path, &arguments.part)?;
    leave_warm_ups_out(&mut recording.trace);
    Ok(recording)
}

/// Writes the files that were asked for; whether there were any.
fn export(arguments: &ReportArgs, recording: &Recording) -> anyhow::Result<bool> {
    let Recording { trace, name, peaks } = recording;
    if let Some(output) = &arguments.chrome_trace {
        let annotations = timeline::annotations(trace);
        output.fill(|out| chrome::write(trace, &annotations, out))?;
        messages::note(&format!(
            "Chrome trace written to {}; open it in ui.perfetto.dev or chrome://tracing.",
            output.path.display()
        ));
    }
    if let Some(output) = &arguments.html_viewer {
        let drawn = Some(arguments.html_max_records).filter(|&most| most > 0);
        output.fill(|out| viewer::write(trace, name, peaks.as_ref(), drawn, out))?;
        messages::note(&format!("HTML page written to {}.", output.path.display()));
    }
    if let Some(path) = &arguments.export_ops {
        let numbers = NumbersArgs { reader: arguments.export_for.clone(), ids_of: None };
        op_export::write(recording, None, &numbers, path)?;
    }
    let has_files =
        [&arguments.chrome_trace, &arguments.html_viewer].into_iter().any(Option::is_some);
    Ok(has_files || arguments.export_ops.is_some())
}

/// What to print: what was asked for, or the summary if nothing was.
fn documents(arguments: &ReportArgs, recording: &Recording, exported: bool) -> Vec<Document> {
    let Recording { trace, name, peaks } = recording;
    let peaks = peaks.as_ref();
    let mut documents = Vec::new();
    if let Some(by) = arguments.by {
        documents.push(documents::by(trace, by.into(), peaks));
    }
    if let Some(n) = arguments.top_ops {
        documents.push(documents::top_ops(trace, n, peaks));
    }
    if let Some(n) = arguments.top_kernels {
        documents.push(documents::top_kernels(trace, n));
    }
    if arguments.inefficiency {
        documents.push(documents::inefficiency(trace, INEFFICIENT_OPS));
    }
    if documents.is_empty() && !exported {
        documents.push(match arguments.print.format() {
            // A file of comma-separated values holds one table.
            FormatArg::Csv => documents::by(trace, By::Op, peaks),
            _ => documents::summary(trace, name, peaks),
        });
    }
    if arguments.print.format() == FormatArg::Csv {
        let blocks = documents.into_iter().flat_map(|document| document.blocks).collect();
        documents = vec![Document { blocks }];
    }
    documents
}

/// Whether what is printed already says what is missing.
fn shows_warnings(documents: &[Document]) -> bool {
    let blocks = documents.iter().flat_map(|document| &document.blocks);
    blocks.into_iter().any(|block| matches!(block, Block::Warning(_)))
}
