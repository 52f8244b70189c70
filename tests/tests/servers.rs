//! Programs that serve: many requests at once, and processes that start others.

use std::collections::BTreeSet;
use std::process::Command;

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::ran::names_in;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::{built, published_ggml};
use tempfile::TempDir;

/// As many clients at once as this, each with requests of its own length.
const CLIENTS: u32 = 8;
const SLOTS: u32 = 4;

/// Every client's answers, in the order of the clients.
fn serve(server: &LlamaServer) -> Vec<(u32, String)> {
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        let ask = |client: u32| {
            let prompt = format!("client {client} {}", "asks ".repeat(3 + 5 * client as usize));
            let answer = server.complete(&prompt, 12 + client).expect("every request is answered");
            assert_eq!(answer.tokens, 12 + client);
            (answer.slot, answer.text)
        };
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || ask(client))).collect();
        answers.extend(clients.into_iter().map(|client| client.join().unwrap()));
    });
    answers
}

#[test]
fn a_server_under_load_is_recorded_completely() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((command, port)) = llama_server::command(&model, SLOTS) else { return };
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let server = LlamaServer::start(session.recorded(&["-o", "p.ggprof"], &command), port);
    let mut slots = BTreeSet::new();
    for _ in 0..2 {
        slots.extend(serve(&server).into_iter().map(|(slot, _)| slot));
    }
    assert_eq!(slots.len(), SLOTS as usize, "all slots were used");
    server.end();
    check_complete(&Recording::read(&session.file("p.ggprof")));
}

fn check_complete(recording: &Recording) {
    assert_eq!((recording.lost(), recording.damage.len()), (0, 0));
    assert_eq!(recording.header.command, "llama-server");
    let completed = recording.completed_runs().count() as u64;
    assert_eq!(completed, recording.header.graph_runs);
    // Eight clients on four slots: a token each for several of them in one graph.
    assert!(completed > 40, "{completed}");
    for split in recording.splits.values() {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
    for (run, end) in recording.completed_runs() {
        assert_eq!(recording.splits_of(run.begin.run).count(), end.splits as usize);
        assert!(run.begin.scheduler != 0 && run.begin.os_thread != 0);
    }
}

#[test]
fn answers_are_the_same_with_and_without() {
    let model = Model::TINY.file("tiny").unwrap();
    // One slot and one client at a time: batches, and with them roundings, are the same.
    let ask = |server: &LlamaServer| -> Vec<String> {
        (0..3).map(|n| server.complete(&format!("request {n}"), 16).unwrap().text).collect()
    };
    let Some((command, port)) = llama_server::command(&model, 1) else { return };
    let alone = LlamaServer::start(command, port);
    let expected = ask(&alone);
    alone.end();
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let Some((command, port)) = llama_server::command(&model, 1) else { return };
    let options = ["--max-size", "8MB", "-o", "p.ggprof"];
    let recorded = LlamaServer::start(session.recorded(&options, &command), port);
    let text = |answers: Vec<String>| -> Vec<String> {
        answers.iter().map(|a| a.split("\",\"").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(text(ask(&recorded)), text(expected));
    recorded.end();
}

#[test]
fn of_a_launcher_and_its_runners_the_runners_are_recorded() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let mut launcher = Command::new(built::host_program("starts_runners.c"));
    launcher.arg(built::workload()).arg(libraries);
    let mut run = session.recorded(&["-o", "p.ggprof", "--max-size", "4MiB"], &launcher);
    let ran = run.output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let files = names_in(&session.file(""));
    assert_eq!(files.len(), 2, "one for each runner, none for the launcher: {files:?}");
    for file in files {
        let recording = Recording::read(&session.file(&file));
        assert_eq!(recording.header.command, "ggprof-workload");
        assert!(recording.completed_runs().count() >= 20, "{file}");
    }
}

#[test]
fn the_runner_is_the_one_to_control() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let line = format!(
        "'{}' '{}' --threads 1 --embd 64 --graphs 100000000 & runner=$!; \
         trap 'kill $runner; wait $runner' TERM; wait $runner",
        built::workload().display(),
        libraries.display()
    );
    let mut launcher = Command::new("sh");
    launcher.args(["-c", &line]);
    let running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &launcher));
    let [pid] = session.wait_for(1)[..] else { panic!("there is one runner") };
    let pid = &pid.to_string();
    session.ctl_well(&["stop", pid]);
    let status = session.ctl_well(&["status", pid]);
    assert!(status.contains("ggprof-workload  stopped"), "{status}");
    running.end();
}
