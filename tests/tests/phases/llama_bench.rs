//! Against what llama-bench and its like measure.

use ggprof_e2e::debian_sid;
use ggprof_e2e::model::Model;
use serde_json::Value;
use tempfile::TempDir;

use crate::{Pair, check, recorded, report, rows};

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
