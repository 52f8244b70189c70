//! Every word of `--help`.

mod compare;
mod ops;

pub(crate) use compare::{BenchArgs, DiffArgs, JudgedArgs, ShownArgs};
pub(crate) use ops::{Export, ExportOpsArgs, NumbersArgs, OpBenchArgs, OpWorker, Ops};

use crate::quantity::{self, Event, Graphs, Moment};
use crate::version;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ggprof_analysis::PhaseKind;
use ggprof_report::documents::By;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  ggprof run -- llama-completion -m model.gguf -p \"Hello\"
  ggprof run -o profile.json --html timeline.html -- llama-server -m model.gguf
  ggprof run --max-size 200MB -- llama-server -m model.gguf     the newest 200 MB, for days
  ggprof ctl snapshot -o now.html                   what a running server did until now
  ggprof top                                        what it does, second by second
  ggprof doctor -- llama-server -m model.gguf       what can be recorded of it, and how
  ggprof profile.json                               summary of a recording
  ggprof explain profile.json                       where the time goes, why, what to change
  ggprof view profile.json                          its timeline, in the browser
  ggprof report profile.json --top-ops 10 --inefficiency
  ggprof report profile.json --by layer --format markdown
  ggprof report profile.json --chrome-trace trace.json --html-viewer timeline.html
  ggprof diff before.ggprof after.ggprof            what contributes to a change
  ggprof bench -- ./old -m model.gguf --vs -- ./new -m model.gguf
  ggprof convert profile.json -o profile.csv -o profile.txt
  ggprof export ops profile.ggprof --top 20 -o ops.txt     for test-backend-ops --test-file
  ggprof ops bench profile.ggprof --top 10          its longest operations alone, warm and cold
  ggprof peaks                                      what this machine can do, for the reports
  zstd -dc profile.json.zst | ggprof report -

Exit codes:
  0  done
  1  failed; a file that could not be finished was not written
  2  wrong command line
  3  done, but the recording is damaged, cut off or empty: see the warnings
  4  done, and a change that `--fail-if` names was found
Of `run`, the command's own, whatever became of the recording (`--strict`: 3 or 1 instead of 0):
  128+n  signal n ended the command
  126    the command cannot be executed
  127    the command was not found";

const TOP_HELP: &str = "\
Keys:
  q  quit
  s  sort operations by time, calls or GB/s
  f  freeze what is shown, and go on
  p  show operations of all steps, prompts, generation or mixed batches
  w  write a snapshot to the current directory, as `ggprof ctl snapshot -o snapshot-1.ggprof`";

const ENV_HELP: &str = "\
For a POSIX shell:
  eval \"$(ggprof env)\"
  GGML_PROFILE=profile.json llama-completion -m model.gguf -p \"Hello\"

GGML_PROFILE:
  1, stdout or empty  prints a summary to standard output
  path ending .txt    writes a text report
  any other path      writes JSON; %p in it stands for the process id

The file is written when the program ends or frees its last scheduler, and again if it computes more.
A program that is killed leaves its recording in the temporary directory; `ggprof doctor` names it.";

/// Cross-backend profiler for ggml programs.
///
/// Shows which tensor operations of llama.cpp, whisper.cpp, stable-diffusion.cpp and other
/// ggml programs take the time, on every backend, and which copies happen between them.
#[derive(Debug, Parser)]
#[command(version, long_version = version::long(), after_help = EXAMPLES, help_expected = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command and record what it computes with ggml
    Run(RunArgs),
    /// Start, stop or copy the recording of a program that is running
    Ctl(CtlArgs),
    /// Show what a recorded program does while it runs, second by second
    Top(TopArgs),
    /// Say what can be recorded of a program, and how; without a command, check the installation
    Doctor(DoctorArgs),
    /// Print what to set so that programs started later are recorded where GGML_PROFILE says
    #[command(after_help = ENV_HELP)]
    Env,
    /// Answer questions about a recording (the default: `ggprof FILE`)
    Report(ReportArgs),
    /// Say where each token's time goes, why, and what to change
    Explain(ExplainArgs),
    /// Record two commands in turns, and say what differs
    Bench(BenchArgs),
    /// Say what changed between two recordings, or two sides of several
    Diff(DiffArgs),
    /// Show the timeline of a recording in the browser
    View(ViewArgs),
    /// Write a recording in other formats
    Convert(ConvertArgs),
    /// Write parts of a recording for other programs
    #[command(subcommand)]
    Export(Export),
    /// Work with the operations of a recording on their own
    #[command(subcommand)]
    Ops(Ops),
    /// Measure what this machine can do at most, so that reports say how close a recording comes
    Peaks(PeaksArgs),
    /// Print shell completions or the manual page
    #[command(subcommand)]
    Generate(Generate),
    /// What the agent runs for GGML_PROFILE when the program ends
    #[command(hide = true)]
    Deliver(DeliverArgs),
    /// What `export ops` and `ops bench` run for each library and op
    #[command(hide = true, subcommand)]
    OpWorker(OpWorker),
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// End the command after this many seconds if it has not computed a graph (default: 30)
    #[arg(long, value_name = "N", default_value_t = 30, hide_default_value = true)]
    pub(crate) seconds: u64,
    /// Command to look at, with its arguments. It runs without input until it has computed its
    /// first graph; then it and all it started are ended (SIGTERM, after five seconds SIGKILL)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DeliverArgs {
    /// The recording of a process
    pub(crate) spool: PathBuf,
    /// File to write: text if it ends in .txt, else JSON; without a file, print a summary
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// File to write, may be repeated. Its name chooses the format: .txt, .csv, .html or .ggprof
    /// (the recording itself), anything else JSON; without a file, print a summary
    #[arg(short, long, visible_alias = "profile-output", value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Write the timeline as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Run the command N times and say how much the runs differ; `-o p.ggprof` writes p.1.ggprof,
    /// p.2.ggprof and so on, for `ggprof diff --vs` (default: 1)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) repeat: u32,
    /// Where the summary goes (default: auto)
    #[arg(long, value_name = "WHERE", default_value = "auto", hide_default_value = true)]
    pub(crate) summary_to: SummaryTo,
    /// Exit with 3 if the recording is damaged, cut off or empty, and with 1 if it could not be
    /// written, where the command itself ended with 0
    #[arg(long)]
    pub(crate) strict: bool,
    /// Keep what each CPU thread did in each op
    #[arg(long)]
    pub(crate) threads: bool,
    /// On backends other than the CPU, run one op at a time and wait for it: gives times of single
    /// ops for any backend, but changes how the program runs
    #[arg(long)]
    pub(crate) serialize: bool,
    /// Do not read clocks, power and energy of the machine's devices meanwhile
    #[arg(long)]
    pub(crate) no_sensors: bool,
    /// How Vulkan devices are timed (default: sample)
    #[arg(long, value_name = "HOW", default_value = "sample", hide_default_value = true)]
    pub(crate) vulkan: VulkanArg,
    /// How closely CUDA devices are watched (default: sample)
    #[arg(long, value_name = "LEVEL", default_value = "sample", hide_default_value = true)]
    pub(crate) cuda: CudaArg,
    /// Percent of the program's time that `sample` may cost on Vulkan and CUDA devices (default: 1)
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, hide_default_value = true)]
    pub(crate) budget: f64,
    /// Record nothing until `ggprof ctl start`
    #[arg(long, conflicts_with_all = ["start_after", "duration", "graphs"])]
    pub(crate) paused: bool,
    /// Begin to record this long after the program's start: 500ms, 30s, 2min, 1h
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    pub(crate) start_after: Option<Duration>,
    /// Record for this long from the first recorded graph run on; the program continues
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    pub(crate) duration: Option<Duration>,
    /// Record graph runs A to B of the program; either can be left out
    #[arg(long, value_name = "A..B", value_parser = quantity::graphs)]
    pub(crate) graphs: Option<Graphs>,
    /// Keep the newest graph runs in a recording of at most this size: 200MB, 1GiB
    #[arg(long, value_name = "BYTES", value_parser = quantity::recording_size)]
    pub(crate) max_size: Option<u64>,
    /// Write what was done until now as OpenMetrics text, once a second
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Write a snapshot when something happens, may be repeated: gap>500ms (a sequence waits so long for
    /// its next token, or a program without sequences computes nothing), run>2s (a graph run), tg<10
    /// (tokens a second over the last 5 s)
    #[arg(long, value_name = "WHAT", value_parser = quantity::event)]
    pub(crate) snapshot_when: Vec<Event>,
    /// Write at most so many of these snapshots, not more than one in ten seconds (default: 3)
    #[arg(long, value_name = "N", default_value_t = 3, hide_default_value = true)]
    pub(crate) snapshots: u32,
    /// Command to run, with its arguments; `--profile` and `--profile-output FILE` among them are
    /// removed and obeyed by ggprof
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
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

#[derive(Debug, Args)]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    pub(crate) verb: CtlVerb,
}

/// Without PID: the only program that is being recorded.
#[derive(Debug, Subcommand)]
pub(crate) enum CtlVerb {
    /// Record from the next graph run on, whatever window was given to `run`
    Start {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
    },
    /// Stop recording; when this returns, the recording no longer changes
    Stop {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
    },
    /// Report what has been recorded until now; recording goes on
    Snapshot {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
        /// File to write, may be repeated, as for `ggprof run`; without a file, print a summary
        #[arg(short, long, value_name = "FILE")]
        output: Vec<PathBuf>,
    },
    /// Print what was done since the first time this was asked, and what was recorded shortly before, as
    /// OpenMetrics text
    Metrics {
        /// Process that is recorded, or its `ggprof run`
        pid: Option<u32>,
    },
    /// List what is being recorded
    Status {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
        /// How to print (default: table)
        #[arg(long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
        format: StatusFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusFormat {
    /// A line for each process
    Table,
    /// An array with an object for each process
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopArgs {
    /// Process that is recorded, or its `ggprof run`; without it, the one there is
    pub(crate) pid: Option<u32>,
    /// Print a line of JSON a second, as without a terminal
    #[arg(long)]
    pub(crate) json: bool,
    /// End after so many looks
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input
    pub(crate) file: PathBuf,
    /// Show the N operations with the longest total time
    #[arg(long, value_name = "N")]
    pub(crate) top_ops: Option<usize>,
    /// Show the N longest single calls
    #[arg(long, value_name = "N")]
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
    #[arg(long)]
    pub(crate) issue: bool,
    /// With --issue: what changed since this recording
    #[arg(long, value_name = "FILE", requires = "issue")]
    pub(crate) since: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Write a Chrome trace, for ui.perfetto.dev and chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub(crate) chrome_trace: Option<PathBuf>,
    /// Write the timeline as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html_viewer: Option<PathBuf>,
    /// Write the operations for llama.cpp's `test-backend-ops --test-file`, as `ggprof export ops`
    #[arg(long, value_name = "FILE")]
    pub(crate) export_ops: Option<PathBuf>,
    /// With --export-ops: the libggml-base that will read the file (default: the recorded program's)
    #[arg(long = "for", value_name = "LIBGGML", requires = "export_ops")]
    pub(crate) export_for: Option<PathBuf>,
    /// Draw at most N events in the HTML page, 0 for all; figures always count all (default: 0)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) html_max_records: usize,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// How and where a report is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrintArgs {
    /// How to print (default: table)
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    pub(crate) format: FormatArg,
    /// Print to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// When to use colours; NO_COLOR switches `auto` off (default: auto)
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorArg,
}

#[derive(Debug, Args)]
pub(crate) struct PeaksArgs {
    /// File to write (default: one for this machine in the cache directory, where reports look)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The part of a recording that is asked about: graph runs that all of these hold for. And what it is
/// held against.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Only what began from then on: a clock time (14:03, 14:03:27.5) or the time since the start of
    /// the recording (90s, 2min)
    #[arg(long, value_name = "TIME", value_parser = quantity::moment)]
    pub(crate) from: Option<Moment>,
    /// Only what began before then, written in the same way
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
            PhaseArg::Graph => Self::Graph,
            PhaseArg::WarmUp => Self::WarmUp,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input
    pub(crate) file: PathBuf,
    /// File to write, may be repeated. Its name chooses the format: .txt, .csv or .html, anything
    /// else JSON; `-` writes JSON to standard output
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) output: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Completions for a shell; save them where the shell looks for them
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    /// The manual page; save it as ggprof.1
    Man {
        /// Write the pages of all commands into this directory instead
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
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
pub(crate) enum FormatArg {
    /// Aligned, no wider than the terminal
    Table,
    /// Tables to paste into an issue
    Markdown,
    /// Raw numbers, all columns
    Json,
    /// Raw numbers, all columns, the tables only
    Csv,
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

/// Makes `ggprof FILE …` mean `ggprof report FILE …`.
pub(crate) fn with_default_command(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if let Some(first) = arguments.get(1) {
        let text = first.to_string_lossy();
        let is_flag = text.starts_with('-') && text != "-";
        let is_command = text == "help" || Cli::command().find_subcommand(text.as_ref()).is_some();
        if !is_flag && !is_command {
            arguments.insert(1, "report".into());
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_file_alone_is_reported() {
        for (typed, meant) in [
            ("ggprof a.json", "ggprof report a.json"),
            ("ggprof a.json --top-ops 3", "ggprof report a.json --top-ops 3"),
            ("ggprof -", "ggprof report -"),
            ("ggprof ./report", "ggprof report ./report"),
            ("ggprof report a.json", "ggprof report a.json"),
            ("ggprof convert a.json", "ggprof convert a.json"),
            ("ggprof --help", "ggprof --help"),
            ("ggprof help", "ggprof help"),
            ("ggprof", "ggprof"),
        ] {
            let words = with_default_command(typed.split(' ').map(OsString::from));
            assert_eq!(words.join(" ".as_ref()), meant);
        }
    }
}
