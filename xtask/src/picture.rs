//! `cargo xtask picture`: the picture of the viewer in the README, of the example that it names.
//! `cargo xtask picture RECORDING NAME` makes another one.

use crate::shell;
use anyhow::bail;
use ggprof_e2e::browser;
use std::path::Path;

const PICTURES: &str = "docs/images";
const EXAMPLE: &str = "examples/llama-8b-ngl32-h200.ggprof.gz";
const PEAKS: &str = "examples/peaks-h200.json";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (recording, picture, options) = match arguments {
        [] => (EXAMPLE, "viewer", &["--peaks", PEAKS][..]),
        [recording, name] => (recording.as_str(), name.as_str(), &[][..]),
        _ => return Err(crate::misused("picture")),
    };
    let out = shell::root().join(PICTURES).join(picture).with_extension("png");
    let ggprof = shell::build_ggprof()?;
    let name = Path::new(recording).file_stem().unwrap_or_default().to_string_lossy();
    let page = shell::target().join(format!("{name}.html"));
    let page = page.to_string_lossy();
    let report = [&["report", recording, "--html-viewer", &page], options].concat();
    shell::run(&mut shell::command(&ggprof.to_string_lossy(), &report))?;
    let Some(mut script) = browser::script("picture.mjs") else {
        bail!("a picture needs Chromium");
    };
    shell::run(script.arg(&*page).arg(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_can_open_what_the_picture_shows() {
        let readme = std::fs::read_to_string(shell::root().join("README.md")).unwrap();
        assert!(readme.contains(&format!("ggprof view {EXAMPLE} --peaks {PEAKS}\n")));
    }
}
