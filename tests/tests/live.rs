//! Programs that are watched while they run: `ggprof top`, metrics, snapshots when something happens.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ggprof_e2e::controlled::{Running, Session, endless};
use ggprof_e2e::debian_sid;
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::published_ggml;
use serde_json::Value;
use tempfile::TempDir;

const CLIENTS: u32 = 2;
/// Of each request; the first one comes out of the prompt.
const TOKENS: u32 = 24;
const FIRST_TOKENS: &str = "gen_ai_server_time_to_first_token_seconds_count";

/// Requests until it is over; `answered` counts them.
fn ask(server: &LlamaServer, is_over: &AtomicBool, answered: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        server.complete("once upon a time", TOKENS).expect("every request is answered");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// `top` of what a launcher started, whose lines are read one by one.
struct Top {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Top {
    /// There may be other sessions, so the launcher is named.
    fn start(session: &Session, launcher: u32, options: &[&str]) -> Top {
        let launcher = launcher.to_string();
        let mut command = session.ggprof(&[&["top", &launcher, "--json"], options].concat());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Top { process, lines }
    }

    fn line(&mut self) -> Value {
        let line = self.lines.next().expect("another line").unwrap();
        serde_json::from_str(&line).expect("a line of JSON")
    }

    /// Lines until one of a time in which nothing was computed. Lines wait to be read, and what they are about
    /// was before.
    fn lines_until_idle(&mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let is_idle = line["graph_runs"] == 0 && line["requests"] == 0;
            lines.push(line);
            if is_idle {
                return lines;
            }
            assert!(lines.len() < 120, "it goes on: {lines:?}");
        }
    }

    /// After the last line.
    fn ended(mut self) {
        assert!(self.lines.next().is_none());
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn number(frame: &Value, key: &str) -> f64 {
    frame[key].as_f64().unwrap_or_else(|| panic!("{key} in {frame}"))
}

/// The tokens that a line is about, at least and at most: a step that began before its time makes that
/// longer, by no more than a token waited for.
fn generated(frame: &Value) -> [f64; 2] {
    let seconds = number(frame, "seconds");
    let longest = number(frame, "longest_gap_ns").max(number(frame, "longest_run_ns")) / 1e9;
    let least = number(frame, "generated_tokens_per_second") * seconds;
    [least, least * (seconds + longest) / seconds]
}

#[test]
fn top_counts_the_tokens_that_clients_get() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((mut command, port)) = llama_server::command(&model, CLIENTS) else { return };
    // Besides the trial of the memory.
    command.arg("--warmup");
    let (_directory, session) = Session::in_new_place();
    let server = LlamaServer::start(session.recorded(&["-o", "p.ggprof"], &command), port);
    // Counted from here on.
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    server.complete("once upon a time", TOKENS).expect("an answer");
    answered.fetch_add(1, Ordering::Relaxed);
    session.wait_for(1);
    let launcher = server.id().to_string();
    check_metrics(&session.ctl_well(&["metrics", &launcher]));
    let mut top = Top::start(&session, server.id(), &[]);
    let first = top.line();
    assert_eq!(first["recording"], true, "{first}");
    // All that is asked now lies behind the first look.
    let before = answered.load(Ordering::Relaxed);
    let mut frames = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| ask(&server, &is_over, &answered));
        }
        let frames: Vec<Value> = (0..4).map(|_| top.line()).collect();
        is_over.store(true, Ordering::Relaxed);
        frames
    });
    let under_way = frames[3].clone();
    frames.extend(top.lines_until_idle());
    let [least, most] = [0, 1].map(|at| frames.iter().map(|it| generated(it)[at]).sum::<f64>());
    let all = answered.load(Ordering::Relaxed);
    let expected = ((all - before) * u64::from(TOKENS - 1)) as f64;
    let is_it = least <= expected + 0.5 && expected <= most + 0.5;
    assert!(is_it, "{least} to {most} of {expected}: {frames:?}");
    let last = &under_way;
    assert!((1.0..=f64::from(CLIENTS)).contains(&number(last, "requests")), "{last}");
    assert!(number(&last["first_token_ns"], "p50") > 0.0, "{last}");
    assert!(number(&last["between_tokens_ns"], "p95") > 0.0, "{last}");
    assert!(number(last, "depth") >= 1.0, "{last}");
    let busy = number(&last["backends"][0], "busy");
    assert!(busy > 0.0 && busy <= 1.0, "{last}");
    assert!(last["ops"].as_array().unwrap().iter().any(|op| op["op"] == "MUL_MAT"), "{last}");

    // All that was asked of it, and not the server's own trials.
    let metrics = session.ctl_well(&["metrics", &launcher]);
    check_metrics(&metrics);
    check_all(sample(&metrics, FIRST_TOKENS), all, 1);
    let name = "gen_ai_server_time_per_output_token_seconds_count";
    check_all(sample(&metrics, name), all, TOKENS - 1);
    let generated = sample(&metrics, "ggprof_tokens_total{kind=\"generation\"}");
    check_all(generated, all, TOKENS - 1);
    server.end();
}

/// A device goes on computing when the call that asked for it has returned.
#[test]
fn first_tokens_of_a_device_are_those_of_the_report() {
    let exactly = |live: f64, reported: f64| (live - reported).abs() <= 1e-3 * reported;
    check_first_tokens("off", exactly);
    // The report knows when the device was ready, which is before the program knows it.
    check_first_tokens("sample", |live, reported| live >= reported || exactly(live, reported));
}

/// What is said of first tokens while the program runs agrees with the report of the same recording.
fn check_first_tokens(level: &str, agrees: impl Fn(f64, f64) -> bool) {
    let model = Model::TINY.file("tiny").unwrap();
    let Some(device) = published_ggml::vulkan_device() else { return };
    let with = ["cpu", "vulkan"];
    let Some((mut command, port)) = llama_server::command_with(&model, 1, &with) else { return };
    // Prompts of several parts.
    command.args(["-ngl", "99", "-ub", "16", "-b", "16"]);
    let (_directory, session) = Session::in_new_place();
    let mut run = session.recorded(&["--vulkan", level, "-o", "p.ggprof"], &command);
    run.env("VK_ICD_FILENAMES", device).env("GGML_VK_VISIBLE_DEVICES", "0");
    let server = LlamaServer::start(run, port);
    let launcher = server.id().to_string();
    server.complete("once", 4).expect("an answer");
    session.wait_for(1);
    session.ctl_well(&["metrics", &launcher]);
    let mut top = Top::start(&session, server.id(), &[]);
    top.line();
    for prompt in ["once upon a time", &"there was a long one ".repeat(8), "and a short one"] {
        server.complete(prompt, 6).expect("an answer");
    }
    let idle = top.lines_until_idle();
    let last = idle.last().expect("a line");
    let metrics = session.ctl_well(&["metrics", &launcher]);
    drop(top);
    server.end();

    let mut report = session.ggprof(&["report", "p.ggprof", "--by", "request"]);
    let report = report.args(["--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).expect("a report");
    let requests = report["requests"].as_array().expect("requests").iter();
    let requests = requests.filter(|it| it["warm_up"] != "yes");
    let reported: Vec<f64> = requests.map(|it| number(it, "first_token_ns")).collect();
    assert_eq!(sample(&metrics, FIRST_TOKENS), reported.len() as f64, "{reported:?}");
    let sum = sample(&metrics, "gen_ai_server_time_to_first_token_seconds_sum") * 1e9;
    let longest = number(&last["first_token_ns"], "p95");
    for (what, live, expected) in [
        ("sum", sum, reported.iter().sum()),
        ("longest", longest, reported.iter().copied().fold(0.0, f64::max)),
    ] {
        assert!(
            agrees(live, expected),
            "{level}: {what} {live}, {reported:?} in the report; {last}"
        );
    }
}

#[track_caller]
fn check_all(found: f64, requests: u64, of_each: u32) {
    assert_eq!(found as u64, requests * u64::from(of_each), "of {requests} requests");
}

fn sample(metrics: &str, name: &str) -> f64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
}

/// By Prometheus's own tool, and by what every line has to look like.
fn check_metrics(text: &str) {
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect(line);
        assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
        let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
        assert!(name.chars().all(is_name) && labels.ends_with('}'), "{line}");
        let family = ["_bucket", "_sum", "_count", "_total"];
        let family = family.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(text.contains(&format!("# TYPE {family} ")), "{line}");
    }
    let Some(mut tool) = debian_sid::command("promtool", &["cpu"]) else { return };
    let tool = tool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().expect("it starts");
    tool.stdin.take().unwrap().write_all(in_prometheus_format(text).as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{text}");
    check_import(text);
}

/// As OpenMetrics, Prometheus's tool only imports what it reads, with the times at which it was so.
fn check_import(text: &str) {
    let Some(mut tool) = debian_sid::command("promtool", &["cpu"]) else { return };
    let directory = TempDir::new().unwrap();
    let samples = text.lines().map(|line| match line.starts_with('#') {
        true => format!("{line}\n"),
        false => format!("{line} 1790000000\n"),
    });
    let file = directory.path().join("metrics");
    std::fs::write(&file, samples.collect::<String>()).unwrap();
    tool.args(["tsdb", "create-blocks-from", "openmetrics"]).arg(file).arg(directory.path());
    let output = tool.output().expect("it starts");
    assert!(output.status.success(), "{output:?}\n{text}");
}

/// The check reads the older format, which calls a counter by the name of its samples.
fn in_prometheus_format(text: &str) -> String {
    let counters: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let (mark, what, name) = (words.next()?, words.next()?, words.next()?);
        let is_counters = mark == "#" && counters.contains(&name);
        is_counters.then(|| format!("# {what} {name}_total {}", words.next().unwrap_or_default()))
    };
    text.lines().map(|it| line(it).unwrap_or_else(|| it.to_owned()) + "\n").collect()
}

#[test]
fn a_program_without_tokens_is_watched_too() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    // Blocks are used again all the time.
    let options = ["--max-size", "8MiB", "--metrics-file", "m.txt", "-o", "p.ggprof"];
    let running = Running::start(&mut session.recorded(&options, &program));
    session.wait_for(1);
    let mut top = Top::start(&session, running.id(), &["--count", "3"]);
    // At the first look the program may have just begun.
    top.line();
    for frame in [top.line(), top.line()] {
        let frame = &frame;
        assert!(frame["generated_tokens_per_second"].is_null(), "{frame}");
        assert!(number(frame, "graph_runs") > 0.0, "{frame}");
        let backend = &frame["backends"][0];
        assert!(number(backend, "busy") > 0.1, "{frame}");
        let causes = ["other_backends", "between_ops", "outside_graphs"];
        let causes = causes.map(|cause| number(&backend["idle_while"], cause));
        assert!(causes.iter().all(|share| (0.0..=1.0).contains(share)), "{frame}");
        assert_eq!(causes[0], 0.0, "there is one backend: {frame}");
        let idle: f64 = causes.iter().sum();
        assert!((number(backend, "idle") - idle).abs() < 0.1, "{frame}");
    }
    top.ended();
    let written = std::fs::read_to_string(session.file("m.txt")).unwrap();
    check_metrics(&written);
    assert!(sample(&written, "ggprof_graph_runs_total") > 0.0);
    assert!(sample(&written, "ggprof_busy_seconds_total{backend=\"CPU\"}") > 0.0);
    let (code, said) = running.end();
    assert_eq!(code, Some(143), "{said}");
}

/// As with `ggprof top --json | head -1`.
#[test]
fn top_ends_when_nobody_reads_what_it_says() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    let running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &program));
    let pid = session.wait_for(1)[0];
    let mut top = session.ggprof(&["top", &pid.to_string(), "--json"]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(top.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let frame: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(frame["pid"].as_u64(), Some(u64::from(pid)));
    let closed = Instant::now();
    while top.try_wait().unwrap().is_none() {
        assert!(closed.elapsed() < Duration::from_secs(60), "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = top.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{output:?}");
    let (code, said) = running.end();
    assert_eq!(code, Some(143), "{said}");
}

/// A program that is killed cannot say that it ends, and its launcher may be killed with it.
#[test]
fn top_ends_with_a_program_that_is_killed() {
    let Some(program) = endless() else { return };
    for with_launcher in [false, true] {
        let (_directory, session) = Session::in_new_place();
        let mut recorded = session.recorded(&["-o", "p.ggprof"], &program);
        let mut launcher = recorded.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = session.wait_for(1)[0];
        let mut top = session.ggprof(&["top", &pid.to_string(), "--json"]);
        let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
        lines.next().expect("a first look").unwrap();
        let kill = |pid: u32| Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        if with_launcher {
            launcher.kill().unwrap();
        }
        kill(pid).unwrap();
        // Its last words.
        lines.for_each(drop);
        assert_eq!(top.wait().unwrap().code(), Some(0));
        launcher.wait().unwrap();
    }
}

/// The program goes on, and is not said to be gone.
#[test]
fn top_says_that_the_disk_is_full() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    let run = session.recorded(&[], &program);
    // In units of 512 bytes. No disk would be full for this program alone.
    let line = "ulimit -f 14000; exec \"$@\"";
    let mut limited = Command::new("sh");
    limited.args(["-c", line, "sh"]).arg(run.get_program()).args(run.get_args());
    limited.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let running = Running::start(&mut limited);
    let pid = &session.wait_for(1)[0].to_string();
    let started = Instant::now();
    while !session.ctl_well(&["status", pid]).contains("  gave-up  ") {
        assert!(started.elapsed() < Duration::from_secs(120), "it is never full");
        std::thread::sleep(Duration::from_millis(50));
    }
    let top = session.ggprof(&["top", pid, "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&top.stderr).into_owned();
    assert_eq!(top.status.code(), Some(0), "{said}");
    assert!(said.contains("the disk was full"), "{said}");
    assert_eq!(String::from_utf8_lossy(&top.stdout).lines().count(), 1);
    let again = session.ctl(&["start", pid]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("has given up"), "{again:?}");
    check_metrics(&session.ctl_well(&["metrics", pid]));
    let (code, said) = running.end();
    assert_eq!(code, Some(143), "{said}");
}

#[test]
fn a_pause_leaves_a_snapshot() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    // It is stopped in a graph run, or between two. On a busy machine it may stand for a second by itself.
    let when = ["--snapshot-when", "gap>3s", "--snapshot-when", "run>3s"];
    let options =
        [&["--max-size", "16MiB", "--snapshots", "1", "-o", "p.ggprof"], &when[..]].concat();
    let running = Running::start(&mut session.recorded(&options, &program));
    let pid = session.wait_for(1)[0].to_string();
    std::thread::sleep(Duration::from_millis(1500));
    let snapshot = session.file("p.snapshot-1.ggprof");
    assert!(!snapshot.exists(), "nothing happened yet");
    let send = |signal: &str| Command::new("kill").args([signal, &pid]).status().unwrap();
    send("-STOP");
    std::thread::sleep(Duration::from_millis(4500));
    send("-CONT");
    let paused = Instant::now();
    while !snapshot.exists() {
        assert!(paused.elapsed() < Duration::from_secs(60), "no snapshot");
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = session.ggprof(&["report", "p.snapshot-1.ggprof"]).output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    let (code, said) = running.end();
    assert_eq!(code, Some(143), "{said}");
    assert!(said.contains(">3s happened"), "{said}");
    assert!(!session.file("p.snapshot-2.ggprof").exists());
}

/// No model is as fast as was wanted here.
#[test]
fn slow_generation_leaves_a_snapshot() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((command, port)) = llama_server::command(&model, CLIENTS) else { return };
    let (_directory, session) = Session::in_new_place();
    let options = ["--snapshot-when", "tg<1000000", "--snapshots", "1", "-o", "p.ggprof"];
    let server = LlamaServer::start(session.recorded(&options, &command), port);
    let snapshot = session.file("p.snapshot-1.ggprof");
    let started = Instant::now();
    while !snapshot.exists() {
        server.complete("once upon a time", 200).expect("an answer");
        assert!(started.elapsed() < Duration::from_secs(120), "no snapshot");
    }
    let report = session.ggprof(&["report", "p.snapshot-1.ggprof"]).output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    server.end();
    assert!(!session.file("p.snapshot-2.ggprof").exists());
}
