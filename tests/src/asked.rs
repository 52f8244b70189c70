//! What the command answers about recordings.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::built;

/// What `ggprof` answers about some recordings, in JSON.
pub fn ask(files: &[&Path], words: &[&str]) -> Value {
    let mut command = Command::new(built::ggprof());
    command.args(&words[..1]).args(files).args(&words[1..]).args(["--format", "json"]);
    let output = command.output().expect("ggprof starts");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}
