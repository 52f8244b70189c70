//! Whether what `ggprof explain` says of a recording adds up.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::built;

/// The budgets of a recording's phases, whatever state it is in: the rows of each add up to its wall
/// time. Panics where they do not.
pub fn check(recording: &Path) {
    let mut command = Command::new(built::ggprof());
    let output = command.arg("explain").arg(recording).args(["--format", "json"]).output();
    let output = output.expect("ggprof starts");
    // 3: something is missing from the recording. 1: there is nothing to read.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{output:?}");
    if let Ok(explained) = serde_json::from_slice(&output.stdout) {
        check_rows(&explained);
    }
}

/// The same of an answer in JSON; how many phases there are.
pub fn check_rows(explained: &Value) -> usize {
    let mut phases: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in explained["budget"].as_array().into_iter().flatten() {
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("no {key}: {row}"));
        let phase = phases.entry(row["phase"].as_str().unwrap_or_default()).or_default();
        *phase = (phase.0 + number("ns"), number("wall_ns"));
    }
    for (phase, (sum_ns, wall_ns)) in &phases {
        assert_eq!(sum_ns, wall_ns, "{phase} in {explained:#}");
    }
    phases.len()
}
