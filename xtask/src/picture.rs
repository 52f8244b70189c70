//! `cargo xtask picture RECORDING`: the picture of the viewer in the README.

use crate::shell;
use anyhow::bail;
use ggprof_e2e::browser;
use std::path::Path;

const PICTURE: &str = "docs/images/viewer.png";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [recording] = arguments else { bail!("cargo xtask picture RECORDING") };
    let ggprof = shell::build_ggprof()?;
    let name = Path::new(recording).file_stem().unwrap_or_default().to_string_lossy();
    let page = shell::target().join(format!("{name}.html"));
    let page = page.to_string_lossy();
    let options = ["report", recording.as_str(), "--html-viewer", &page];
    shell::run(&mut shell::command(&ggprof.to_string_lossy(), &options))?;
    let Some(mut picture) = browser::script("picture.mjs") else {
        bail!("a picture needs Chromium");
    };
    shell::run(picture.arg(&*page).arg(shell::root().join(PICTURE)))
}
