//! Several recordings on one axis of time: processes that compute at the same moment, or one after the
//! other, on the same machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ggprof_e2e::{built, published_ggml};
use serde_json::Value;
use tempfile::TempDir;

/// Of each process: so many that the first is far from its end when the second begins.
const GRAPHS: u64 = 500;

/// A shell that starts the workload twice at the same time, so that one `ggprof run` follows both; its
/// recordings are in the directory.
fn two_at_once(libraries: &Path) -> TempDir {
    let directory = TempDir::new().unwrap();
    let program = built::workload();
    let libraries = libraries.display();
    let workload = format!("{} {libraries} --threads 1 --graphs {GRAPHS}", program.display());
    let script = format!("{workload} & {workload} & wait");
    let mut run = Command::new(built::ggprof());
    run.args(["run", "-o", "p.ggprof", "--", "sh", "-c", &script]);
    run.current_dir(directory.path()).env_remove("LD_PRELOAD").stdin(Stdio::null());
    let output = run.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let files: Vec<String> = files_in(directory.path())
        .iter()
        .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let hint = format!("All of them on one axis of time: ggprof view {}", files.join(" "));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(files.len() != 2 || said.contains(&hint), "{hint}: {said}");
    directory
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What `ggprof` answers in JSON.
fn ask(words: &[&str], files: &[PathBuf]) -> Value {
    let mut ask = Command::new(built::ggprof());
    let output = ask.args(words).args(files).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sum(answer: &Value, table: &str, column: &str) -> u64 {
    let rows = answer[table].as_array().unwrap_or_else(|| panic!("{table} in {answer:#}"));
    rows.iter().map(|row| row[column].as_u64().unwrap()).sum()
}

#[test]
fn two_processes_at_once_are_two_with_one_clock() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = two_at_once(&libraries);
    let files = files_in(directory.path());
    assert_eq!(files.len(), 2, "{files:?}");
    let alone: Vec<Value> =
        files.iter().map(|file| ask(&["report"], std::slice::from_ref(file))).collect();
    let together = ask(&["report"], &files);

    // Each keeps its own processor, and no op is lost or counted twice.
    let backends = together["backends"].as_array().unwrap();
    assert_eq!(backends.len(), 2, "{backends:?}");
    let ops = |answer: &Value| sum(answer, "backends", "ops");
    assert_eq!(ops(&together), alone.iter().map(ops).sum::<u64>());
    let time = |answer: &Value| answer["time"]["sum_ns"].as_u64().unwrap();
    assert_eq!(time(&together), alone.iter().map(time).sum::<u64>());
    let runs = |answer: &Value| answer["graph_runs"]["count"].as_u64().unwrap();
    assert_eq!(runs(&together), 2 * GRAPHS);

    // They ran at the same time: together they took less than one after the other, and each waited
    // for the other.
    let wall = |answer: &Value| answer["time"]["wall_ns"].as_u64().unwrap();
    assert!(wall(&together) < alone.iter().map(wall).sum(), "{:#}", together["time"]);
    let shared = together["shared_devices"].as_array().unwrap();
    assert_eq!(shared.len(), 2, "{shared:?}");
    for (row, alone) in shared.iter().zip(&alone) {
        let busy = alone["backends"][0]["busy_ns"].as_u64().unwrap();
        assert_eq!(row["used_ns"].as_u64().unwrap(), busy);
        assert!(row["together_ns"].as_u64().unwrap() > 0, "{row}");
    }
    let warnings = together["warnings"].to_string();
    assert!(!warnings.contains("time of day"), "{warnings}");

    // None is counted twice.
    let mut twice = Command::new(built::ggprof());
    let twice = twice.arg("report").args([&files[0], &files[1], &files[0]]).output().unwrap();
    let said = String::from_utf8_lossy(&twice.stderr);
    assert!(twice.status.code() == Some(1) && said.contains("is named twice"), "{twice:?}");

    // A directory is a list of recordings.
    let listed = ask(&["report"], &[directory.path().to_owned()]);
    assert_eq!(listed["backends"], together["backends"]);
    assert!(ask(&["explain"], &files).is_object());
}
