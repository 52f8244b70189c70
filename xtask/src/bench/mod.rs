//! `cargo xtask bench`: prints figures; nothing here fails because a machine is slow.

mod analysis;
mod asleep;
mod batches;
mod index;
pub(crate) mod measure;
mod peaks;
mod profiles;
mod reading;
mod recording;
mod recordings;
mod repeated;
mod snapshot;
mod tables;
mod threads;
mod viewer;

use anyhow::bail;
use std::path::Path;

/// What it takes, and what that does.
pub(crate) const HELP: &str = "measure [analysis|reading|snapshot|index|tables|viewer|recording|batches|threads|asleep|\
peaks] [--more: also read 30 million ops] [--reference SCRIPT: ggml's profiler.py]";

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
        _ => bail!("cargo xtask bench: {HELP}"),
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
            asleep::run()?;
            peaks::run()
        }
        _ => bail!("cargo xtask bench: {HELP}"),
    }
}
