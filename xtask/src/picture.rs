//! `cargo xtask picture RECORDING [NAME]`: a picture of the viewer, by default that in the README.

use crate::shell;
use anyhow::bail;
use ggprof_e2e::browser;
use std::path::Path;

const PICTURES: &str = "docs/images";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (recording, picture) = match arguments {
        [recording] => (recording, "viewer"),
        [recording, name] => (recording, name.as_str()),
        _ => return Err(crate::misused("picture")),
    };
    let out = shell::root().join(PICTURES).join(picture).with_extension("png");
    let ggprof = shell::build_ggprof()?;
    let name = Path::new(recording).file_stem().unwrap_or_default().to_string_lossy();
    let page = shell::target().join(format!("{name}.html"));
    let page = page.to_string_lossy();
    let options = ["report", recording.as_str(), "--html-viewer", &page];
    shell::run(&mut shell::command(&ggprof.to_string_lossy(), &options))?;
    let Some(mut script) = browser::script("picture.mjs") else {
        bail!("a picture needs Chromium");
    };
    shell::run(script.arg(&*page).arg(out))
}
