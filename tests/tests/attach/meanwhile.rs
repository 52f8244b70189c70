//! Programs that do something else than compute while they are attached to: they end, or fork.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use ggprof_e2e::controlled::Session;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::{built, published_ggml, source_ggml};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::{
    Ready, attach, check_every_node, computing, go_on, is_too_early, ready, results, said, times,
};

/// At any moment of an attach. `GGPROF_ENDS` makes this long.
#[test]
fn a_program_may_end() {
    let Some(linked_in) = source_ggml::linked_into("computes_until_told.c") else { return };
    let Some(shared) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let mut plain = BTreeMap::new();
    for round in 0..times("GGPROF_ENDS", 6) {
        let mut command = computing(round, &shared, &linked_in);
        let plain = plain.entry(format!("{command:?}"));
        let plain = plain
            .or_insert_with(|| results(command.stdin(Stdio::null()).output().expect("it starts")));
        let (_directory, session) = Session::in_new_place();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = Ready(command.spawn().expect("it starts"));
        // It has come to ggml.
        while is_too_early(&said(&attach(&session, program.id(), &["--duration", "1ms"]))) {}
        let words = ["attach", &program.id().to_string(), "--no-sensors", "-o", "p.ggprof"];
        let mut attach = session.ggprof(&words);
        attach.stdout(Stdio::null()).stderr(Stdio::piped());
        let attach = attach.spawn().expect("ggprof starts");
        std::thread::sleep(Duration::from_micros(round as u64 * 7919 % 60_000));
        assert_eq!(results(program.told_to_end()), *plain, "{command:?}");
        let output = attach.wait_with_output().expect("it ends with the program");
        let said = said(&output);
        match output.status.code() {
            Some(0) => check_every_node(&Recording::read(&session.file("p.ggprof"))),
            Some(3) => assert!(said.contains("there is no recording"), "{said}"),
            Some(1) => assert!(has_ended(&said) && said.lines().count() == 1, "{said}"),
            code => panic!("{code:?}: {said}"),
        }
    }
}

fn has_ended(said: &str) -> bool {
    ["there is no process", "has ended", "ended before ggprof was attached to it"]
        .iter()
        .any(|words| said.contains(words))
}

/// Its loader waits for a library that it is told to load first, and has nothing of the program's yet.
#[test]
fn a_program_may_have_been_started_just_now() {
    let Some(program) = source_ggml::linked_into("computes_until_told.c") else { return };
    for (comes_after, is_recorded) in
        [(Duration::from_millis(300), true), (Duration::from_millis(1500), false)]
    {
        let (_directory, session) = Session::in_new_place();
        let library = session.file("library.so");
        mkfifoat(CWD, &library, Mode::RWXU).expect("a pipe");
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", &library).stderr(Stdio::null());
        let program = Ready(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let attach = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(comes_after);
                std::fs::write(&library, "no library")
            });
            attach(&session, program.id(), &["--duration", "300ms", "-o", "p.ggprof"])
        });
        let expected = if is_recorded { "One thread stood for" } else { "is still being loaded" };
        assert!(said(&attach).contains(expected), "{}", said(&attach));
        assert_eq!(program.told_to_end().status.code(), Some(0));
    }
}

/// Its children go on where they are, those that it forks while a thread of it is asked as well: by itself,
/// and while a thread that waits is there to be asked. `GGPROF_ATTACHES` makes this long.
#[test]
fn a_program_may_fork() {
    let Some(shared) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    for round in 0..times("GGPROF_ATTACHES", 4) {
        let mut command = Command::new(built::host_program("forks_until_told.c"));
        command.arg(&shared).args((round % 2 == 1).then_some("beside"));
        let (_directory, session) = Session::in_new_place();
        let mut program = ready(&mut command);
        let output = attach(&session, program.id(), &["--duration", "100ms", "-o", "p.ggprof"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        go_on(&mut program);
        assert_eq!(program.wait().expect("it ends").code(), Some(0), "a child has failed");
        let mut graphs = 0;
        for file in std::fs::read_dir(session.file("")).expect("a directory").flatten() {
            let recording = Recording::read(&file.path());
            check_every_node(&recording);
            graphs += recording.completed_runs().count();
        }
        assert!(graphs > 0, "{}", said(&output));
    }
}
