//! Windows and SIGUSR2: which part of the program's life is recorded. The program itself does
//! the same in all cases.

use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};
use ggprof_spool::layout::Window;

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
