//! `cargo xtask bench`: prints figures; nothing here fails because a machine is slow.

mod analysis;
mod asleep;
pub(crate) mod measure;
mod profiles;
mod recording;
mod threads;
mod viewer;

use anyhow::bail;
use std::path::Path;

const USAGE: &str = "cargo xtask bench [analysis|viewer|recording|threads|asleep] [--reference SCRIPT], SCRIPT \
being ggml's profiler.py";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (parts, reference) = match arguments {
        [parts @ .., flag, script] if flag == "--reference" => (parts, Some(Path::new(script))),
        parts => (parts, None),
    };
    let part = match parts {
        [] => "all",
        [part] => part.as_str(),
        _ => bail!(USAGE),
    };
    match part {
        "analysis" => analysis::run(reference),
        "viewer" => viewer::run(),
        "recording" => recording::run(),
        "threads" => threads::run(),
        "asleep" => asleep::run(),
        "all" => {
            analysis::run(reference)?;
            viewer::run()?;
            recording::run()?;
            threads::run()?;
            asleep::run()
        }
        _ => bail!(USAGE),
    }
}
