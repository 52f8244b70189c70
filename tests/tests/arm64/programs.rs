//! By an emulator of programs (qemu-user), which runs them as processes of this system.

use std::process::{Command, Stdio};

use ggprof_e2e::arm64::{self, Arm64};
use ggprof_e2e::built;
use ggprof_e2e::model::Model;
use ggprof_e2e::published_ggml::{BEFORE_ANNOUNCED_OPS, NEWEST};
use ggprof_e2e::ran::Ran;
use ggprof_e2e::recording::Split;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{ClockKind, CoveredHow};
use serde_json::Value;

use crate::{check_every_node, check_order, seen};

/// What it prints with the agent is what it prints without.
fn record_same(arm64: &Arm64, mut command: Command) -> UnderAgent {
    let alone = Ran::of(command.output().expect("the emulator starts"));
    let mut program = arm64.under_agent(command);
    let ran = Ran::of(program.run());
    assert_eq!((ran.code, &ran.out), (alone.code, &alone.out), "{ran:?}\n{alone:?}");
    program
}

/// What stands beside the agent's code, but for what the emulator does not know: children that share
/// their parent's memory, and filters of system calls. It takes a minute to compile.
#[test]
fn the_agents_own_tests_pass() {
    if std::env::var_os("GGPROF_ARM64_UNIT_TESTS").is_none() {
        return;
    }
    let Some(arm64) = Arm64::new() else { return };
    let mut tests = arm64.agent_tests();
    let unknown = ["--skip", "spawn::", "--skip", "kept_signals::"];
    tests.args(unknown).args(arm64::WITHOUT_A_COMPILER);
    let ran = Ran::of(tests.output().expect("the emulator starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// gcc, backends as libraries for several kinds of processor; with either clock.
#[test]
fn llama_bench_of_debian_is_recorded() {
    let Some(arm64) = Arm64::new() else { return };
    check_llama_bench(&arm64, ClockKind::MonotonicNs);
    check_llama_bench(&arm64.with_counter(), ClockKind::CycleCounter);
}

fn check_llama_bench(arm64: &Arm64, clock: ClockKind) {
    let model = Model::TINY.file("tiny").expect("a model can be written");
    let mut bench = arm64.debian("llama-bench");
    bench.args(["--threads", "2", "--n-prompt", "16", "--n-gen", "4"]);
    bench.args(["--repetitions", "1", "--model"]).arg(model);
    let mut program = arm64.under_agent(bench);
    program.run_well();
    let recording = program.recording();
    check_every_node(&recording);
    check_order(&recording);
    assert_eq!(recording.header.clock, Some(clock));
    assert_eq!(seen(&recording), [CoveredHow::GotSlot; 2]);
    let waited = |split: &Split| split.ops.iter().any(|op| op.wait_sum > 0);
    assert!(recording.splits.values().any(waited), "no thread ever waited");
    assert!(recording.runs.len() >= 5, "{} graph runs", recording.runs.len());
    let batches = recording.runs.values().filter(|run| run.begin.number > 0).count();
    assert_eq!(batches, recording.runs.len());
}

#[test]
fn llama_completion_says_the_same() {
    let Some(arm64) = Arm64::new() else { return };
    let model = Model::TINY.file("tiny").expect("a model can be written");
    let mut completion = arm64.debian("llama-completion");
    completion.args(["--threads", "1", "-n", "4", "--temp", "0", "--no-warmup", "-no-cnv"]);
    completion.args(["--no-perf", "-p", "a", "--model"]).arg(model);
    let program = record_same(&arm64, completion);
    check_every_node(&program.recording());
}

/// The workload on published libraries: every node, one after the other.
fn record_workload(arm64: &Arm64, version: &str) -> Option<UnderAgent> {
    let mut workload = arm64.workload(&arm64::published(version)?);
    workload.args(["--threads", "2", "--graphs", "3", "--layers", "2", "--prompt", "8"]);
    let mut program = arm64.under_agent(workload);
    program.run_well();
    let recording = program.recording();
    check_every_node(&recording);
    check_order(&recording);
    Some(program)
}

/// clang, and the barrier between ops in line: waits are not known, and ops do not overlap.
#[test]
fn ops_follow_each_other_where_the_barrier_is_in_line() {
    let Some(arm64) = Arm64::new() else { return };
    let Some(program) = record_workload(&arm64, NEWEST) else { return };
    let recording = program.recording();
    assert_eq!(seen(&recording), [CoveredHow::GotSlot, CoveredHow::Not]);

    let report = |words: &[&str]| {
        let mut report = Command::new(built::ggprof());
        report.arg("report").args(words).args(program.files());
        Ran::of(report.output().expect("ggprof starts")).out
    };
    let summary = report(&[]);
    assert!(summary.contains("put ggml_barrier in line"), "{summary}");
    assert!(!summary.contains("before their inputs"), "{summary}");
    let ops: Value = serde_json::from_str(&report(&["--by", "op", "--format", "json"])).unwrap();
    let ops = ops["operations"].as_array().unwrap();
    assert!(ops.iter().all(|op| op["wait_share"] == Value::Null), "{ops:?}");
}

/// An older ggml, whose functions are called directly: changed at their entries.
#[test]
fn function_entries_are_hooked() {
    let Some(arm64) = Arm64::new() else { return };
    let Some(program) = record_workload(&arm64, BEFORE_ANNOUNCED_OPS) else { return };
    let recording = program.recording();
    assert_eq!(seen(&recording)[0], CoveredHow::InlineHook);
}

/// Forked children, threads, an exception through a hook, and an end without a normal exit.
#[test]
fn small_programs_do_the_same_and_are_recorded() {
    let Some(arm64) = Arm64::new() else { return };
    let Some(libraries) = arm64::published(NEWEST) else { return };
    for (source, runs) in [
        ("throws_through_hook.cpp", vec![5]),
        ("forks_workers.c", vec![3, 3, 3, 3, 4]),
        ("exits_at_once.c", vec![3]),
    ] {
        let mut command = arm64.host_program(source);
        command.arg(&libraries);
        let program = record_same(&arm64, command);
        let mut found: Vec<usize> =
            program.recordings().iter().map(|it| it.completed_runs().count()).collect();
        found.sort_unstable();
        assert_eq!(found, runs, "{source}");
    }
}

/// The system knows the emulator only.
#[test]
fn what_is_emulated_cannot_be_attached_to() {
    let Some(arm64) = Arm64::new() else { return };
    let Some(libraries) = arm64::published(NEWEST) else { return };
    let mut program = arm64.host_program("keeps_registers_arm64.c");
    let mut program = program.arg(&libraries).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut attach = Command::new(built::ggprof());
    attach.args(["attach", &program.id().to_string()]);
    let ran = Ran::of(attach.output().expect("ggprof starts"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("runs in an emulator (qemu-aarch64)"), "{ran:?}");
    program.kill().expect("it is ours");
    program.wait().expect("it ends");
}
