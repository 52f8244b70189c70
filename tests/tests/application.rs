//! A real application, unmodified: node-llama-cpp on published llama.cpp libraries.

use std::process::Command;

use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{built, published_ggml};
use serde_json::Value;
use tempfile::TempDir;

const TOKENS: u32 = 12;

/// The application's own output, and the profile of a run under `ggprof run`.
fn recorded(version: &str, name: &str, model: Model) -> Option<(String, Value)> {
    let model = model.file(name).unwrap();
    let generation =
        Generation { version, model: &model, tokens: TOKENS, threads: 1, vulkan_layers: None };
    let mut plain = match generation.command() {
        Ok(command) => command,
        Err(problem) => {
            let required = std::env::var_os("GGPROF_REQUIRE_GGML").is_some();
            assert!(!required, "node-llama-cpp {version} cannot be installed: {problem}");
            eprintln!("not tested: node-llama-cpp {version} cannot be installed: {problem}");
            return None;
        }
    };
    let expected = plain.output().unwrap();
    assert!(expected.status.success(), "{expected:?}");

    let directory = TempDir::new().unwrap();
    let profile = directory.path().join("p.json");
    let mut command = Command::new(built::ggprof());
    command.arg("run").arg("-o").arg(&profile).arg("--").arg("node").args(plain.get_args());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The same tokens with and without us.
    assert_eq!(output.stdout, expected.stdout);
    let text = String::from_utf8(output.stdout).unwrap();
    Some((text, serde_json::from_slice(&std::fs::read(profile).unwrap()).unwrap()))
}

/// What must hold for any model: every run has all its ops, and they explain its time.
fn check(profile: &Value) {
    let runs = profile["ggprof"]["graph_runs"].as_array().unwrap();
    let records = profile["records"].as_array().unwrap();
    // The prompt, and every token but the last, which is not computed with any more.
    assert!(runs.len() >= TOKENS as usize, "{} graph runs", runs.len());
    let mut explained = vec![0u64; runs.len()];
    let mut outputs = vec![0; runs.len()];
    for record in records {
        let run = record["graph_run"].as_u64().unwrap() as usize;
        explained[run] += record["duration_ns"].as_u64().unwrap();
        outputs[run] += u64::from(record["tensor_name"] == "result_output");
        assert!(record["ne"].as_array().unwrap().iter().all(|n| n.as_i64() > Some(0)), "{record}");
        assert!(!record["src_names"].as_array().unwrap().is_empty(), "{record}");
    }
    assert!(outputs.iter().all(|&count| count == 1), "{outputs:?}");
    // Over all runs: the time between ops is what is not explained.
    let wall: u64 =
        runs.iter().map(|run| run[2].as_u64().unwrap() - run[1].as_u64().unwrap()).sum();
    let explained: u64 = explained.iter().sum();
    assert!(explained <= wall, "{explained} ns of ops and waits in {wall} ns of graph runs");
    let share = explained as f64 / wall as f64;
    eprintln!("{:.1} % of the graphs' wall time explained", share * 100.0);
    assert!(profile["ggprof"]["losses"].as_array().unwrap().is_empty());
}

#[test]
fn every_version_generates_the_same_and_is_recorded() {
    for version in published_ggml::VERSIONS {
        let Some((_, profile)) = recorded(version, "tiny", Model::TINY) else { continue };
        check(&profile);
        let count = |op: &str| {
            let records = profile["records"].as_array().unwrap().iter();
            records.filter(|record| record["name"] == op).count()
        };
        let runs = profile["ggprof"]["graph_runs"].as_array().unwrap().len();
        // Seven products a layer and one for the output; more where attention is not one op.
        assert!(count("MUL_MAT") >= runs * (7 * 4 + 1), "{version}: {}", count("MUL_MAT"));
    }
}

#[test]
fn experts() {
    let version = published_ggml::NEWEST;
    let Some((_, profile)) = recorded(version, "tiny-experts", Model::TINY_EXPERTS) else { return };
    check(&profile);
    let records = profile["records"].as_array().unwrap();
    let runs = profile["ggprof"]["graph_runs"].as_array().unwrap().len();
    let experts = records.iter().filter(|record| record["name"] == "MUL_MAT_ID").count();
    assert_eq!(experts, runs * 3 * 4);
}

#[test]
fn the_summary_tells_of_the_model() {
    let Some((_, profile)) = recorded(published_ggml::NEWEST, "tiny", Model::TINY) else { return };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("p.json");
    std::fs::write(&file, profile.to_string()).unwrap();
    let mut report = Command::new(built::ggprof());
    report.arg("report").arg(&file).args(["--format", "json"]);
    let summary: Value = serde_json::from_slice(&report.output().unwrap().stdout).unwrap();
    let ggml = &summary["ggml"];
    // Its file, and what it says of itself.
    let llama = ggml["llama"].as_str().unwrap();
    let (file, version) = llama.split_once(' ').expect("a version");
    assert!(file.starts_with("libllama."), "{ggml}");
    assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{ggml}");
    assert!(ggml["variant"].as_str().unwrap().starts_with("libggml-cpu-"), "{ggml}");
    let (model, true_model) = (&summary["model"], Model::TINY);
    for (key, number) in [
        ("layers", true_model.layers),
        ("embedding", true_model.embedding),
        ("vocabulary", true_model.vocabulary),
    ] {
        assert_eq!(model[key], number, "{key}: {model}");
    }
    assert_eq!(model["quantisation"], "q4_0 100.0%", "{model}");
    assert_eq!((&model["cache_k"], &model["cache_v"]), (&"f16".into(), &"f16".into()), "{model}");
    assert_eq!(model["flash_attention"], "on", "{model}");
    assert_eq!(summary["ggml"]["threads"], 1, "{}", summary["ggml"]);
}
