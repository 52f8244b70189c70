//! The words of `export` and of what works with single ops.

use super::{PartArgs, PrintArgs, parsed, texts};
use crate::format::Output;
use crate::quantity;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Write the operations as the lines that llama.cpp's `test-backend-ops --test-file` reads: one for
    /// each that differs in more than its name, the longest first
    Ops(ExportOpsArgs),
}

#[derive(Debug, Args)]
#[command(after_help = texts::EXPORT_OPS)]
pub(crate) struct ExportOpsArgs {
    /// Recording of ggprof or JSON of ggml's profiler, also as .gz or .zst; `-` reads standard
    /// input
    pub(crate) file: PathBuf,
    /// Only the N operations that took longest in all; a fusion counts once, and each of its parts gets
    /// a line
    #[arg(long, value_name = "N", value_parser = quantity::some::<usize>)]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) numbers: NumbersArgs,
    /// File to write (default: standard output)
    #[arg(short, long, value_name = "FILE", value_parser = parsed(Output::lines))]
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
pub(crate) enum Ops {
    /// Run the longest operations alone, with the shapes, types, strides and parameters of the
    /// recording: with what they read in the cache, and without
    Bench(OpBenchArgs),
}

#[derive(Debug, Args)]
#[command(after_help = texts::OPS_BENCH)]
pub(crate) struct OpBenchArgs {
    /// Recording of ggprof, also as .gz or .zst; `-` reads standard input
    pub(crate) file: PathBuf,
    /// The N operations that took longest in all (default: 10)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        hide_default_value = true,
        value_parser = quantity::some::<usize>
    )]
    pub(crate) top: usize,
    /// Only operations of this backend or device: CPU, CUDA0, Vulkan0
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
    /// Directory with the libraries of another ggml, may be repeated (default: the libraries of the
    /// recorded program)
    #[arg(long, value_name = "DIR")]
    pub(crate) ggml: Vec<PathBuf>,
    /// Threads of the CPU (default: as many as in the recording)
    #[arg(short, long, value_name = "N", value_parser = quantity::some::<u32>)]
    pub(crate) threads: Option<u32>,
    /// End an operation that takes longer than this in all: 500ms, 30s, 2min (default: 60s)
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    pub(crate) limit: Option<Duration>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// What `export ops` and `ops bench` run for each library and op. It is no command for people.
#[derive(Debug, Parser)]
#[command(name = "ggprof op-worker")]
pub(crate) enum OpWorker {
    /// Compute what standard input describes, and print how long it took
    Bench,
    /// Print the numbers that a ggml gives its ops, types and functions
    Numbers {
        /// Its libggml-base
        library: PathBuf,
    },
}

impl OpWorker {
    /// If that is what the words say.
    pub(crate) fn of(words: &[OsString]) -> Option<Self> {
        let is_it = words.get(1).is_some_and(|word| word == "op-worker");
        is_it.then(|| Self::parse_from(&words[1..]))
    }
}
