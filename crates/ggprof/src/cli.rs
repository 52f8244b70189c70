//! Every word of `--help`.

mod compare;
mod index;
mod ops;
mod read;
mod record;
mod texts;

pub(crate) use compare::{BenchArgs, DiffArgs, JudgedArgs, ShownArgs};
pub(crate) use index::IndexArgs;
#[cfg(target_os = "linux")]
pub(crate) use ops::OpBenchArgs;
pub(crate) use ops::{Export, ExportOpsArgs, NumbersArgs, OpWorker, Ops};
pub(crate) use read::{ColorArg, ExplainArgs, PartArgs, PhaseArg, PrintArgs, ReportArgs};
pub(crate) use record::{AttachArgs, RunArgs};
#[cfg(target_os = "linux")]
pub(crate) use record::{HowArgs, SummaryTo, VulkanArg};

use crate::format::Output;
use crate::{quantity, version};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Cross-backend profiler for ggml programs.
///
/// Shows which tensor operations of llama.cpp, whisper.cpp, stable-diffusion.cpp and other
/// ggml programs take the time, on every backend, and which copies happen between them.
#[derive(Debug, Parser)]
#[command(version, long_version = version::long(), after_help = texts::GGPROF, help_expected = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command and record what it computes with ggml
    Run(RunArgs),
    /// Record a program that runs already, from now on
    Attach(AttachArgs),
    /// Start, stop or copy the recording of a program that is running
    Ctl(CtlArgs),
    /// Show what a recorded program does while it runs, second by second
    Top(TopArgs),
    /// Say what can be recorded of a program, and how; without a command, check the installation
    Doctor(DoctorArgs),
    /// Print what to set so that programs started later are recorded where GGML_PROFILE says
    #[command(after_help = texts::ENV)]
    Env,
    /// Answer questions about a recording (the default: `ggprof FILE`)
    Report(ReportArgs),
    /// Say where each token's time goes, why, and what to change
    Explain(ExplainArgs),
    /// Record two commands in turns, and say what differs
    Bench(BenchArgs),
    /// Say what changed between two recordings, or two sides of several
    Diff(DiffArgs),
    /// Keep a catalogue of all recordings below a directory, and say how fast they were, by commit
    Index(IndexArgs),
    /// Show the timeline of a recording in the browser
    View(ViewArgs),
    /// Write a recording in other formats
    Convert(ConvertArgs),
    /// Put recordings of several processes on one axis of time, such as those of a client and its
    /// RPC servers
    Merge(MergeArgs),
    /// Write parts of a recording for other programs
    #[command(subcommand, after_help = texts::EXPORT)]
    Export(Export),
    /// Work with the operations of a recording on their own
    #[command(subcommand, after_help = texts::OPS)]
    Ops(Ops),
    /// Measure what this machine can do at most, so that reports say how close a recording comes
    Peaks(PeaksArgs),
    /// Print shell completions or the manual page
    #[command(subcommand, after_help = texts::GENERATE)]
    Generate(Generate),
}

/// What the agent runs for `GGML_PROFILE` when the program ends. It is no command for people, so help,
/// completions and suggestions do not know it.
#[derive(Debug, Parser)]
#[command(name = "ggprof deliver")]
pub(crate) struct DeliverArgs {
    /// The recording of a process
    pub(crate) spool: PathBuf,
    /// File to write, as for `ggprof run`; without a file, print a summary
    pub(crate) output: Option<PathBuf>,
    /// The process has written the file before
    #[arg(long)]
    pub(crate) again: bool,
}

impl DeliverArgs {
    /// If that is what the words say.
    pub(crate) fn of(words: &[OsString]) -> Option<Self> {
        let is_it = words.get(1).is_some_and(|word| word == "deliver");
        is_it.then(|| Self::parse_from(&words[1..]))
    }
}

impl Command {
    /// Whether it reads recordings and starts no programs of the user.
    pub(crate) fn reads_recordings(&self) -> bool {
        matches!(
            self,
            Self::Report(_)
                | Self::Explain(_)
                | Self::Diff(_)
                | Self::Convert(_)
                | Self::Index(_)
                | Self::Export(_)
                | Self::Ops(_)
                | Self::Merge(_)
                | Self::View(_)
                | Self::Ctl(CtlArgs { verb: CtlVerb::Snapshot { .. } })
        )
    }
}

#[derive(Debug, Args)]
#[command(after_help = texts::DOCTOR)]
pub(crate) struct DoctorArgs {
    /// End the command after this many seconds if it has not computed a graph (default: 30)
    #[arg(long, value_name = "N", default_value_t = 30, hide_default_value = true)]
    pub(crate) seconds: u64,
    /// Command to look at, with its arguments. It runs without input until it has computed its
    /// first graph; then it and all it started are ended (SIGTERM, after five seconds SIGKILL)
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = texts::CTL)]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    pub(crate) verb: CtlVerb,
}

/// Without PID: the only program that is being recorded.
#[derive(Debug, Subcommand)]
pub(crate) enum CtlVerb {
    /// Record from the next graph run on, whatever window was given to `run`
    #[command(after_help = texts::CTL_START)]
    Start {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
    },
    /// Stop recording; when this returns, the recording no longer changes
    #[command(after_help = texts::CTL_STOP)]
    Stop {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
    },
    /// Report what has been recorded until now; recording goes on
    #[command(after_help = texts::CTL_SNAPSHOT)]
    Snapshot {
        /// Process id of the recorded program, or of its `ggprof run`
        pid: Option<u32>,
        /// File to write, may be repeated, as for `ggprof run`; without a file, print a summary
        #[arg(short, long, value_name = "FILE", value_parser = parsed(Output::named))]
        output: Vec<Output>,
    },
    /// Print what was done since the first time this was asked, and what was recorded shortly before, as
    /// OpenMetrics text
    #[command(after_help = texts::CTL_METRICS)]
    Metrics {
        /// Process that is recorded, or its `ggprof run`
        pid: Option<u32>,
    },
    /// List what is being recorded
    #[command(after_help = texts::CTL_STATUS)]
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
#[command(after_help = texts::TOP)]
pub(crate) struct TopArgs {
    /// Process that is recorded, or its `ggprof run`; without it, the one there is
    pub(crate) pid: Option<u32>,
    /// Print a line of JSON a second, as without a terminal
    #[arg(long)]
    pub(crate) json: bool,
    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = quantity::some::<u64>)]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = texts::PEAKS)]
pub(crate) struct PeaksArgs {
    /// JSON to write (default: a file for this machine in the cache directory, where reports look)
    #[arg(short, long, value_name = "FILE", value_parser = parsed(Output::peaks))]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = texts::VIEW)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input. Several, or a directory of them, are shown on one axis of time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = texts::CONVERT)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input. Several, or a directory of them, with `--tables`
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File to write, may be repeated. Its name chooses the format, as for `ggprof run`; `-` writes
    /// JSON to standard output
    #[arg(short, long, required = true, value_name = "FILE", value_parser = parsed(Output::named))]
    pub(crate) output: Vec<Output>,
    /// Write tables as Parquet into the directory that `-o` names, for DuckDB, ClickHouse or Spark:
    /// recordings, phases, ops, events, copies, requests, waits, findings. Recordings that are there stay.
    /// Also written `--to parquet`
    #[arg(long)]
    pub(crate) tables: bool,
    /// Name the hosts of RPC servers in the tables, which otherwise stand as `RPC 0`
    #[arg(long, requires = "tables")]
    pub(crate) with_hosts: bool,
}

#[derive(Debug, Args)]
#[command(after_help = texts::MERGE)]
pub(crate) struct MergeArgs {
    /// Recordings of processes that ran at the same time, or a directory of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File to write, may be repeated. Its name chooses the format, as for `ggprof run`
    #[arg(short, long, required = true, value_name = "FILE", value_parser = parsed(Output::named))]
    pub(crate) output: Vec<Output>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Completions for a shell; save them where the shell looks for them
    #[command(after_help = texts::GENERATE_COMPLETIONS)]
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    /// The manual page of ggprof or of one of its commands
    #[command(after_help = texts::GENERATE_MAN)]
    Man {
        /// The command: run, or ctl snapshot
        #[arg(conflicts_with = "directory", value_name = "COMMAND")]
        of: Vec<String>,
        /// Write the pages of all commands into this directory instead
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Whether this is no file, and much like a command; clap then says which.
fn is_mistyped(word: &OsStr) -> bool {
    let parsed = Cli::try_parse_from(["ggprof".as_ref(), word]);
    let suggests = |error: clap::Error| error.get(ContextKind::SuggestedSubcommand).is_some();
    let is_word = word.to_str().is_some_and(|text| text.chars().all(|c| c.is_ascii_alphabetic()));
    is_word && !Path::new(word).exists() && parsed.err().is_some_and(suggests)
}

/// The name of a file, which need not be valid text, and what it means.
fn parsed<T: Clone + Send + Sync + 'static>(
    parse: fn(OsString) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(parse)
}

/// What other profilers call it, or people do who have not read on.
const ELSEWHERE: [(&str, &str); 6] = [
    ("record", "run"),
    ("stat", "run"),
    ("profile", "run"),
    ("trace", "run"),
    ("exec", "run"),
    ("compare", "diff"),
];

/// What the words ask for; ends the process where that is unclear.
pub(crate) fn parse(words: Vec<OsString>) -> Cli {
    if let Some((word, meant)) = words.get(1).and_then(|word| Some((word, meant_by(word)?))) {
        let told = format!("there is no command `{}`: it is `ggprof {meant}`", word.display());
        Cli::command().error(ErrorKind::InvalidSubcommand, told).exit();
    }
    Cli::parse_from(with_default_command(words))
}

/// The whole command, if this is no file, but another word for it, its second word, or both words in one:
/// `record`, `snapshot`, `export-ops`.
fn meant_by(word: &OsStr) -> Option<String> {
    let cli = Cli::command();
    let word = word.to_str().filter(|word| !Path::new(word).exists())?;
    if cli.find_subcommand(word).is_some() {
        return None;
    }
    if let Some((_, meant)) = ELSEWHERE.iter().find(|(it, _)| *it == word) {
        return Some((*meant).to_owned());
    }
    let of = |command: &clap::Command| -> Option<String> {
        let is_it = |sub: &&str| *sub == word || format!("{}-{sub}", command.get_name()) == word;
        let sub = command.get_subcommands().map(clap::Command::get_name).find(is_it)?;
        Some(format!("{} {sub}", command.get_name()))
    };
    cli.get_subcommands().find_map(of)
}

/// Makes `ggprof FILE …` mean `ggprof report FILE …`.
pub(crate) fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(first) = arguments.get(1) {
        let text = first.to_string_lossy();
        let is_flag = text.starts_with('-') && text != "-";
        let is_command = text == "help" || Cli::command().find_subcommand(text.as_ref()).is_some();
        if !is_flag && !is_command && !is_mistyped(first) {
            arguments.insert(1, "report".into());
        }
    }
    if arguments.get(1).is_some_and(|command| command == "convert") {
        name_tables(&mut arguments);
    }
    arguments
}

/// Makes `--to parquet` mean `--tables`: as an option of its own it could not stand beside `--to TIME`.
fn name_tables(arguments: &mut Vec<OsString>) {
    let is_it = |pair: &[OsString]| pair[0] == "--to" && pair[1] == "parquet";
    if let Some(at) = arguments.windows(2).position(is_it) {
        arguments.splice(at..at + 2, ["--tables".into()]);
    } else if let Some(at) = arguments.iter().position(|word| word == "--to=parquet") {
        arguments[at] = "--tables".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The words of a line as a shell would take them, up to what is said about it.
    fn words(line: &str) -> Vec<String> {
        let line = line.split("   ").next().unwrap_or_default();
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.trim().chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('"' | '\'', None) => quote = Some(c),
                ('|' | '>', None) => break,
                (' ', None) => words.push(String::new()),
                (c, _) => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn examples(command: &clap::Command, found: &mut Vec<String>) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(text.contains("Examples:\n"), "{} has no examples", command.get_name());
        let lines = text.lines().filter(|line| line.starts_with("  ggprof "));
        found.extend(lines.map(|line| line.trim().to_owned()));
        command.get_subcommands().for_each(|sub| examples(sub, found));
    }

    #[test]
    fn each_command_has_examples_that_are_understood() {
        let mut lines = Vec::new();
        examples(&Cli::command(), &mut lines);
        assert!(lines.len() > 40);
        for line in lines {
            let words = words(&line).into_iter().map(OsString::from).collect();
            let parsed = Cli::try_parse_from(with_default_command(words));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    /// What stands before the command is ggprof's, what stands behind it the command's.
    #[test]
    fn options_of_a_command_are_its_own() {
        let parsed = |line: &str| Cli::try_parse_from(line.split(' ').map(OsString::from));
        for (line, command) in [
            ("ggprof run --strict x -m y --threads 3", "x -m y --threads 3"),
            ("ggprof run -- x -- --strict", "x -- --strict"),
            ("ggprof run x -- -y", "x -- -y"),
            ("ggprof run -- -x", "-x"),
            ("ggprof bench x -a --vs -- y -b", "x -a --vs -- y -b"),
            ("ggprof bench -- x --vs -- A=1", "x --vs -- A=1"),
            ("ggprof doctor x --seconds 3", "x --seconds 3"),
        ] {
            let found = match parsed(line).expect(line).command {
                Command::Run(it) => it.command,
                Command::Bench(it) => it.command,
                Command::Doctor(it) => it.command,
                _ => unreachable!(),
            };
            assert_eq!(found.join(" ".as_ref()), command, "{line}");
        }
        for line in ["run --strickt x", "bench --pair 3 -- x", "doctor --second 3 x", "run -x y"] {
            assert!(parsed(&format!("ggprof {line}")).is_err(), "{line}");
        }
    }

    #[test]
    fn words_for_commands_are_told_whole() {
        for (word, meant) in [
            ("snapshot", Some("ctl snapshot")),
            ("export-ops", Some("export ops")),
            ("ops-bench", Some("ops bench")),
            ("record", Some("run")),
            ("stat", Some("run")),
            ("compare", Some("diff")),
            ("ops", None),
            ("bench", None),
            ("report", None),
            ("a.json", None),
            ("-", None),
        ] {
            assert_eq!(meant_by(word.as_ref()).as_deref(), meant, "{word}");
        }
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
            ("ggprof convert a --to parquet -o b", "ggprof convert a --tables -o b"),
            ("ggprof convert a -o b --to=parquet", "ggprof convert a -o b --tables"),
            ("ggprof --help", "ggprof --help"),
            ("ggprof help", "ggprof help"),
            ("ggprof", "ggprof"),
            ("ggprof profile", "ggprof report profile"),
            ("ggprof reprot a.json", "ggprof reprot a.json"),
            ("ggprof expain", "ggprof expain"),
        ] {
            let words = with_default_command(typed.split(' ').map(OsString::from).collect());
            assert_eq!(words.join(" ".as_ref()), meant);
        }
    }
}
