//! CUDA without a card: a backend on a fake device, traced by a fake CUPTI, both of which do what
//! the test says. Kernels are named after the node they compute, so that attribution can be checked
//! one by one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use ggprof_e2e::built;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{
    self, Covered, CoveredHow, CoveredWhy, DeviceWork, LossCounter, NO_NODE,
};

/// Kernels of one run of the graph: a product takes two.
const KERNELS: usize = 9;

/// The program with these runs, at a level, and what makes CUPTI misbehave.
fn program(level: &str, runs: &str, environment: &[(&str, &str)]) -> Option<UnderAgent> {
    let libraries = published_ggml::libraries(NEWEST)?;
    static PROGRAM: LazyLock<PathBuf> =
        LazyLock::new(|| built::host_program("uses_a_fake_cuda_device.c"));
    let (folder, cupti) = built::fake_cuda();
    let mut program = UnderAgent::new(&*PROGRAM);
    program.command.arg(libraries).arg(folder).args(runs.split(' '));
    program.command.env("GGPROF_CUDA", level).env("GGPROF_CUPTI", cupti);
    program.command.envs(environment.iter().copied());
    Some(program)
}

fn record(level: &str, runs: &str, environment: &[(&str, &str)]) -> Option<Recording> {
    let mut program = program(level, runs, environment)?;
    program.run_well();
    let recording = program.recording();
    assert_eq!(recording.damage, []);
    Some(recording)
}

fn kernels(recording: &Recording) -> Vec<&DeviceWork> {
    let all = recording.device_works.iter();
    all.filter(|work| work.flags & 3 == layout::WORK_KERNEL).collect()
}

fn whole_splits(recording: &Recording) -> usize {
    let all = recording.device_works.iter();
    all.filter(|work| work.flags & 3 == layout::WORK_WHOLE_SPLIT).count()
}

/// The name a kernel of the node would have.
fn expected_name(recording: &Recording, work: &DeviceWork) -> String {
    let split = &recording.splits[&work.split];
    let shape = &recording.shapes[&split.begin.shape];
    let (node, _) = &recording.nodes[&shape[work.position as usize]];
    let op = recording.text(node.op_name);
    format!("kernel {op} {}", recording.text(node.name))
}

#[track_caller]
fn check_attribution(recording: &Recording, runs: usize) {
    let kernels = kernels(recording);
    assert_eq!(kernels.len(), runs * KERNELS);
    let mut by_split: BTreeMap<u32, usize> = BTreeMap::new();
    for work in kernels {
        assert_ne!(work.position, NO_NODE, "{}", recording.text(work.name));
        assert_eq!(recording.text(work.name).trim_end(), expected_name(recording, work).trim_end());
        assert!(work.start < work.end);
        *by_split.entry(work.split).or_default() += 1;
    }
    assert_eq!(by_split.len(), runs);
    assert!(by_split.values().all(|&kernels| kernels == KERNELS), "{by_split:?}");
}

#[test]
fn every_kernel_is_its_nodes_on_launches_captures_and_replays() {
    let Some(recording) = record("full", "direct2 capture replay3 direct", &[]) else { return };
    check_attribution(&recording, 7);
    let fused: Vec<_> = recording.fusions.values().collect();
    assert_eq!(fused, [&vec![0, 1]], "the norm and its factor");
    assert_eq!(recording.lost(), 0);
    assert_eq!(whole_splits(&recording), 0);
}

#[test]
fn numbers_of_graph_nodes_are_used_again() {
    let runs = "direct capture replay capture replay2 capture replay";
    let Some(recording) = record("full", runs, &[]) else { return };
    check_attribution(&recording, 8);
}

#[test]
fn records_may_come_in_any_order() {
    let environment = [("FAKE_CUPTI_REVERSE", "1")];
    let Some(recording) = record("full", "direct capture replay", &environment) else { return };
    check_attribution(&recording, 3);
}

#[test]
fn device_and_host_share_a_clock_whose_error_is_bounded() {
    let Some(recording) = record("full", "direct3", &[]) else { return };
    let [clock] = &recording.device_clocks[..] else { panic!("{:?}", recording.device_clocks) };
    assert_eq!(clock.device_ticks, clock.monotonic_ns);
    assert!(clock.uncertainty_ns > 0 && clock.uncertainty_ns < 1_000_000_000, "{clock:?}");
    let last = kernels(&recording).iter().map(|work| work.end).max();
    assert_eq!(last, Some(clock.device_ticks));
}

#[test]
fn work_without_times_is_kept_as_such() {
    let environment = [("FAKE_CUPTI_ZERO", "1")];
    let Some(recording) = record("full", "direct2", &environment) else { return };
    let untimed = |work: &&&DeviceWork| work.flags & layout::WORK_UNTIMED != 0;
    let kernels = kernels(&recording);
    assert_eq!(kernels.len(), 2 * KERNELS);
    assert_eq!(kernels.iter().filter(untimed).count(), KERNELS);
}

#[test]
fn dropped_records_are_a_loss() {
    let environment = [("FAKE_CUPTI_DROPPED", "5")];
    let Some(recording) = record("full", "direct", &environment) else { return };
    assert_eq!(recording.header.losses[LossCounter::DeviceRecords as usize], 5);
}

#[test]
fn copies_outside_of_graphs_are_kept_with_their_size() {
    let Some(recording) = record("full", "direct copy2", &[]) else { return };
    let copies: Vec<_> =
        recording.device_works.iter().filter(|work| work.flags & 3 == layout::WORK_COPY).collect();
    assert_eq!(copies.len(), 2);
    for copy in copies {
        assert_eq!((copy.bytes, copy.split, copy.position), (4096, layout::NONE, NO_NODE));
        assert_eq!(recording.text(copy.name), "memcpy, pageable");
        assert_eq!(copy.flags >> layout::WORK_DIRECTION_BIT, layout::COPY_HOST_TO_DEVICE);
    }
}

/// CUPTI still holds the kernels of those runs when the first one comes that is not recorded.
#[test]
fn a_range_of_runs_has_all_of_its_kernels() {
    let range = [("GGPROF_FIRST_GRAPH", "3"), ("GGPROF_LAST_GRAPH", "6")];
    let Some(recording) = record("full", "direct2 capture replay7", &range) else { return };
    check_attribution(&recording, 4);
    assert_eq!(recording.header.active, 0, "nobody is owed anything");
}

#[test]
fn shorter_graphs_are_told_unless_the_user_chose_their_length() {
    let told = |level, environment: &[(&str, &str)]| {
        let mut program = program(level, "direct", environment)?;
        program.run_well();
        let report = Command::new(built::ggprof()).arg(&program.files()[0]).output().unwrap();
        let report = String::from_utf8_lossy(&report.stdout).into_owned();
        let (_, told) = report.split_once("ops (activity records of the device")?;
        let (told, _) = told.split_once(')')?;
        Some(told.trim_start_matches(", ").to_owned())
    };
    let variable = "GGML_CUDA_GRAPH_CHUNK_SIZE";
    let Some(ours) = told("full", &[]) else { return };
    assert_eq!(ours, "GGML_CUDA_GRAPH_CHUNK_SIZE=64");
    assert_eq!(told("full", &[(variable, "512")]).as_deref(), Some(""));
    assert_eq!(told("full", &[(variable, "064")]), Some(ours), "inherited from a program of ours");
    assert_eq!(told("sample", &[]).as_deref(), Some("sample"));

    // An older ggml has no such setting.
    let older = ("FAKE_GGML", "libggml-fake-older.so");
    let unknown = "GGML_CUDA_GRAPH_CHUNK_SIZE=64 was set, but this ggml does not know it";
    assert_eq!(told("full", &[older]).as_deref(), Some(unknown));
    assert_eq!(told("full", &[older, (variable, "512")]).as_deref(), Some(""));
}

#[test]
fn that_graphs_are_off_is_told() {
    let told = |level, environment: &[(&str, &str)]| {
        let mut program = program(level, "direct", environment)?;
        program.run_well();
        let is_it = |it: &layout::Coverage| it.what == Covered::Kernels as u16;
        let recording = program.recording();
        let last = recording.coverage.iter().rev().find(|it| is_it(it));
        last.and_then(|it| CoveredWhy::of(it.why))
    };
    for level in ["full", "sample"] {
        let Some(off) = told(level, &[("GGML_CUDA_DISABLE_GRAPHS", "")]) else { return };
        assert_eq!(off, CoveredWhy::GraphsOff, "{level}");
        assert_ne!(told(level, &[]), Some(CoveredWhy::GraphsOff), "{level}");
    }
}

/// The first window has forty runs, and later ones wait for their budget.
#[test]
fn samples_come_in_windows_and_the_rest_is_timed_as_a_whole() {
    let Some(recording) = record("sample", "direct2 capture replay97", &[]) else { return };
    check_attribution(&recording, 40);
    assert_eq!(whole_splits(&recording), 60);
    for work in &recording.device_works {
        assert!(work.end > work.start, "{work:?}");
    }
}

/// With all of the time for a budget, windows follow each other.
#[test]
fn what_was_captured_in_a_window_is_known_in_the_next() {
    let environment = [("GGPROF_BUDGET", "100")];
    let runs = "direct2 capture replay997";
    let Some(recording) = record("sample", runs, &environment) else { return };
    let kernels = kernels(&recording);
    assert!(kernels.len() > 40 * KERNELS, "{}", kernels.len());
    for work in kernels {
        assert_eq!(
            recording.text(work.name).trim_end(),
            expected_name(&recording, work).trim_end()
        );
    }
}

/// The wait earns the budget of the second window.
const BETWEEN_WINDOWS: &str = "direct2 capture replay47 capture replay2 wait4000 replay20";

/// A graph captured between two windows: its nodes' numbers were never heard of, or
/// meant others before.
#[test]
fn what_was_captured_between_windows_is_told_by_its_order() {
    let Some(recording) = record("sample", BETWEEN_WINDOWS, &[]) else { return };
    let kernels = kernels(&recording);
    assert!(kernels.len() > 40 * KERNELS, "{}", kernels.len());
    for work in kernels {
        assert_ne!(work.position, NO_NODE);
        assert_eq!(
            recording.text(work.name).trim_end(),
            expected_name(&recording, work).trim_end()
        );
    }
}

/// Nodes that run side by side have no order, and no guess is made.
#[test]
fn what_cannot_be_told_is_unattributed() {
    let environment = [("FAKE_CUDA_CONCURRENT", "1")];
    let Some(recording) = record("sample", BETWEEN_WINDOWS, &environment) else { return };
    let (known, unknown): (Vec<&DeviceWork>, Vec<&DeviceWork>) =
        kernels(&recording).into_iter().partition(|work| work.position != NO_NODE);
    assert_eq!(known.len(), 40 * KERNELS, "the first window");
    assert!(!unknown.is_empty());
    assert!(unknown.iter().all(|work| work.split != layout::NONE && work.name != layout::NONE));
}

#[test]
fn whole_splits_only_when_asked_for() {
    let Some(recording) = record("graph", "direct5", &[]) else { return };
    assert_eq!(kernels(&recording).len(), 0);
    // The stream is known from the first split on.
    assert_eq!(whole_splits(&recording), 4);
    let Some(recording) = record("off", "direct5", &[]) else { return };
    assert_eq!(recording.device_works.len(), 0);
}

/// More often than there are numbers for its calls. Of each opening the first split is not timed: its stream
/// is not known before.
#[test]
fn a_library_that_is_closed_and_opened_again_is_seen_as_before() {
    let runs = ["direct2"; 12].join(" reopen ");
    let Some(recording) = record("graph", &runs, &[]) else { return };
    assert_eq!(recording.completed_runs().count(), 24);
    assert_eq!(whole_splits(&recording), 12);
}

/// Why kernels are not observed, as the recording tells it.
fn reason(recording: &Recording) -> &str {
    let kernels = layout::Covered::Kernels as u16;
    let told: Vec<_> = recording.coverage.iter().filter(|entry| entry.what == kernels).collect();
    let [entry] = told[..] else { panic!("{told:?}") };
    assert_eq!(entry.how, CoveredHow::Not as u8);
    assert_eq!(entry.why, CoveredWhy::TracingRefused as u32);
    recording.text(entry.detail)
}

#[test]
fn without_a_usable_cupti_splits_are_timed_and_the_reason_is_told() {
    let cases = [
        ([("FAKE_CUPTI_VERSION", "140000")], "is of version 140000"),
        ([("FAKE_CUPTI_VERSION", "17")], "is of version 17"),
        ([("FAKE_CUPTI_FAIL", "cuptiSubscribe:39")], "another tool"),
        ([("FAKE_CUPTI_FAIL", "cuptiActivityEnable:35")], "administrators only"),
        ([("GGPROF_CUPTI", "/nowhere/libcupti.so")], "cannot be loaded"),
    ];
    for (environment, expected) in cases {
        let Some(recording) = record("sample", "direct3", &environment) else { return };
        assert!(reason(&recording).contains(expected), "{}", reason(&recording));
        assert_eq!(kernels(&recording).len(), 0);
        assert_eq!(whole_splits(&recording), 2);
    }
}

#[test]
fn an_error_from_any_call_harms_nothing() {
    for call in [
        "cuptiGetVersion",
        "cuptiSubscribe",
        "cuptiUnsubscribe",
        "cuptiEnableCallback",
        "cuptiGetGraphNodeId",
        "cuptiActivityRegisterCallbacks",
        "cuptiActivityRegisterTimestampCallback",
        "cuptiActivityEnable",
        "cuptiActivityDisable",
        "cuptiActivityFlushAll",
        "cuptiActivityGetNextRecord",
        "cuptiActivityGetNumDroppedRecords",
        "cuptiFinalize",
    ] {
        let fails = format!("{call}:999");
        let environment = [("FAKE_CUPTI_FAIL", fails.as_str()), ("GGPROF_BUDGET", "100")];
        let runs = "direct2 capture replay60 direct2";
        let Some(recording) = record("sample", runs, &environment) else { return };
        assert_eq!(recording.completed_runs().count(), 65, "{call}");
        assert_eq!(recording.header.losses[LossCounter::Fault as usize], 0, "{call}");
    }
}

/// Loading it runs its constructors, under the loader's lock. One of them waits for a thread that
/// computes.
#[test]
fn nobody_who_computes_waits_for_cupti_to_be_loaded() {
    let Some(recording) = record("full", "beside direct3", &[]) else { return };
    assert_eq!(recording.completed_runs().count(), 4);
    // The run beside it went without.
    check_attribution(&recording, 3);
    assert_eq!(recording.header.losses[LossCounter::Fault as usize], 0);
}

/// As many as the agent has lanes.
const EVERYBODY: &str = "64";

#[test]
fn nobody_waits_for_a_backend_that_was_freed_unseen() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let (folder, cupti) = built::fake_cuda();
    let mut program = UnderAgent::new(built::host_program("frees_a_device_unseen.c"));
    program.command.arg(libraries).arg(folder).arg(EVERYBODY);
    program.command.env("GGPROF_CUDA", "sample").env("GGPROF_CUPTI", cupti);
    program.run_well();
    let recording = program.recording();
    assert!(recording.header.losses[LossCounter::NoLane as usize] > 0, "it was seen");
    assert!(recording.completed_runs().count() > 100);
}
