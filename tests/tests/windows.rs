//! Windows and SIGUSR2: which part of the program's life is recorded. The program itself does
//! the same in all cases.

use std::process::Command;

use ggprof_e2e::controlled::Session;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};
use ggprof_spool::layout::Window;
use serde_json::Value;

/// The workload computes thirty graphs under these variables.
fn recorded(variables: &[(&str, &str)]) -> Option<Recording> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let mut workload = UnderAgent::workload(&libraries, &["--graphs", "30", "--threads", "1"]);
    workload.command.envs(variables.iter().copied());
    let output = workload.run_well();
    assert!(String::from_utf8_lossy(&output.stdout).contains("done graphs=30 runs=30"));
    let recording = workload.recording();
    assert_eq!((recording.lost(), recording.damage.len()), (0, 0), "{variables:?}");
    for split in recording.splits.values() {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
        assert!(!recording.working_positions(split).is_empty());
    }
    Some(recording)
}

fn completed(recording: &Recording) -> usize {
    recording.completed_runs().count()
}

#[test]
fn a_range_of_graph_runs() {
    for (first, last, expected, window) in [
        ("10", "20", 11, Window::Over),
        ("25", "", 6, Window::Open),
        ("", "7", 7, Window::Over),
        ("31", "40", 0, Window::NotYet),
    ] {
        let variables = [("GGPROF_FIRST_GRAPH", first), ("GGPROF_LAST_GRAPH", last)];
        let Some(recording) = recorded(&variables) else { return };
        assert_eq!((completed(&recording), recording.header.window), (expected, window));
        assert_eq!(recording.runs.len(), expected);
    }
}

/// They keep the numbers that they have in the program, in every answer.
#[test]
fn graph_runs_of_a_window_are_called_as_in_the_program() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = tempfile::TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let mut workload = Command::new(built::workload());
    workload.arg(libraries).args(["--graphs", "30", "--threads", "1"]);
    let options = ["--graphs", "10..20", "-o", "p.ggprof"];
    assert!(session.recorded(&options, &workload).status().unwrap().success());
    let answer = |words: &[&str]| {
        let words = [&["report", "p.ggprof"], words].concat();
        String::from_utf8(session.ggprof(&words).output().unwrap().stdout).unwrap()
    };
    let runs: Value = serde_json::from_str(&answer(&["--by", "run", "--format", "json"])).unwrap();
    let numbers = runs["runs"].as_array().unwrap().iter().map(|run| run["run"].as_u64().unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), (10..=20).collect::<Vec<_>>());
    let calls = answer(&["--top-kernels", "3", "--format", "json"]);
    let calls: Value = serde_json::from_str(&calls).unwrap();
    let tables = calls.as_object().unwrap().values().filter_map(Value::as_array);
    let of_calls: Vec<u64> = tables.flatten().filter_map(|row| row["graph_run"].as_u64()).collect();
    assert!(of_calls.len() >= 3 && of_calls.iter().all(|run| (10..=20).contains(run)), "{calls:#}");
}

#[test]
fn a_stretch_of_time() {
    let hour = "3600000000000";
    for (name, value, expected) in [
        ("GGPROF_START_AFTER_NS", hour, 0),
        ("GGPROF_START_AFTER_NS", "1", 30),
        ("GGPROF_DURATION_NS", hour, 30),
        ("GGPROF_DURATION_NS", "0", 0),
    ] {
        let Some(recording) = recorded(&[(name, value)]) else { return };
        assert_eq!(completed(&recording), expected, "{name}={value}");
    }
}

#[test]
fn fusions_are_seen_after_a_long_wait() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    // Far more graphs than a hook without news is left in for.
    let arguments = ["--graphs", "1010", "--threads", "1", "--embd", "64"];
    let mut workload = UnderAgent::workload(&libraries, &arguments);
    workload.command.env("GGPROF_FIRST_GRAPH", "1001");
    workload.run_well();
    let recording = workload.recording();
    assert_eq!(completed(&recording), 10);
    for split in recording.splits.values() {
        assert!(split.ops.iter().any(|op| op.fused));
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
}

fn toggles(own_use: &[&str]) -> Option<(UnderAgent, String)> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let mut program = UnderAgent::new(built::host_program("toggles_itself.c"));
    program.command.arg(libraries).args(own_use);
    let output = program.run_well();
    Some((program, String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
fn sigusr2_stops_and_starts() {
    let Some((program, said)) = toggles(&[]) else { return };
    assert_eq!(said.trim(), "received=0");
    let recording = program.recording();
    // Three, then none of six, then six.
    assert_eq!((completed(&recording), recording.lost()), (9, 0));
    assert_ne!(recording.header.end_ticks, 0);
    let schedulers: Vec<u32> = recording.runs.values().map(|run| run.begin.scheduler).collect();
    assert_eq!(schedulers, [1, 1, 1, 2, 2, 2, 2, 2, 1]);
    // What was made meanwhile is described.
    for split in recording.splits.values() {
        let backend = recording.backends.iter().find(|b| b.backend == split.begin.backend);
        assert_eq!(backend.map(|backend| recording.text(backend.name)), Some("CPU"));
        assert_eq!(recording.working_positions(split).len(), 10);
    }
}

#[test]
fn a_program_with_its_own_use_for_sigusr2_keeps_it() {
    for (own_use, received) in [("before", 2), ("after", 2)] {
        let Some((program, said)) = toggles(&[own_use]) else { return };
        assert_eq!(said.trim(), format!("received={received}"), "{own_use}");
        assert_eq!(completed(&program.recording()), 15, "{own_use}");
    }
}
