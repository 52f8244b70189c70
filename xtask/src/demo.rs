//! `cargo xtask demo`: the main job, once, with everything it can write.

use crate::shell;
use std::path::{Path, PathBuf};

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let outputs = shell::root().join("demo");
    std::fs::create_dir_all(&outputs)?;
    let recording = record();
    let report = |arguments: &[&str]| {
        let mut command = shell::command(&ggprof.to_string_lossy(), arguments);
        shell::run(&mut command)
    };
    let recording = recording.to_string_lossy();
    let output = |name: &str| relative(&outputs.join(name));
    report(&["report", &recording])?;
    report(&[
        "report",
        &recording,
        "--chrome-trace",
        &output("trace.json"),
        "--html-viewer",
        &output("timeline.html"),
    ])?;
    report(&["convert", &recording, "-o", &output("profile.json"), "-o", &output("profile.txt")])?;
    println!("\nWritten to demo/: profile.json, profile.txt, timeline.html, trace.json");
    Ok(())
}

/// The recording that the demo is about. Recording a real program plugs in here; until then
/// it is 24 tokens of a 1B model on an H200, which ships with the project.
fn record() -> PathBuf {
    PathBuf::from("examples/llama-1b-q4_0-h200.json.gz")
}

/// Seen from the project's directory, where the commands run.
fn relative(path: &Path) -> String {
    path.strip_prefix(shell::root()).unwrap_or(path).to_string_lossy().into_owned()
}
