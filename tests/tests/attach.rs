//! Programs that were started without ggprof, and that it attaches to while they compute.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::{debian_sid, source_ggml};
use ggprof_spool::layout::{Covered, CoveredHow};
use tempfile::TempDir;

/// `ggprof attach` to a process, with these options.
fn attach(session: &Session, pid: u32, options: &[&str]) -> Output {
    let pid = pid.to_string();
    let words = [&["attach", pid.as_str(), "--no-sensors"], options].concat();
    session.ggprof(&words).output().expect("ggprof starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn session() -> (TempDir, Session) {
    let directory = TempDir::new().expect("a directory");
    let session = Session::new(directory.path());
    (directory, session)
}

/// An attach that records from now on.
fn begun(attach: &mut Command) -> Running {
    let mut attached = Running::start(attach);
    let line = attached.first_line();
    assert!(line.contains("One thread stood for"), "{line}");
    attached
}

fn check_every_node(recording: &Recording) {
    assert_eq!((recording.lost(), recording.damage.len()), (0, 0));
    let whole = recording.splits.values().filter(|split| split.end.is_some());
    for split in whole {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
}

#[test]
fn a_server_is_recorded_from_the_attach_on() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((command, port)) = llama_server::command(&model, 1) else { return };
    let (_directory, session) = session();
    let server = LlamaServer::start(command, port);
    // What was generated; behind it comes how long that took.
    let ask = || {
        let answer = server.complete("the same prompt", 9).expect("it answers");
        answer.text.split("\"tokens\":").next().unwrap_or_default().to_owned()
    };
    let before = ask();
    let words = ["attach", &server.id().to_string(), "--no-sensors", "-o", "p.ggprof"];
    let attached = begun(&mut session.ggprof(&words));
    assert_eq!([ask(), ask()], [before.clone(), before.clone()]);
    let (code, words) = attached.end();
    assert_eq!(code, Some(0), "{words}");
    // Unobserved again, and as before.
    assert_eq!(ask(), before);
    // Once more, into a recording of its own, with the agent that is there.
    let words = ["attach", &server.id().to_string(), "--no-sensors", "-o", "again.ggprof"];
    let attached = begun(&mut session.ggprof(&words));
    assert_eq!(ask(), before);
    let (code, words) = attached.end();
    assert_eq!(code, Some(0), "{words}");
    server.end();
    let again = Recording::read(&session.file("again.ggprof"));
    check_every_node(&again);
    assert_eq!(again.completed_runs().count(), 9);
    let recording = Recording::read(&session.file("p.ggprof"));
    check_every_node(&recording);
    // A graph for each token of the two.
    assert_eq!(recording.completed_runs().count(), 18);
}

/// The program computes so many graphs; what it prints, and what was recorded meanwhile.
fn while_it_computes(program: &Path, threads: &str) -> (Output, Recording) {
    let (_directory, session) = session();
    let mut command = Command::new(program);
    command.args(["20000", threads]).stdout(Stdio::piped()).stderr(Stdio::null());
    let program = command.spawn().expect("the program starts");
    let output = loop {
        let output = attach(&session, program.id(), &["--duration", "200ms", "-o", "p.ggprof"]);
        // It may not have come to ggml yet.
        if output.status.success() || !said(&output).contains("Try again") {
            break output;
        }
    };
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let recording = Recording::read(&session.file("p.ggprof"));
    (program.wait_with_output().expect("it ends"), recording)
}

#[test]
fn code_is_changed_while_all_threads_stand() {
    let Some(program) = source_ggml::linked_into("ggml_linked_in.c") else { return };
    let plain = Command::new(&program).args(["20000", "1"]).output().expect("the program starts");
    let (output, recording) = while_it_computes(&program, "1");
    assert_eq!((output.status.code(), output.stdout), (plain.status.code(), plain.stdout));
    check_every_node(&recording);
    assert!(recording.completed_runs().count() > 0);
    let ops = recording.coverage.iter().find(|it| it.what == Covered::Ops as u16);
    assert_eq!(ops.map(|it| it.how), Some(CoveredHow::InlineHook as u8));
}

/// The rest of a graph that was begun before is not recorded, and is no loss.
#[test]
fn recording_begins_with_the_next_graph() {
    let Some(program) = source_ggml::linked_into("waits_inside_op.c") else { return };
    let (_directory, session) = session();
    let mut program = ready(&mut Command::new(program));
    let pid = program.id().to_string();
    let attach = |file| begun(&mut session.ggprof(&["attach", &pid, "--no-sensors", "-o", file]));
    let check = |attached: Running, file: &str| {
        let (code, words) = attached.end();
        assert_eq!(code, Some(0), "{words}");
        let recording = Recording::read(&session.file(file));
        check_every_node(&recording);
        assert_eq!(recording.completed_runs().count(), 2);
    };
    // In the middle of the first graph, and between the third and the fourth.
    let attached = attach("first.ggprof");
    go_on(&mut program);
    wait_until_ready(&mut program);
    check(attached, "first.ggprof");
    // In the middle of the fourth, which was begun while nothing was recorded.
    go_on(&mut program);
    wait_until_ready(&mut program);
    let attached = attach("second.ggprof");
    go_on(&mut program);
    assert_eq!(program.wait().expect("it ends").code(), Some(0));
    check(attached, "second.ggprof");
}

fn go_on(program: &mut Child) {
    program.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
}

/// A program that waits for a line, and has said that it is ready.
fn ready(command: &mut Command) -> Child {
    let mut program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_until_ready(&mut program);
    program
}

fn wait_until_ready(program: &mut Child) {
    let mut line = String::new();
    let out = program.stdout.as_mut().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("it says something");
    assert_eq!(line, "ready\n");
}

#[test]
fn a_thread_gets_back_every_register() {
    let Some(program) = source_ggml::linked_into("keeps_registers.c") else { return };
    if !std::arch::is_x86_feature_detected!("avx") {
        return eprintln!("not tested: this processor has no AVX");
    }
    let (_directory, session) = session();
    let mut program = ready(&mut Command::new(program));
    let output = attach(&session, program.id(), &["--duration", "20ms"]);
    // It computes no graph, so there is nothing to report.
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("computed nothing with ggml"), "{}", said(&output));
    program.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    assert_eq!(program.wait().expect("it ends").code(), Some(0), "a register has changed");
}

/// What was begun ends with the attach: the program is not told of it when it computes later.
#[test]
fn an_idle_server_is_left_as_it_was() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((mut command, port)) = llama_server::command(&model, 1) else { return };
    let (directory, session) = session();
    let log = directory.path().join("log");
    command.stderr(std::fs::File::create(&log).expect("it can be made"));
    let server = LlamaServer::start_logged(&mut command, port);
    let output = attach(&session, server.id(), &["--duration", "20ms"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    server.complete("now it computes", 3).expect("it answers");
    let again = begun(&mut session.ggprof(&[
        "attach",
        &server.id().to_string(),
        "--no-sensors",
        "-o",
        "p.ggprof",
    ]));
    server.complete("and again", 3).expect("it answers");
    let (code, words) = again.end();
    assert_eq!(code, Some(0), "{words}");
    server.end();
    assert_eq!(Recording::read(&session.file("p.ggprof")).completed_runs().count(), 3);
    let said = std::fs::read_to_string(log).expect("it can be read");
    assert!(!said.contains("ggprof"), "{said}");
}

#[test]
fn what_cannot_be_attached_to_is_said() {
    let (_directory, session) = session();
    let refused = |pid: u32, why: &str| {
        let output = attach(&session, pid, &["--duration", "1s"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
    };
    refused(u32::MAX >> 1, "there is no process");
    let mut sleeping = Command::new("sleep").arg("60").spawn().expect("it starts");
    refused(sleeping.id(), "has not loaded ggml");
    let stop = ["-STOP", &sleeping.id().to_string()].map(str::to_owned);
    let _ = Command::new("kill").args(stop).status();
    while !state_of(sleeping.id()).contains("T (stopped)") {}
    refused(sleeping.id(), "is stopped");
    let _ = sleeping.kill();
    while !state_of(sleeping.id()).contains("Z (zombie)") {}
    refused(sleeping.id(), "has ended");
    let _ = sleeping.wait();
}

fn state_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

#[test]
fn a_recorded_program_is_left_alone() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some(mut bench) = debian_sid::command("llama-bench", &["cpu"]) else { return };
    bench.args(["-t", "1", "-p", "16", "-n", "16", "-r", "100000", "-m"]).arg(model);
    let (_directory, session) = session();
    let running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &bench));
    let pids = session.wait_for(1);
    let output = attach(&session, pids[0], &["--duration", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("is being recorded already"), "{}", said(&output));
    running.end();
    check_every_node(&Recording::read(&session.file("p.ggprof")));
}
