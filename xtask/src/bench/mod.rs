//! `cargo xtask bench`: figures, printed; nothing here can fail because a machine is slow.

mod analysis;
mod measure;
mod profiles;
mod recording;
mod viewer;

use anyhow::bail;
use std::path::PathBuf;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let reference = match arguments {
        [] => None,
        [flag, script] if flag == "--reference" => Some(PathBuf::from(script)),
        _ => bail!("cargo xtask bench [--reference SCRIPT], SCRIPT being ggml's profiler.py"),
    };
    analysis::run(reference.as_deref())?;
    viewer::run()?;
    recording::run()
}
