//! What `ggprof explain` says of a program whose slowness has a known cause, and what following its
//! advice brings.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::asked::{ask, list};
use crate::{budget, built};

/// A recording in a directory of its own.
#[derive(Debug)]
pub struct Recorded {
    pub file: PathBuf,
    _directory: TempDir,
}

impl Recorded {
    pub fn of(command: Command) -> Recorded {
        let directory = TempDir::new().expect("a directory");
        let file = directory.path().join("p.ggprof");
        let output = recording(&command, &file).output().expect("ggprof starts");
        assert!(output.status.success(), "{output:?}");
        Recorded { file, _directory: directory }
    }

    /// What `ggprof` answers in JSON.
    pub fn ask(&self, words: &[&str]) -> Value {
        ask(&[&self.file], words)
    }

    /// Its explanation, whose budgets add up, also by the events.
    pub fn explained(&self) -> Value {
        let explained = self.ask(&["explain"]);
        assert_ne!(budget::check_rows(&explained), 0, "{explained:#}");
        if !budget::check_events(&self.file) {
            eprintln!("{}: {}", self.file.display(), budget::NOT_COMPARED);
        }
        explained
    }
}

/// The command under `ggprof run`.
pub fn recording(command: &Command, file: &Path) -> Command {
    let mut run = Command::new(built::ggprof());
    run.args(["run", "-o"]).arg(file).arg("--").arg(command.get_program());
    run.args(command.get_args());
    for (name, value) in command.get_envs() {
        run.env(name, value.unwrap_or_default());
    }
    run
}

/// The first finding is of this rule and has these words in what to try.
#[track_caller]
pub fn check(explained: &Value, rule: &str, phase: &str, advice: &str) {
    let first = list(explained, "findings").first().unwrap_or(&Value::Null);
    check_one(explained, first, rule, phase, advice);
}

/// What is named first, be it above or below the share that makes it a finding: how large that is depends
/// on what else the machine does.
pub fn named_first(explained: &Value) -> &Value {
    let mut all = list(explained, "findings").iter().chain(list(explained, "notes"));
    all.next().unwrap_or(&Value::Null)
}

/// The same as `check` of what is named first.
#[track_caller]
pub fn check_named(explained: &Value, rule: &str, phase: &str, advice: &str) {
    check_one(explained, named_first(explained), rule, phase, advice);
}

#[track_caller]
fn check_one(explained: &Value, first: &Value, rule: &str, phase: &str, advice: &str) {
    let text = |key: &str| first[key].as_str().unwrap_or_default();
    assert_eq!(text("rule"), rule, "{explained:#}");
    assert!(text("phase").starts_with(phase), "{first:#}");
    assert!(text("try").contains(advice), "{first:#}");
}

/// Where the cause is not there, no finding of this rule is.
#[track_caller]
pub fn check_without(explained: &Value, rule: &str) {
    let is_it = |finding: &&Value| finding["rule"] == rule;
    let found = list(explained, "findings").iter().find(is_it);
    assert_eq!(found, None, "{explained:#}");
}

/// Nothing is worth a change, and that is said.
#[track_caller]
pub fn check_healthy(explained: &Value) {
    assert_eq!(list(explained, "findings"), [] as [Value; 0], "{explained:#}");
    assert!(explained["healthy"].as_str().expect("words").starts_with("No single cause"));
}

/// With `GGPROF_GAINS=N`, prints what following the advice brings beside what was promised: medians of
/// N runs with the cause and N without, in turns. Without it, nothing: how long something takes is for
/// people to judge.
pub fn print_gain(
    cause: &str,
    phase: &str,
    staged: impl Fn() -> Value,
    followed: impl Fn() -> Value,
) {
    let times = std::env::var("GGPROF_GAINS").ok().and_then(|times| times.parse().ok());
    let Some(times) = times.filter(|&times: &usize| times > 0) else { return };
    let (mut before, mut promised, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        let (staged, followed) = (staged(), followed());
        let first = list(&staged, "findings").first();
        promised.push(first.and_then(|it| it["cost_ns"].as_f64()).unwrap_or(0.0));
        before.push(wall_ns(&staged, phase));
        after.push(wall_ns(&followed, phase));
    }
    let [before, promised, after] = [before, promised, after].map(median);
    println!(
        "gain: {cause}: {:.1} ms, {:.1} promised, then {:.1}: {:.2} of the promise",
        before / 1e6,
        promised / 1e6,
        after / 1e6,
        (before - after) / promised
    );
}

/// The wall time of all phases whose names begin so.
fn wall_ns(explained: &Value, phase: &str) -> f64 {
    let is_it = |row: &&Value| row["phase"].as_str().is_some_and(|name| name.starts_with(phase));
    let rows = list(explained, "phases").iter().filter(is_it);
    rows.filter_map(|row| row["wall_ns"].as_f64()).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
