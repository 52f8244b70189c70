//! The arguments of commands that record.

use super::{parsed, texts};
use crate::format::Output;
use crate::quantity::{self, Event, Graphs};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What is recorded, and how closely; the same for a program that is started and one that runs.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Keep what each CPU thread did in each op
    #[arg(long)]
    pub(crate) threads: bool,
    /// Do not read clocks, power and energy of the machine's devices meanwhile
    #[arg(long)]
    pub(crate) no_sensors: bool,
    /// How closely CUDA devices are watched (default: sample)
    #[arg(long, value_name = "LEVEL", default_value = "sample", hide_default_value = true)]
    pub(crate) cuda: CudaArg,
    /// Percent of the program's time that `sample` may cost on Vulkan and CUDA devices (default: 1)
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 1.0,
        hide_default_value = true,
        allow_negative_numbers = true,
        value_parser = quantity::percent
    )]
    pub(crate) budget: f64,
    /// Keep the newest graph runs in a recording of at most this size: 200MB, 1GiB
    #[arg(long, value_name = "BYTES", value_parser = quantity::recording_size)]
    pub(crate) max_size: Option<u64>,
    /// Where the summary goes (default: auto)
    #[arg(long, value_name = "WHERE", default_value = "auto", hide_default_value = true)]
    pub(crate) summary_to: SummaryTo,
}

#[derive(Debug, Args)]
#[command(after_help = texts::ATTACH)]
pub(crate) struct AttachArgs {
    /// The program's process
    pub(crate) pid: u32,
    /// File to write, may be repeated. Its name chooses the format, as for `run`; without a file, print
    /// a summary
    #[arg(short, long, value_name = "FILE", value_parser = parsed(Output::named))]
    pub(crate) output: Vec<Output>,
    /// End the recording after this long: 500ms, 30s, 2min (default: at Ctrl-C, or when the program
    /// ends)
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Debug, Args)]
#[command(after_help = texts::RUN)]
pub(crate) struct RunArgs {
    /// File to write, may be repeated. Its name chooses the format: .json, .txt, .csv, .md, .html,
    /// .ggprof (the recording itself), .pftrace (Perfetto), .pb (pprof) or .parquet (the table of
    /// events), and with .gz or .zst behind that it is compressed; without a file, print a summary
    #[arg(
        short,
        long,
        visible_alias = "profile-output",
        value_name = "FILE",
        value_parser = parsed(Output::named)
    )]
    pub(crate) output: Vec<Output>,
    /// Write the timeline as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_parser = parsed(Output::page))]
    pub(crate) html: Option<Output>,
    /// Run the command N times and say how much the runs differ; `-o p.ggprof` writes p.1.ggprof,
    /// p.2.ggprof and so on, for `ggprof diff --vs` (default: 1)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        hide_default_value = true,
        value_parser = quantity::some::<u32>
    )]
    pub(crate) repeat: u32,
    /// Exit with 3 if the recording is damaged, cut off or empty, and with 1 if it could not be
    /// written, where the command itself ended with 0
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// On backends other than the CPU, run one op at a time and wait for it: gives times of single
    /// ops for any backend, but changes how the program runs
    #[arg(long)]
    pub(crate) serialize: bool,
    /// How Vulkan devices are timed (default: sample)
    #[arg(long, value_name = "HOW", default_value = "sample", hide_default_value = true)]
    pub(crate) vulkan: VulkanArg,
    /// Record nothing until `ggprof ctl start`
    #[arg(long, conflicts_with_all = ["start_after", "duration", "graphs"])]
    pub(crate) paused: bool,
    /// Begin to record this long after the program's start: 500ms, 30s, 2min, 1h
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    pub(crate) start_after: Option<Duration>,
    /// Record for this long from the first recorded graph run on; the program continues
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time)]
    pub(crate) duration: Option<Duration>,
    /// Record graph runs A to B of the program; either can be left out
    #[arg(long, value_name = "A..B", value_parser = quantity::graphs)]
    pub(crate) graphs: Option<Graphs>,
    /// Write what was done until now as OpenMetrics text, once a second
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Write a snapshot when something happens, may be repeated: gap>500ms (a sequence waits so long for
    /// its next token, noticed when it is computed, or a program without sequences computes nothing),
    /// run>2s (a graph run), tg<10 (tokens a second over the last 5 s)
    #[arg(long, value_name = "WHAT", value_parser = quantity::event)]
    pub(crate) snapshot_when: Vec<Event>,
    /// Write at most so many of these snapshots, not more than one in ten seconds (default: 3)
    #[arg(long, value_name = "N", default_value_t = 3, hide_default_value = true)]
    pub(crate) snapshots: u32,
    /// Command to run, with its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VulkanArg {
    /// Like group in the first graphs, and then in as many as `--budget` allows; only beginning and
    /// end of the others
    Sample,
    /// Time what lies between ggml's own barriers: work that may run side by side has one time
    Group,
    /// Time each command; the times overlap where the work does
    Pair,
    /// Run one command at a time: exact times, but changes how the program runs
    Serial,
    /// Not at all
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryTo {
    /// Standard output where that is a terminal; otherwise standard error, so that what the
    /// command prints into a file or a pipe stays its own
    Auto,
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CudaArg {
    /// Every kernel in windows of a few graph runs, and the time of whole splits in between
    Sample,
    /// Every kernel of every graph run: slows the program
    Full,
    /// Only the time of whole splits
    Graph,
    /// Only the time of the host's calls
    Off,
}
