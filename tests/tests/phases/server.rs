//! Against what llama-server measures of its requests.

use std::time::Duration;

use ggprof_e2e::controlled::Session;
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Pair, check, report, rows};

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
