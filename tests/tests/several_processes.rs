//! Several recordings on one axis of time: processes that compute at the same moment, or one after the
//! other, on the same machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::other_clock::OtherClock;
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

/// Two programs that compute all the time; the recording of one is stopped for a while.
fn one_with_a_gap(libraries: &Path, session: &Session) -> [PathBuf; 2] {
    let mut endless = Command::new(built::workload());
    endless.arg(libraries).args(["--threads", "1", "--layers", "2", "--graphs", "100000000"]);
    let start = |name: &str| {
        let file = session.file(name).to_string_lossy().into_owned();
        Running::start(&mut session.recorded(&["-o", &file], &endless))
    };
    let whole = start("whole.ggprof");
    session.wait_for_one(&whole);
    let part = start("part.ggprof");
    session.wait_for_one(&part);
    let second = part.id().to_string();
    session.ctl_well(&["stop", &second]);
    std::thread::sleep(std::time::Duration::from_millis(400));
    session.ctl_well(&["start", &second]);
    std::thread::sleep(std::time::Duration::from_millis(100));
    part.end();
    whole.end();
    ["whole.ggprof", "part.ggprof"].map(|name| session.file(name))
}

#[test]
fn what_is_missing_of_one_process_is_not_its_idle_time() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let files = one_with_a_gap(&libraries, &session);
    let alone = files.clone().map(|file| ask(&["report"], &[file]));
    let together = ask(&["report"], &files);
    assert!(alone[0].get("gaps").is_none(), "{:#}", alone[0]);
    let gap_ns = alone[1]["gaps"]["gap_ns"].as_u64().unwrap();
    assert!(gap_ns > 300_000_000);
    let [row] = &together["process_gaps"].as_array().unwrap()[..] else { panic!("{together:#}") };
    assert_eq!(row["gap_ns"].as_u64(), Some(gap_ns), "{row}");
    assert_eq!(row["gap_runs"], alone[1]["gaps"]["gap_runs"]);
    for (row, alone) in together["backends"].as_array().unwrap().iter().zip(&alone) {
        assert_eq!(row["busy_ns"], alone["backends"][0]["busy_ns"]);
        let ns = |what: &str| row[what].as_u64().unwrap_or(0);
        let wall_ns = together["time"]["wall_ns"].as_u64().unwrap();
        let parts = ["busy_ns", "copying_ns", "idle_ns", "unrecorded_ns", "absent_ns"].map(ns);
        assert_eq!(parts.iter().sum::<u64>(), wall_ns, "{row}");
    }
    let unrecorded = |at: usize| together["backends"][at]["unrecorded_ns"].as_u64();
    assert_eq!([unrecorded(0), unrecorded(1)], [None, Some(gap_ns)]);

    // And the same after it was written down.
    let merged = session.file("both.json");
    let mut merge = session.ggprof(&["merge"]);
    let output = merge.args(&files).arg("-o").arg(&merged).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let again = ask(&["report"], &[merged]);
    assert_eq!(again["process_gaps"], together["process_gaps"]);
    assert_eq!(again["backends"], together["backends"]);
    assert_eq!(again["phases"], together["phases"]);
}

#[test]
fn how_uncertain_the_time_of_day_is() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = two_at_once(&libraries);
    let mut files = files_in(directory.path());
    let moved = directory.path().join("moved.ggprof");
    let clock = OtherClock { monotonic_ns: 9_000_000_000, realtime_ns: 3_000_000, ppm: 0 };
    clock.rewrite(&files[1], &moved);
    files[1] = moved;
    let said = ask(&["report"], &files)["warnings"].to_string();
    // What this machine's system says of its clock, which the recordings have.
    assert!(said.contains("aligned by the time of day"), "{said}");
    let kinds = ["against each other, as far as the systems know", "no server sets right"];
    assert!(kinds.iter().any(|kind| said.contains(kind)), "{said}");
}
