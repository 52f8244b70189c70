//! Programs of all kinds with an agent that checks itself: the order of its locks, that it holds
//! none while it calls the loader, and its arithmetic. A violation is a fault like any other, and
//! is counted in the recording.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ggprof_e2e::built;
use ggprof_e2e::published_ggml::{self, BEFORE_ANNOUNCED_OPS, NEWEST};
use ggprof_e2e::source_ggml::{self, Compiler, Kept, SYMBOLIC};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::within::output_within;
use ggprof_spool::layout::LossCounter;

const LIMIT: Duration = Duration::from_secs(120);

/// Runs the program with these wishes; it records something, and nothing is wrong.
#[track_caller]
fn check(program: Option<Command>, wishes: &[(&str, &str)]) {
    let Some(program) = program else { return };
    let what = format!("{program:?} {wishes:?}");
    let mut program = UnderAgent::of(program);
    program.command.env("LD_PRELOAD", built::checked_agent()).envs(wishes.iter().copied());
    let output = output_within(LIMIT, &mut program.command).expect("it comes to its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{what}: {:?} {said}", output.status);
    let recordings = program.recordings();
    assert!(!recordings.is_empty(), "{what}: {said}");
    for recording in recordings {
        assert_eq!(recording.header.losses[LossCounter::Fault as usize], 0, "{what}: {said}");
        assert!(recording.completed_runs().count() > 0, "{what}");
    }
}

fn host(source: &str, libraries: Option<PathBuf>, arguments: &[&str]) -> Option<Command> {
    let mut program = Command::new(built::host_program(source));
    program.arg(libraries?).args(arguments);
    Some(program)
}

fn workload(libraries: Option<PathBuf>, arguments: &[&str]) -> Option<Command> {
    let mut workload = Command::new(built::workload());
    workload.arg(libraries?).args(arguments);
    Some(workload)
}

fn newest() -> Option<PathBuf> {
    published_ggml::libraries(NEWEST)
}

#[test]
fn shared_libraries_old_and_new_on_threads() {
    let small = ["--graphs", "50", "--layers", "2", "--embd", "64", "--threads", "2"];
    let old = || published_ggml::libraries(BEFORE_ANNOUNCED_OPS);
    let ticking = || published_ggml::stripped(BEFORE_ANNOUNCED_OPS);
    for libraries in [newest(), old(), ticking()] {
        check(workload(libraries.clone(), &small), &[("GGPROF_THREADS", "1")]);
        check(host("prints_results.c", libraries.clone(), &["2"]), &[]);
        check(host("device_beside.c", newest(), &["2", "crashes"]), &[]);
        check(host("copies_a_backend.c", libraries, &[]), &[("GGPROF_SERIALIZE", "1")]);
    }
    check(host("distinct_graphs.c", newest(), &["3000"]), &[("GGPROF_MAX_BYTES", "4194304")]);
    check(host("forks_while_recording.c", newest(), &[]), &[]);
}

#[test]
fn libraries_that_come_and_go() {
    let base_and_cpu = ["libggml-base.so", "libggml-cpu.so"];
    let cpus = ["libggml-cpu-x64.so", "libggml-cpu-sse42.so"];
    check(host("closes_a_backend.c", newest(), &cpus), &[]);
    check(host("reopens_ggml.c", published_ggml::libraries("3.3.2"), &base_and_cpu), &[]);
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl", "-lpthread"];
    let program = built::linked_program("opens_while_others_ask.c", "program", &flags);
    let opened = built::host_library("calls_back_when_opened.c");
    for question in ["1", "5", "9"] {
        let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
        let mut asks = Command::new(&program);
        asks.arg(libraries).arg(&opened).arg(question);
        check(Some(asks), &[]);
    }
}

#[test]
fn ggml_linked_in_and_libraries_that_call_themselves() {
    let linked = source_ggml::linked_into("ggml_linked_in.c").map(|program| {
        let mut program = Command::new(program);
        program.args(["5", "2"]);
        program
    });
    check(linked, &[]);
    let hidden = source_ggml::library_around("ggml_linked_in.c", Kept::Hidden).map(|library| {
        let mut program = Command::new(built::host_program("opens_hidden_ggml.c"));
        program.arg(library).args(["3", "2"]).env("GGML_NO_BACKTRACE", "1");
        program
    });
    check(hidden, &[]);
    let symbolic = source_ggml::libraries(Compiler::Gcc, SYMBOLIC).map(|libraries| {
        let mut workload = Command::new(built::workload());
        workload.arg(libraries).args(["--graphs", "5", "--threads", "2"]);
        workload
    });
    check(symbolic, &[]);
}

#[test]
fn vulkan_devices() {
    for mode in ["sample", "group", "pair", "serial"] {
        let Some((libraries, environment)) = published_ggml::vulkan_libraries(NEWEST) else {
            return;
        };
        let mut program = Command::new(built::host_program("prints_results.c"));
        program.arg(libraries).args(["1", "Vulkan0"]).envs(environment);
        check(Some(program), &[("GGPROF_VULKAN", mode)]);
    }
}

#[test]
fn cuda_devices() {
    let (folder, cupti) = built::fake_cuda();
    let (folder, cupti) = (folder.to_string_lossy(), cupti.to_string_lossy());
    for (level, runs) in [
        ("full", "beside direct2 capture replay3 copy"),
        ("sample", "direct2 capture replay47 capture replay2 wait500 replay20"),
        ("graph", "direct5"),
    ] {
        let words: Vec<&str> = [&*folder].into_iter().chain(runs.split(' ')).collect();
        let program = host("uses_a_fake_cuda_device.c", newest(), &words);
        check(program, &[("GGPROF_CUDA", level), ("GGPROF_CUPTI", &cupti)]);
    }
    let program = host("frees_a_device_unseen.c", newest(), &[&folder, "64"]);
    check(program, &[("GGPROF_CUDA", "sample"), ("GGPROF_CUPTI", &cupti)]);
}
