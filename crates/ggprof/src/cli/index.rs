//! Words of `ggprof index`.

use super::{PhaseArg, PrintArgs, parsed, texts};
use crate::format::Output;
use crate::quantity;
use clap::{Args, ValueEnum};
use ggprof_analysis::catalogue::{Dimension, Question};
use jiff::civil::Date;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = texts::INDEX)]
pub(crate) struct IndexArgs {
    /// Directory whose recordings, and those in all directories below it, are asked about
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// What to keep apart, besides models and phases (default: commit,device)
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        default_value = "commit,device",
        hide_default_value = true
    )]
    pub(crate) by: Vec<DimensionArg>,
    /// Only phases of one kind
    #[arg(long, value_name = "KIND")]
    pub(crate) phase: Option<PhaseArg>,
    /// Only where the version or commit of ggml, or the file of libllama, has this in its name
    #[arg(long, value_name = "TEXT")]
    pub(crate) commit: Option<String>,
    /// Only devices with this in their names
    #[arg(long, value_name = "TEXT")]
    pub(crate) device: Option<String>,
    /// Only models with this in what is known of them: '16 layers', q4_0
    #[arg(long, value_name = "TEXT")]
    pub(crate) model: Option<String>,
    /// Only programs with this in their names
    #[arg(long, value_name = "TEXT")]
    pub(crate) program: Option<String>,
    /// Only what was recorded on this day or later: 2026-08-22
    #[arg(long, value_name = "DAY", value_parser = quantity::day)]
    pub(crate) since: Option<Date>,
    /// Only what was recorded on this day or earlier
    #[arg(long, value_name = "DAY", value_parser = quantity::day)]
    pub(crate) until: Option<Date>,
    /// Write the history as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_parser = parsed(Output::page))]
    pub(crate) html: Option<Output>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DimensionArg {
    /// Version and commit of ggml, and the file of libllama
    Commit,
    /// Those that computed
    Device,
    /// Name of the program
    Program,
    /// The most that computed an operation
    Threads,
    /// Types of the KV cache, and whether flash attention is used
    Cache,
    /// Processor of the machine
    Cpu,
    /// Each recording for itself
    File,
}

impl From<DimensionArg> for Dimension {
    fn from(dimension: DimensionArg) -> Self {
        match dimension {
            DimensionArg::Commit => Self::Commit,
            DimensionArg::Device => Self::Device,
            DimensionArg::Program => Self::Program,
            DimensionArg::Threads => Self::Threads,
            DimensionArg::Cache => Self::Cache,
            DimensionArg::Cpu => Self::Cpu,
            DimensionArg::File => Self::File,
        }
    }
}

impl IndexArgs {
    pub(crate) fn question(&self) -> Question {
        let mut by: Vec<Dimension> = Vec::new();
        for dimension in self.by.iter().map(|&it| it.into()) {
            if !by.contains(&dimension) {
                by.push(dimension);
            }
        }
        let named = [
            (Dimension::Commit, &self.commit),
            (Dimension::Device, &self.device),
            (Dimension::Program, &self.program),
        ];
        let named = named.into_iter().filter_map(|(it, text)| Some((it, text.clone()?)));
        Question {
            by,
            phase: self.phase.map(Into::into),
            named: named.collect(),
            model: self.model.clone(),
            since_unix_ns: self.since.and_then(quantity::start_of),
            until_unix_ns: self.until.and_then(|day| quantity::start_of(day.tomorrow().ok()?)),
        }
    }
}
