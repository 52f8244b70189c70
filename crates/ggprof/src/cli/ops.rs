//! The words of `export` and of what works with single ops.

use super::PartArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXPORT_OPS_HELP: &str = "\
The lines hold the numbers that a ggml gives its ops and types, and these differ between versions. Name
the libggml-base that `test-backend-ops` is linked with, unless it is of the same version as the recorded
program:
  ggprof export ops profile.ggprof --top 20 --for build/bin/libggml-base.so -o ops.txt
  build/bin/test-backend-ops perf -b CPU --test-file ops.txt";

#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Write the operations as the lines that llama.cpp's `test-backend-ops --test-file` reads: one for
    /// each that differs in more than its name, the longest first
    #[command(after_help = EXPORT_OPS_HELP)]
    Ops(ExportOpsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExportOpsArgs {
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input
    pub(crate) file: PathBuf,
    /// Only the N operations that took longest in all; a fusion counts once, and each of its parts gets
    /// a line
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) numbers: NumbersArgs,
    /// File to write (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

/// Whose numbers of ops and types are meant.
#[derive(Debug, Args)]
pub(crate) struct NumbersArgs {
    /// The ggml that will read the lines, as its libggml-base: a process of its own loads it and asks
    /// for its numbers (default: the ggml of the recorded program)
    #[arg(long = "for", value_name = "LIBGGML", conflicts_with = "ids_of")]
    pub(crate) reader: Option<PathBuf>,
    /// The ggml that will read the lines, as another recording of a program with it
    #[arg(long, value_name = "FILE")]
    pub(crate) ids_of: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpWorker {
    /// Print the numbers that a ggml gives its ops, types and functions
    Numbers {
        /// Its libggml-base
        library: PathBuf,
    },
}
