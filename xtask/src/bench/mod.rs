//! `cargo xtask bench`: prints figures; nothing here fails because a machine is slow.

mod analysis;
mod asleep;
mod batches;
mod index;
pub(crate) mod measure;
mod peaks;
mod profiles;
mod reading;
mod recorded;
mod recording;
mod recordings;
mod repeated;
mod snapshot;
mod tables;
mod threads;
mod top;
mod viewer;

use std::path::Path;

pub(crate) const TAKES: &str = "[PART] [--more] [--reference SCRIPT]";

/// What the parts measure.
pub(crate) const HELP: &str = "\
measure what recording and reading cost; without PART, all but `tables`
analysis   profiles of ggml's profiler: time and memory; --reference SCRIPT: beside ggml's profiler.py
reading    recordings of any size: time, memory and instructions per op (--more: also of 30 million ops);
           then `snapshot` and `analysis`
snapshot   `ctl snapshot` of a full recording of 1 GB
index      the catalogue of a thousand recordings
tables     a hundred million events as Parquet, asked by DuckDB (2 GB of disk)
viewer     pages of one and ten million ops in a browser
recording  instructions, nanoseconds and tokens/s, with and without the agent
batches    what noting a call of libllama costs
threads    what recording costs with many threads
top        what `ggprof top` takes of a processor
asleep     what the agent costs a process without ggml
peaks      `ggprof peaks`, in turns with a C program that reads memory";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (parts, reference) = match arguments {
        [parts @ .., flag, script] if flag == "--reference" => (parts, Some(Path::new(script))),
        parts => (parts, None),
    };
    let (parts, more) = match parts {
        [parts @ .., flag] if flag == "--more" => (parts, true),
        parts => (parts, false),
    };
    let part = match parts {
        [] => "all",
        [part] => part.as_str(),
        _ => return Err(crate::misused("bench")),
    };
    match part {
        "analysis" => analysis::run(reference),
        "reading" => {
            reading::run(more)?;
            snapshot::run()?;
            analysis::run(reference)
        }
        "snapshot" => snapshot::run(),
        "index" => index::run(),
        "tables" => tables::run(),
        "viewer" => viewer::run(),
        "recording" => recording::run(),
        "batches" => batches::run(),
        "threads" => threads::run(),
        "top" => top::run(),
        "asleep" => asleep::run(),
        "peaks" => peaks::run(),
        "all" => {
            analysis::run(reference)?;
            reading::run(more)?;
            snapshot::run()?;
            index::run()?;
            viewer::run()?;
            recording::run()?;
            batches::run()?;
            threads::run()?;
            top::run()?;
            asleep::run()?;
            peaks::run()
        }
        _ => Err(crate::misused("bench")),
    }
}
