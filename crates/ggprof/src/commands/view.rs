//! `ggprof view`: the page of a recording, in the browser.

use crate::cli::ViewArgs;
use crate::exit::Outcome;
use crate::interruption::Removal;
use crate::recording::Recording;
use crate::{messages, output};
use anyhow::Context;
use ggprof_report::viewer;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn view(arguments: &ViewArgs) -> anyhow::Result<Outcome> {
    let mut recording = Recording::open_all(&arguments.files)?;
    recording.select(&arguments.part)?;
    // Only the user can open the directory: a recording may hold what others must not see.
    let mut builder = tempfile::Builder::new();
    output::with_mode(builder.prefix("ggprof-"), 0o700);
    let (_removal, directory) = Removal::of_directory(|| Ok(builder.tempdir()?.keep()))
        .context("no temporary directory can be written; set TMPDIR to one that can")?;
    let page = directory.join("timeline.html");
    let peaks = recording.peaks.as_ref();
    let name = &recording.name;
    output::to_file(&page, |out| viewer::write(&recording.trace, name, peaks, None, out))?;
    output::to_stdout(|out| writeln!(out, "{}", page.display()))?;
    if !opened(&page) {
        messages::note("No browser could be started; open this page in a browser yourself.");
    }
    Ok(recording.outcome())
}

/// What opens a file with the user's browser.
const OPENER: &[&str] = if cfg!(windows) {
    &["cmd", "/C", "start", ""]
} else if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open"]
};

/// Whether a browser was asked to show the page. Without a screen there is none to ask.
fn opened(page: &Path) -> bool {
    let screens = ["DISPLAY", "WAYLAND_DISPLAY"];
    let has_screen = cfg!(any(windows, target_os = "macos"))
        || screens.iter().any(|name| std::env::var_os(name).is_some());
    let mut browser = Command::new(OPENER[0]);
    browser
        .args(&OPENER[1..])
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    has_screen && browser.status().is_ok_and(|status| status.success())
}
