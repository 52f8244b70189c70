//! Words of the commands that compare.

use super::{PartArgs, PrintArgs};
use clap::{Args, ValueEnum};
use ggprof_analysis::diff::Depth;
use std::path::PathBuf;

const DIFF_HELP: &str = "\
Examples:
  ggprof diff before.ggprof after.ggprof
  ggprof diff a1.ggprof a2.ggprof a3.ggprof a4.ggprof --vs b1.ggprof b2.ggprof b3.ggprof b4.ggprof
  ggprof diff --phase tg --by op before.json after.json --format markdown

Times are per token of each phase. The rows add up to the change of the phase: a time in which several
things happen is divided among them, and what belongs to no op has rows of its own. A row with ~ may be
noise. docs/compare.md says how rows are matched and tested.";

#[derive(Debug, Args)]
#[command(after_help = DIFF_HELP)]
pub(crate) struct DiffArgs {
    /// Two recordings, of ggprof or JSON of ggml's profiler; with `--vs`, those of the first side
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Recordings of the second side: several a side tell a change from noise
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) vs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
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
    /// Show the N largest rows of each phase, and the sum of the others; JSON and CSV have all
    /// (default: 15)
    #[arg(long, value_name = "N", default_value_t = 15, hide_default_value = true)]
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
