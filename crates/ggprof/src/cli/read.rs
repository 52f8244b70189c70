//! What commands take that read recordings: which part, which questions, in what form.

use super::{parsed, texts};
use crate::format::{FormatArg, Output, Printout};
use crate::quantity::{self, Moment};
use clap::{Args, ValueEnum};
use ggprof_analysis::PhaseKind;
use ggprof_report::documents::By;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = texts::REPORT)]
pub(crate) struct ReportArgs {
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input. Several, or a directory of them, are shown on one axis of time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Show the N operations with the longest total time
    #[arg(long, value_name = "N", value_parser = quantity::some::<usize>)]
    pub(crate) top_ops: Option<usize>,
    /// Show the N longest single calls
    #[arg(long, value_name = "N", value_parser = quantity::some::<usize>)]
    pub(crate) top_kernels: Option<usize>,
    /// Rank operations by time per byte, worst first
    #[arg(long)]
    pub(crate) inefficiency: bool,
    /// Show the totals of all events by one criterion, or of memory
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<ByArg>,
    /// Print what maintainers ask for, as markdown of at most 60 lines to paste into an issue: versions,
    /// devices, the model, speeds, where the time goes, the longest operations. Without paths,
    /// arguments and names of hosts or users
    #[arg(
        long,
        conflicts_with_all = [
            "by", "top_ops", "top_kernels", "inefficiency", "chrome_trace", "html_viewer", "export_ops"
        ]
    )]
    pub(crate) issue: bool,
    /// With --issue: what changed since this recording
    #[arg(long, value_name = "FILE", requires = "issue")]
    pub(crate) since: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Write a Chrome trace, for ui.perfetto.dev and chrome://tracing
    #[arg(long, value_name = "FILE", value_parser = parsed(Output::json))]
    pub(crate) chrome_trace: Option<Output>,
    /// Write the timeline as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_parser = parsed(Output::page))]
    pub(crate) html_viewer: Option<Output>,
    /// Write the operations for llama.cpp's `test-backend-ops --test-file`, as `ggprof export ops`
    #[arg(long, value_name = "FILE", value_parser = parsed(Output::lines))]
    pub(crate) export_ops: Option<PathBuf>,
    /// With --export-ops: the libggml-base that will read the file (default: the recorded program's)
    #[arg(long = "for", value_name = "LIBGGML", requires = "export_ops")]
    pub(crate) export_for: Option<PathBuf>,
    /// Draw at most N events in the HTML page, 0 for all; figures always count all (default: 0)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        requires = "html_viewer",
        value_parser = quantity::count
    )]
    pub(crate) html_max_records: usize,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = texts::EXPLAIN)]
pub(crate) struct ExplainArgs {
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input. Several, or a directory of them, are shown on one axis of time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// How and where a report is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrintArgs {
    /// How to print (default: as the name of the file says, else table)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FormatArg>,
    /// Print to a file instead of standard output: .txt, .md, .json or .csv, compressed if .gz or
    /// .zst is behind that
    #[arg(short, long, value_name = "FILE", value_parser = parsed(Printout::named))]
    pub(crate) output: Option<Printout>,
    /// When to use colours; NO_COLOR switches `auto` off (default: auto)
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorArg,
}

/// The part of a recording that is asked about: graph runs that all of these hold for. And what it is
/// held against.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Only what began from then on: a clock time (14:03, 14:03:27.5; the first after the start), a date
    /// with or without it (2026-11-16T00:00:01) or the time since the start of the recording (90s, 2min)
    #[arg(long, value_name = "TIME", value_parser = quantity::moment)]
    pub(crate) from: Option<Moment>,
    /// Only what began before then, written in the same way; a clock time is the first after --from
    #[arg(long, value_name = "TIME", value_parser = quantity::moment)]
    pub(crate) to: Option<Moment>,
    /// Only phases of one kind
    #[arg(long, value_name = "KIND")]
    pub(crate) phase: Option<PhaseArg>,
    /// Only batches that a request had a part in, by its number in `--by request`
    #[arg(long, value_name = "N")]
    pub(crate) request: Option<u32>,
    /// What the machine can do, from `ggprof peaks -o FILE` there (default: what is kept of the
    /// machine of the recording)
    #[arg(long, value_name = "FILE")]
    pub(crate) peaks: Option<PathBuf>,
}

impl PartArgs {
    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        let Self { from, to, phase, request, peaks: _ } = self;
        from.is_none() && to.is_none() && phase.is_none() && request.is_none()
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PhaseArg {
    /// Prompts
    #[value(alias = "prompt")]
    Pp,
    /// Generation
    #[value(alias = "generation")]
    Tg,
    /// Batches of both
    Mixed,
    /// Embeddings, and the encoders of models
    Encoding,
    /// Drafts of a smaller model
    Draft,
    /// Graphs without tokens
    Graph,
    /// Trials before the work begins
    WarmUp,
}

impl From<PhaseArg> for PhaseKind {
    fn from(phase: PhaseArg) -> Self {
        match phase {
            PhaseArg::Pp => Self::Prompt,
            PhaseArg::Tg => Self::Generation,
            PhaseArg::Mixed => Self::Mixed,
            PhaseArg::Encoding => Self::Encoding,
            PhaseArg::Draft => Self::Draft,
            PhaseArg::Graph => Self::Graph,
            PhaseArg::WarmUp => Self::WarmUp,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ByArg {
    /// Operation and backend
    Op,
    /// Backend, with its busy, copying and idle time
    Backend,
    /// Operation and shapes of its sources
    Shape,
    /// Layer and part of the model, from tensor names
    Layer,
    /// Prompts, generation and what else there is, with their operations
    Phase,
    /// Sequences of a server: prompt, first token, every wait and its cause
    Request,
    /// Graph run by graph run
    Run,
    /// Second by second: tokens, requests, computing and idle time
    Second,
    /// Time of a token and of attention, by the number of tokens before it
    Depth,
    /// Memory for tensors: its size at the end and its peak, by device and use
    Memory,
    /// Parts of the model: where each was computed, why on the host, and what that costs
    Placement,
    /// Copies: which tensors, between which memory, how fast, and how much of it is exposed
    Copy,
    /// Experts of the model: which were used, how often and how evenly, layer by layer
    Expert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal
    Auto,
    /// Even into a file
    Always,
    /// Not at all
    Never,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> Self {
        match by {
            ByArg::Op => Self::Op,
            ByArg::Backend => Self::Backend,
            ByArg::Shape => Self::Shape,
            ByArg::Layer => Self::Layer,
            ByArg::Phase => Self::Phase,
            ByArg::Request => Self::Request,
            ByArg::Run => Self::Run,
            ByArg::Second => Self::Second,
            ByArg::Depth => Self::Depth,
            ByArg::Memory => Self::Memory,
            ByArg::Placement => Self::Placement,
            ByArg::Copy => Self::Copy,
            ByArg::Expert => Self::Expert,
        }
    }
}
