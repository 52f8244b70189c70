//! Programs for musl: recorded by an agent of their own, also among programs for glibc.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use ggprof_e2e::musl::Musl;
use ggprof_e2e::ran::{Ran, names_in};
use ggprof_e2e::{built, published_ggml};
use serde_json::Value;
use tempfile::TempDir;

/// Runs it in a directory, which is also its cache.
fn record(musl: &Musl, directory: &TempDir, command: &Command) -> Ran {
    let mut ggprof = Command::new(&musl.ggprof);
    ggprof.args(["run", "-o", "p.json", "--"]).arg(command.get_program()).args(command.get_args());
    ggprof.current_dir(directory.path()).env("XDG_CACHE_HOME", directory.path().join("cache"));
    Ran::of(ggprof.stdin(Stdio::null()).env_remove("LD_PRELOAD").output().unwrap())
}

/// The graph runs in each recording of the directory, fewest first.
fn graph_runs(directory: &TempDir) -> Vec<usize> {
    let names = names_in(directory.path());
    let files = names.iter().filter(|name| name.ends_with(".json"));
    let runs = files.map(|name| {
        let profile = std::fs::read(directory.path().join(name)).unwrap();
        let profile: Value = serde_json::from_slice(&profile).unwrap();
        profile["ggprof"]["graph_runs"].as_array().unwrap().len()
    });
    let mut runs: Vec<usize> = runs.collect();
    runs.sort();
    runs
}

/// Forked children, threads, an exception through a hook, and an end without a normal exit.
#[test]
fn they_do_the_same_and_are_recorded() {
    let Some(musl) = Musl::new() else { return };
    for (source, runs) in [
        ("throws_through_hook.cpp", vec![5]),
        ("forks_workers.c", vec![3, 3, 3, 3, 4]),
        ("exits_at_once.c", vec![3]),
    ] {
        let mut command = musl.command(source).unwrap();
        let alone = Ran::of(command.output().unwrap());
        let directory = TempDir::new().unwrap();
        let ran = record(&musl, &directory, &command);
        assert_eq!((ran.code, &ran.out), (alone.code, &alone.out), "{source}: {ran:?}");
        assert_eq!(graph_runs(&directory), runs, "{source}: {ran:?}");
    }
}

/// Here the C library sends the signal of a process that gives up to a thread that it remembers.
#[test]
fn what_gives_up_in_a_child_does_not_end_the_program() {
    let Some(musl) = Musl::new() else { return };
    let mut tests = musl.agent_tests().unwrap();
    let ran = Ran::of(tests.args(["rehearsal", "kept_signals"]).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("whatever_a_child_dies_of_is_the_answer ... ok"), "{ran:?}");
}

/// Its loader keeps an error until somebody asks for it, also if the next question is answered.
#[test]
fn programs_do_not_see_the_errors_of_what_ggprof_asks_the_loader() {
    let Some(musl) = Musl::new() else { return };
    let mut command = musl.command("asks_for_the_error.c").unwrap();
    command.arg(musl.library("hides_a_name.c").unwrap());
    let alone = Ran::of(command.output().unwrap());
    assert_eq!(alone.out, "no error, 42\nno error, 42\n");
    let directory = TempDir::new().unwrap();
    let ran = record(&musl, &directory, &command);
    assert_eq!((ran.code, &ran.out), (alone.code, &alone.out), "{ran:?}");
}

/// One list of libraries to preload serves both kinds, and those that start each other.
#[test]
fn each_kind_gets_its_own_agent() {
    let Some(musl) = Musl::new() else { return };
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let words = |command: &Command| {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> =
            words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        words.join(" ")
    };
    let mut workload = Command::new(built::workload());
    workload.arg(libraries).args(["--threads", "1", "--graphs", "2"]);
    let forking = words(&musl.command("forks_workers.c").unwrap());
    let plain = built::foreign_program("no_ggml.c", "musl", "musl-gcc", &[]).unwrap();
    let script = format!("{}; {forking}; '{}'; echo \"$?\"", words(&workload), plain.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    let directory = TempDir::new().unwrap();
    let ran = record(&musl, &directory, &shell);
    assert!(ran.out.ends_with("no ggml here\n3\n"), "{ran:?}");
    assert_eq!(graph_runs(&directory), [2, 3, 3, 3, 3, 4], "{ran:?}");
    assert!(!ran.err.contains("rror"), "{ran:?}");
}

#[test]
fn doctor_knows_the_c_library() {
    let Some(musl) = Musl::new() else { return };
    let directory = TempDir::new().unwrap();
    let doctor = |words: &[&str]| {
        let mut ggprof = Command::new(&musl.ggprof);
        ggprof.arg("doctor").args(words).env("XDG_CACHE_HOME", directory.path());
        Ran::of(ggprof.stdin(Stdio::null()).env_remove("LD_PRELOAD").output().unwrap())
    };
    assert!(doctor(&[]).out.contains("agent for musl  "));
    let command = musl.command("forks_workers.c").unwrap();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<&str> = ["--"].into_iter().chain(words.map(|w| w.to_str().unwrap())).collect();
    let ran = doctor(&words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("libc.so · x86_64 · for musl\n"), "{ran:?}");
    assert!(!ran.out.contains("is built for musl"), "{ran:?}");
}

/// Its loader would not take the agent any more. The program goes on.
#[test]
fn a_running_program_is_not_attached_to() {
    let Some(musl) = Musl::new() else { return };
    let mut command = musl.command("forks_until_told.c").unwrap();
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let cache = TempDir::new().unwrap();
    let mut ggprof = Command::new(&musl.ggprof);
    ggprof.arg("attach").arg(program.id().to_string()).args(["--duration", "1s"]);
    ggprof.env("XDG_CACHE_HOME", cache.path()).env_remove("LD_PRELOAD");
    let ran = Ran::of(ggprof.stdin(Stdio::null()).output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the program is for musl"), "{ran:?}");
    program.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(program.wait().unwrap().code(), Some(0), "{ran:?}");
}
