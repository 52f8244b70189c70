//! Phases and requests, compared with what the programs themselves measured.

mod llama_bench;
mod other_programs;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::built;
use serde_json::Value;

/// What `ggprof report` says of a recording, as JSON.
fn report(recording: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(built::ggprof());
    command.arg("report").arg(recording).args(words).args(["--format", "json"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rows<'a>(report: &'a Value, table: &str) -> &'a Vec<Value> {
    report[table].as_array().unwrap_or_else(|| panic!("no {table} in {report}"))
}

/// Two measurements of the same time, in milliseconds.
struct Pair {
    what: String,
    ours: f64,
    theirs: f64,
}

impl Pair {
    fn new(what: impl Into<String>, ours: &Value, theirs: f64) -> Pair {
        let ours = ours.as_f64().unwrap_or(f64::NAN) / 1e6;
        Pair { what: what.into(), ours, theirs }
    }

    /// Within two percent, or a millisecond.
    fn agrees(&self) -> bool {
        (self.ours - self.theirs).abs() <= (0.02 * self.theirs).max(1.0)
    }
}

/// Measures until each figure has agreed once: on a busy machine a program may be put aside between its look
/// at the clock and ours. One that never agrees is wrong. `None` where that is not possible here.
fn check(measure: impl Fn() -> Option<Vec<Pair>>) {
    const ATTEMPTS: usize = 8;
    // Of each figure, by its place: what was measured, until it agrees.
    let mut open: Vec<Option<String>> = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(pairs) = measure() else { return };
        open.resize(pairs.len(), Some(String::new()));
        for (pair, open) in pairs.iter().zip(&mut open) {
            let Pair { what, ours, theirs } = pair;
            match open {
                Some(_) if pair.agrees() => *open = None,
                Some(words) => *words += &format!("{what}: {ours:.3} ms for {theirs:.3} ms\n"),
                None => {}
            }
        }
        if open.iter().all(Option::is_none) {
            return;
        }
    }
    panic!("{}", open.into_iter().flatten().collect::<String>());
}

fn recorded(command: &Command, directory: &Path) -> (PathBuf, String) {
    let file = directory.join("p.ggprof");
    let mut run = Command::new(built::ggprof());
    run.args(["run", "-o"]).arg(&file).arg("--").arg(command.get_program());
    run.args(command.get_args());
    for (name, value) in command.get_envs() {
        run.env(name, value.unwrap_or_default());
    }
    let output = run.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (file, text + &String::from_utf8_lossy(&output.stderr))
}
