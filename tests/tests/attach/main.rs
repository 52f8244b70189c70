//! Programs that were started without ggprof, and that it attaches to while they compute.

mod again;
mod ends;
mod meanwhile;
mod refused;
mod threads;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::recording::{Recording, Split};
use ggprof_e2e::{built, debian_sid, published_ggml, source_ggml};
use ggprof_spool::layout::{Covered, CoveredHow, CoveredWhy, LossCounter};
use tempfile::TempDir;

/// `ggprof attach` to a process, with these options.
fn attach(session: &Session, pid: u32, options: &[&str]) -> Output {
    attach_with(None, session, pid, options)
}

/// With this agent.
fn attach_with(agent: Option<&Path>, session: &Session, pid: u32, options: &[&str]) -> Output {
    let pid = pid.to_string();
    let words = [&["attach", pid.as_str(), "--no-sensors"], options].concat();
    let mut ggprof = session.ggprof(&words);
    ggprof.envs(agent.map(|agent| ("GGPROF_AGENT", agent)));
    ggprof.output().expect("ggprof starts")
}

/// How often something is tried: more often by hand.
fn times(variable: &str, by_default: usize) -> usize {
    std::env::var(variable).map_or(by_default, |times| times.parse().expect("a number"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
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
    let whole: Vec<&Split> = recording.splits.values().filter(|it| it.end.is_some()).collect();
    assert!(recording.completed_runs().count() == 0 || !whole.is_empty(), "runs without splits");
    for split in whole {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
}

#[test]
fn a_server_is_recorded_from_the_attach_on() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((command, port)) = llama_server::command(&model, 1) else { return };
    let (_directory, session) = Session::in_new_place();
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
    let (_directory, session) = Session::in_new_place();
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
    assert_eq!(how_ops_are_seen(&recording), Some(CoveredHow::InlineHook as u8));
}

/// A shared ggml whose calls of its own functions use no slots. Its graphs are seen as soon as the agent
/// is there, and their ops only when its code is changed: none is recorded before that.
#[test]
fn recording_begins_when_code_is_changed() {
    let Some(ggml) = source_ggml::with_symbolic_ops() else { return };
    for threads in ["1", "2"] {
        let (_directory, session) = Session::in_new_place();
        let program = computing_with(&ggml, threads);
        let attached = begun_when_loaded(&session, program.id());
        session.wait_for_one(&attached);
        let (code, words) = attached.end();
        assert_eq!(code, Some(0), "{words}");
        assert_eq!(program.told_to_end().status.code(), Some(0));
        let recording = Recording::read(&session.file("p.ggprof"));
        assert_eq!(how_ops_are_seen(&recording), Some(CoveredHow::InlineHook as u8));
        assert!(recording.completed_runs().count() > 0);
        check_every_node(&recording);
    }
}

/// No call names the backend that computes: the scheduler tells its backends.
#[test]
fn backends_are_found_where_a_compiler_put_calls_in_line() {
    let program = source_ggml::with_schedulers_in_line("computes_until_told.c");
    let Some(program) = program else { return };
    let (_directory, session) = Session::in_new_place();
    let mut command = Command::new(program);
    command.arg("1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let program = Ready(command.spawn().expect("it starts"));
    let attached = begun_when_loaded(&session, program.id());
    session.wait_for_one(&attached);
    let (code, words) = attached.end();
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(program.told_to_end().status.code(), Some(0));
    let recording = Recording::read(&session.file("p.ggprof"));
    assert_eq!(how_ops_are_seen(&recording), Some(CoveredHow::GotSlot as u8));
    assert!(recording.completed_runs().count() > 0);
    check_every_node(&recording);
}

/// One of its threads cannot be stopped, so code is not changed: ops are seen in the next best way, and
/// the recording says why.
#[test]
fn where_code_cannot_be_changed_the_next_tier_is_used() {
    let Some(ggml) = source_ggml::with_symbolic_ops() else { return };
    let (_directory, session) = Session::in_new_place();
    let mut command = computing_command(&ggml, "1");
    command.env("LD_PRELOAD", built::host_library("has_a_debugged_thread.c"));
    let program = Ready(command.spawn().expect("it starts"));
    let pid = program.id();
    let said = loop {
        let output = attach(&session, pid, &["--duration", "200ms", "-o", "p.ggprof"]);
        let said = said(&output);
        // The thread that cannot be stopped may be the first that is tried.
        let is_unlucky = said.contains("of the program is being debugged by process");
        if output.status.success() {
            break said;
        }
        assert!(is_unlucky || is_too_early(&said), "{said}");
    };
    assert!(said.contains("the program's code could not be changed: thread"), "{said}");
    assert_eq!(program.told_to_end().status.code(), Some(0));
    let recording = Recording::read(&session.file("p.ggprof"));
    assert_eq!(how_ops_are_seen(&recording), Some(CoveredHow::AbortCallback as u8));
    let ops = recording.coverage.iter().rfind(|it| it.what == Covered::Ops as u16);
    assert_eq!(ops.map(|it| it.why), Some(CoveredWhy::EntryRefused as u32));
    assert!(recording.completed_runs().count() > 0);
    check_every_node(&recording);
}

/// As soon as there is a recording, before code is changed or soon after. The next attach makes what is
/// missing.
#[test]
fn a_killed_attach_leaves_no_graph_without_its_ops() {
    let Some(ggml) = source_ggml::with_symbolic_ops() else { return };
    for _ in 0..times("GGPROF_KILLS", 4) {
        let (_directory, session) = Session::in_new_place();
        let program = computing_with(&ggml, "1");
        let left = killed_once_there_is_a_recording(&session, program.id());
        // The thread that was asked goes on by itself after half a second, and computes.
        std::thread::sleep(Duration::from_millis(800));
        attached_when_it_computes(&session, program.id());
        assert_eq!(program.told_to_end().status.code(), Some(0));
        check_every_node(&Recording::read(&left));
        let recording = Recording::read(&session.file("p.ggprof"));
        assert_eq!(how_ops_are_seen(&recording), Some(CoveredHow::InlineHook as u8));
        assert!(recording.completed_runs().count() > 0);
        check_every_node(&recording);
    }
}

/// The recording of an attach that was killed.
fn killed_once_there_is_a_recording(session: &Session, pid: u32) -> PathBuf {
    let words = ["attach", &pid.to_string(), "--no-sensors"];
    loop {
        let mut killed = session.ggprof(&words).stderr(Stdio::null()).spawn().expect("it starts");
        while session.spools().is_empty() && matches!(killed.try_wait(), Ok(None)) {}
        let _ = killed.kill();
        let _ = killed.wait();
        // Otherwise the program had not come to ggml.
        if let Some(left) = session.spools().pop() {
            return left;
        }
    }
}

/// An attach that records into p.ggprof; the program may not have come to ggml at first.
fn begun_when_loaded(session: &Session, pid: u32) -> Running {
    let pid = pid.to_string();
    loop {
        let words = ["attach", &pid, "--no-sensors", "-o", "p.ggprof"];
        let mut attached = Running::start(&mut hearing_signals(&session.ggprof(&words)));
        let line = attached.first_line();
        if line.contains("One thread stood for") {
            return attached;
        }
        assert!(is_too_early(&line), "{line}");
        attached.end();
    }
}

/// Also where the tests were started so that programs do not, as `nohup` does.
fn hearing_signals(ggprof: &Command) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(ggprof.get_program()).args(ggprof.get_args());
    for (name, value) in ggprof.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    ggprof.get_current_dir().inspect(|directory| _ = command.current_dir(directory));
    command
}

fn how_ops_are_seen(recording: &Recording) -> Option<u8> {
    let ops = recording.coverage.iter().rfind(|it| it.what == Covered::Ops as u16);
    ops.map(|it| it.how)
}

/// A program that computes with a shared ggml until it is told to end.
fn computing_with(ggml: &Path, threads: &str) -> Ready {
    Ready(computing_command(ggml, threads).spawn().expect("it starts"))
}

fn computing_command(ggml: &Path, threads: &str) -> Command {
    let mut command = Command::new(built::workload());
    command.arg(ggml).args(["--until-told", "--layers", "1", "--threads", threads]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The rest of a graph that was begun before is not recorded, and is no loss.
#[test]
fn recording_begins_with_the_next_graph() {
    let Some(program) = source_ggml::linked_into("waits_inside_op.c") else { return };
    let (_directory, session) = Session::in_new_place();
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

/// Attaches while the program is in its first graph, with an agent that fails at a step (0: at none); what
/// the program and the attach did, and the steps that were taken until the program went on.
fn attached_with_fault(program: &Path, number: usize) -> (Option<i32>, Output, Session, usize) {
    let session = Session::new(&TempDir::new().expect("a directory").keep());
    let log = session.file("steps");
    let mut program = Command::new(program);
    program.env("GGPROF_FAULT_AT", number.to_string()).env("GGPROF_FAULT_LOG", &log);
    let mut program = ready(&mut program);
    let words = ["attach", &program.id().to_string(), "--no-sensors", "-o", "p.ggprof"];
    let mut attach = session.ggprof(&words);
    attach.env("GGPROF_AGENT", built::checked_agent());
    attach.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut attach = attach.spawn().expect("ggprof starts");
    let mut line = String::new();
    let mut words = BufReader::new(attach.stderr.take().expect("a pipe"));
    words.read_line(&mut line).expect("it says something");
    let steps = std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    for _ in 0..2 {
        go_on(&mut program);
        wait_until_ready(&mut program);
    }
    go_on(&mut program);
    let code = program.wait().expect("it ends").code();
    let mut output = attach.wait_with_output().expect("it ends with the program");
    output.stderr = line.into_bytes();
    std::io::Read::read_to_end(&mut words, &mut output.stderr).expect("a pipe");
    (code, output, session, steps)
}

/// The program goes on as it would have, and is recorded, or `ggprof attach` says why not.
#[test]
fn every_step_of_an_attach_may_fail() {
    let Some(program) = source_ggml::linked_into("waits_inside_op.c") else { return };
    let (code, output, session, steps) = attached_with_fault(&program, 0);
    assert_eq!((code, output.status.code()), (Some(0), Some(0)), "{}", said(&output));
    let runs = Recording::read(&session.file("p.ggprof")).completed_runs().count();
    assert!(steps > 5 && runs > 0, "{steps} steps, {runs} runs");
    for number in 1..=steps {
        let (code, output, session, _) = attached_with_fault(&program, number);
        let said = said(&output);
        assert_eq!(code, Some(0), "step {number}: {said}");
        let file = session.file("p.ggprof");
        if file.exists() {
            let recording = Recording::read(&file);
            assert_eq!(
                recording.header.losses[LossCounter::Fault as usize],
                1,
                "step {number}: {said}"
            );
            assert!(recording.damage.is_empty(), "step {number}");
        } else {
            assert!(said.contains("internal fault"), "step {number}: {said}");
        }
    }
}

fn go_on(program: &mut Child) {
    program.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
}

/// A program that is ended with the test, however that ends: some compute until somebody writes to them.
struct Ready(Child);

impl Ready {
    /// Lets its input end, and waits for what it has to say.
    fn told_to_end(mut self) -> Output {
        drop(self.stdin.take());
        let mut stdout = Vec::new();
        self.stdout.take().expect("a pipe").read_to_end(&mut stdout).expect("it can be read");
        let status = self.wait().expect("it ends");
        Output { status, stdout, stderr: Vec::new() }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Deref for Ready {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Ready {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

/// A program that waits for a line, and has said that it is ready.
fn ready(command: &mut Command) -> Ready {
    let program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut program = Ready(program);
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
    let (_directory, session) = Session::in_new_place();
    let mut program = ready(Command::new(program).arg("errors, too"));
    let output = attach(&session, program.id(), &["--duration", "20ms"]);
    // It computes no graph, so there is nothing to report.
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("computed nothing with ggml"), "{}", said(&output));
    program.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    assert_eq!(program.wait().expect("it ends").code(), Some(0), "a register has changed");
}

/// As after an update.
#[test]
fn the_file_of_a_program_may_be_gone() {
    let Some(program) = source_ggml::linked_into("keeps_registers.c") else { return };
    let (directory, session) = Session::in_new_place();
    let file = directory.path().join("updated");
    std::fs::copy(program, &file).expect("it can be copied");
    let mut program = ready(&mut Command::new(&file));
    std::fs::remove_file(file).expect("it is ours");
    let output = attach(&session, program.id(), &["--duration", "20ms"]);
    assert!(said(&output).contains("computed nothing with ggml"), "{}", said(&output));
    go_on(&mut program);
    assert_eq!(program.wait().expect("it ends").code(), Some(0));
}

/// At any moment of an attach, the program can do without it. `GGPROF_KILLS` makes this long.
#[test]
fn a_killed_attach_leaves_the_program_as_it_was() {
    let Some(program) = source_ggml::linked_into("keeps_registers.c") else { return };
    if !std::arch::is_x86_feature_detected!("avx") {
        return eprintln!("not tested: this processor has no AVX");
    }
    for round in 0..times("GGPROF_KILLS", 6) {
        let (_directory, session) = Session::in_new_place();
        let mut program = ready(&mut Command::new(&program));
        let words = ["attach", &program.id().to_string(), "--no-sensors"];
        let mut killed = session.ggprof(&words).stderr(Stdio::null()).spawn().expect("it starts");
        // On a busy machine, all of it may happen between two looks.
        let started = Instant::now();
        while !is_traced(program.id()) && started.elapsed() < Duration::from_secs(1) {}
        // Loading the agent, asking it and changing code take some ten milliseconds.
        std::thread::sleep(Duration::from_micros(round as u64 * 7919 % 40_000));
        killed.kill().expect("it is ours");
        let _ = killed.wait();
        // Its recording may have begun, and nobody else ends it.
        let output = attach(&session, program.id(), &["--duration", "20ms"]);
        assert!(said(&output).contains("computed nothing with ggml"), "{}", said(&output));
        go_on(&mut program);
        assert_eq!(program.wait().expect("it ends").code(), Some(0), "a register has changed");
    }
}

/// Whether any of its threads is in the hands of another process.
fn is_traced(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let statuses = threads.map(|thread| std::fs::read_to_string(thread.path().join("status")));
    statuses.flatten().any(|status| !status.contains("TracerPid:\t0\n"))
}

/// Programs with a shared ggml and one linked in, with one to four threads, do the same as without.
/// `GGPROF_ATTACHES` makes this long, and prints for how long threads stood.
#[test]
fn what_is_attached_to_does_the_same() {
    let Some(linked_in) = source_ggml::linked_into("computes_until_told.c") else { return };
    let Some(shared) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let (mut stood, mut plain) = (Vec::new(), BTreeMap::new());
    for round in 0..times("GGPROF_ATTACHES", 2) {
        let mut command = computing(round, &shared, &linked_in);
        let plain = plain.entry(format!("{command:?}"));
        let plain = plain
            .or_insert_with(|| results(command.stdin(Stdio::null()).output().expect("it starts")));
        let (_directory, session) = Session::in_new_place();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = Ready(command.spawn().expect("it starts"));
        stood.push(attached_when_it_computes(&session, program.id()));
        let found = results(program.told_to_end());
        assert_eq!(found, *plain, "{command:?}");
    }
    stood.sort_by(f64::total_cmp);
    let (count, median) = (stood.len(), stood[stood.len() / 2]);
    println!("attached {count} times; one thread stood for {median} ms (median), {stood:?}");
}

/// Computes until it is told to end: threads that are more than the processors wait for each other for
/// long, so no number of graphs takes a reasonable time on every machine. Every second one has a shared
/// ggml, and two after another as many threads.
fn computing(round: usize, shared: &Path, linked_in: &Path) -> Command {
    let threads = (round / 2 % 4 + 1).to_string();
    let mut command;
    if round.is_multiple_of(2) {
        command = Command::new(built::workload());
        command.arg(shared).args(["--until-told", "--result", "--layers", "1"]);
        command.args(["--threads", &threads]);
    } else {
        command = Command::new(linked_in);
        command.arg(threads);
    }
    command.stderr(Stdio::null());
    command
}

/// How a program ended and what it computed; how much that was, and how long it took, differ.
fn results(output: Output) -> (Option<i32>, Vec<String>) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| !line.contains("_ns="));
    (output.status.code(), lines.map(str::to_owned).collect())
}

/// Attaches once the program has loaded ggml; for how many milliseconds a thread stood.
fn attached_when_it_computes(session: &Session, pid: u32) -> f64 {
    loop {
        let output = attach(session, pid, &["--duration", "50ms", "-o", "p.ggprof"]);
        let said = said(&output);
        if let Some(stood) = milliseconds(&said) {
            return stood;
        }
        assert!(is_too_early(&said), "{said}");
    }
}

fn is_too_early(said: &str) -> bool {
    said.contains("has not loaded ggml") || said.contains("Try again")
}

fn milliseconds(said: &str) -> Option<f64> {
    said.split_once("One thread stood for ")?.1.split(' ').next()?.parse().ok()
}

/// What was begun ends with the attach: the program is not told of it when it computes later.
#[test]
fn an_idle_server_is_left_as_it_was() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((mut command, port)) = llama_server::command(&model, 1) else { return };
    let (directory, session) = Session::in_new_place();
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
fn a_recorded_program_is_left_alone() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some(mut bench) = debian_sid::command("llama-bench", &["cpu"]) else { return };
    bench.args(["-t", "1", "-p", "16", "-n", "16", "-r", "100000", "-m"]).arg(model);
    let (_directory, session) = Session::in_new_place();
    let running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &bench));
    let pid = session.wait_for_one(&running);
    let output = attach(&session, pid, &["--duration", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("is being recorded already"), "{}", said(&output));
    running.end();
    check_every_node(&Recording::read(&session.file("p.ggprof")));
}
