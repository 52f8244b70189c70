//! Words of the commands that compare.

use super::{PartArgs, PrintArgs, parsed, texts};
use crate::fail_if::FailIf;
use crate::format::Output;
use crate::quantity;
use clap::{Args, ValueEnum};
use ggprof_analysis::diff::Depth;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = texts::BENCH)]
pub(crate) struct BenchArgs {
    /// Pairs of runs to make at least (default: 7)
    #[arg(long, value_name = "N", value_parser = quantity::some::<usize>)]
    pub(crate) pairs: Option<usize>,
    /// Pairs of runs to make at most (default: 20, or --pairs if they are more)
    #[arg(long, value_name = "N", value_parser = quantity::some::<usize>)]
    pub(crate) max_pairs: Option<usize>,
    /// Begin no further pair after this time (the first one is always made): 10min, 1h
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    pub(crate) max_time: Option<Duration>,
    /// Keep the recordings in a directory, instead of those of an earlier bench
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// An option of `ggprof run` for both sides, may be repeated: --record=--cuda=full
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) record: Vec<OsString>,
    #[command(flatten)]
    pub(crate) judged: JudgedArgs,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// The first command with its arguments, `--vs --`, and the second
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What becomes of a comparison.
#[derive(Debug, Args)]
pub(crate) struct JudgedArgs {
    /// Exit with 4 if a phase takes longer for certain, may be repeated: 'tg > 3%', 'pp512 > 5%',
    /// 'any > 200us' (per token). Fewer than five recordings a side are never certain, unless a baseline
    /// knows what is usual of one
    #[arg(long, value_name = "CHANGE", value_parser = FailIf::parse)]
    pub(crate) fail_if: Vec<FailIf>,
    /// Use what this directory knows of how much runs of the same differ on this machine: a smaller
    /// change is none. What the runs of each side add to it is kept there
    #[arg(long, value_name = "DIR")]
    pub(crate) baseline: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = texts::DIFF)]
pub(crate) struct DiffArgs {
    /// Two recordings, of ggprof or JSON of ggml's profiler; with `--vs`, those of the first side
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Recordings of the second side: several a side tell a change from noise
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) vs: Vec<PathBuf>,
    /// Write a page with both timelines, aligned by token or graph run, and the table; with several
    /// recordings a side, of the first of each
    #[arg(long, value_name = "FILE", value_parser = parsed(Output::page))]
    pub(crate) html: Option<Output>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) judged: JudgedArgs,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// How a comparison is shown.
#[derive(Debug, Args)]
pub(crate) struct ShownArgs {
    /// How finely rows are told apart (default: kernel)
    #[arg(long, value_name = "WHAT", default_value = "kernel", hide_default_value = true)]
    pub(crate) by: DepthArg,
    /// Show the N surest and the N largest rows of each phase, and the sum of the others; JSON and CSV have all
    /// (default: 15)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 15,
        hide_default_value = true,
        value_parser = quantity::some::<usize>
    )]
    pub(crate) top: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DepthArg {
    /// Part of the model, operation, shapes, types, backend and kernel
    Kernel,
    /// The same without kernels
    Shape,
    /// Operation and backend
    Op,
    /// Part of the model
    Part,
    /// Backend
    Backend,
}

impl From<DepthArg> for Depth {
    fn from(depth: DepthArg) -> Self {
        match depth {
            DepthArg::Kernel => Self::Kernel,
            DepthArg::Shape => Self::Shape,
            DepthArg::Op => Self::Op,
            DepthArg::Part => Self::Module,
            DepthArg::Backend => Self::Backend,
        }
    }
}
