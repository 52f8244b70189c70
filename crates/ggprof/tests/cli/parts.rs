//! Parts of a recording: `--from`, `--to`, `--phase` and `--request`, on a server that was recorded over
//! two midnights. Its first graph run is the program's hundredth.

use crate::place::Place;
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// 2026-11-15 23:59:50 UTC, and by the recording's clock.
const MIDNIGHT_IS_NEAR: (u64, u64) = (SECOND, 1_794_787_190 * SECOND);
/// When requests came, after the first.
const REQUESTS: [u64; 3] = [0, 15 * SECOND, 2 * 24 * 3600 * SECOND];

/// A batch of one sequence: when, for how long, its first position, tokens.
type Step = (u64, u64, u32, u32);

/// Each request has a prompt of 8 tokens in 20 ms, and ten tokens of 10 ms.
fn steps() -> Vec<Step> {
    let of_request = |at: u64| {
        let token =
            move |token: u32| (at + (20 + 10 * u64::from(token)) * MS, 10 * MS, 8 + token, 1);
        [(at, 20 * MS, 0, 8)].into_iter().chain((0..10).map(token))
    };
    REQUESTS.into_iter().flat_map(|at| of_request(MIDNIGHT_IS_NEAR.0 + at)).collect()
}

fn recording(steps: &[Step]) -> String {
    let record = |(run, &(start, duration, _, tokens)): (usize, &Step)| {
        json!({
            "type": 0, "name": "MUL_MAT", "backend_id": 0, "split_id": 0, "start_ns": start,
            "duration_ns": duration, "bytes": 64, "extra": null, "tensor_name": "result_output",
            "graph_run": run, "ne": [8, tokens, 1, 1], "out_type": 0, "n_src": 0, "ne_src": [],
            "nb_src": [], "type_src": [], "sub_op": -1,
        })
    };
    let batch = |(call, &(start, duration, first, tokens)): (usize, &Step)| {
        json!({
            "call": call + 1, "context": 1, "start_ns": start, "end_ns": start + duration,
            "function": "Decode", "tokens": tokens, "outputs": 1, "sequences": [{
                "sequence": 0, "positions": [first, first + tokens - 1], "tokens": tokens, "outputs": 1,
            }],
        })
    };
    let removed = |at: &u64| {
        let what = json!({"Removed": {"sequence": 0, "first": 0, "last": null}});
        json!({"context": 1, "at_ns": MIDNIGHT_IS_NEAR.0 + at - 1, "what": what})
    };
    let runs = steps.iter().map(|&(start, duration, ..)| json!([1, start, start + duration]));
    let records: Vec<Value> = steps.iter().enumerate().map(record).collect();
    json!({
        "version": 3, "profiler": "ggml", "records": records,
        "backends": [{"id": 0, "name": "CPU", "device": "CPU", "device_type": 0}],
        "ggprof": {
            "version": 1, "types": [], "graph_runs_inferred": false,
            "graph_runs": runs.collect::<Vec<_>>(),
            "graph_run_facts": (0..steps.len()).map(|at| json!([100 + at, at])).collect::<Vec<_>>(),
            "batches": steps.iter().enumerate().map(batch).collect::<Vec<_>>(),
            "context_changes": REQUESTS.iter().map(removed).collect::<Vec<_>>(),
            "thread_shares": [], "kernels": [], "device_work": [], "host_tasks": [], "coverage": [],
            "losses": [],
            "provenance": {
                "command": "llama-server", "pid": 1, "cpu": "x", "clock_error_ns": 1,
                "recorded_at_unix_ns": MIDNIGHT_IS_NEAR.1, "clock_anchors": [MIDNIGHT_IS_NEAR],
                "cut_short": false, "unfinished_runs": 0,
            },
        },
    })
    .to_string()
}

fn place() -> Place {
    let place = Place::new();
    place.file("p.json", recording(&steps()));
    place.file("first.json", recording(&steps()[..11]));
    place
}

/// What `report` says where the clock is that of Greenwich.
fn asked(place: &Place, words: &str) -> Result<Value, String> {
    asked_of(place, "p.json", words)
}

fn asked_of(place: &Place, file: &str, words: &str) -> Result<Value, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut command = place.command(&[&["report", file, "--format", "json"], &words[..]].concat());
    let output = command.env("TZ", "UTC").output().unwrap();
    match output.status.code() {
        Some(0) => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        _ => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn column<'a>(report: &'a Value, table: &str, column: &str) -> Vec<&'a Value> {
    report[table].as_array().unwrap().iter().map(|row| &row[column]).collect()
}

#[test]
fn moments_are_clock_times_dates_or_offsets() {
    let place = place();
    for (words, requests) in [
        ("", &[0, 1, 2][..]),
        ("--from 23:59:55", &[1, 2]),
        ("--to 00:00:00", &[0]),
        ("--to 00:00:10", &[0, 1]),
        // The first after --from.
        ("--from 00:00:10 --to 00:00:07", &[]),
        ("--from 23:59:40 --to 23:59:55", &[]),
        ("--from 2026-11-17T23:59:40 --to 23:59:55", &[2]),
        ("--from 00:00:01 --to 23:00", &[1]),
        ("--from 2026-11-16T00:00:01 --to 2026-11-16T00:01", &[1]),
        ("--from 2026-11-17", &[2]),
        ("--from 2026-11-15T23:59:59Z --to 2026-11-17T23:59:50.1Z", &[1, 2]),
        ("--from 10s --to 20s", &[1]),
        ("--from 47h", &[2]),
        ("--request 1", &[1]),
    ] {
        match asked(&place, &format!("--by request {words}")) {
            Ok(report) => assert_eq!(column(&report, "requests", "request"), requests, "{words}"),
            Err(said) => assert!(requests.is_empty() && said.contains("no graph run"), "{said}"),
        }
    }
}

/// The first request alone ends before midnight.
#[test]
fn a_clock_time_after_the_end_selects_nothing() {
    let place = place();
    let said = asked_of(&place, "first.json", "--from 23:59:55").unwrap_err();
    assert!(said.contains("no graph run"), "{said}");
    // Its next one is not reached any more, and its last one was before the start.
    let report = asked_of(&place, "first.json", "--by request --from 23:59:45").unwrap();
    assert_eq!(column(&report, "requests", "request"), [0]);
}

#[test]
fn a_part_has_the_figures_of_the_whole() {
    let place = place();
    let whole = asked(&place, "--by request").unwrap();
    for words in ["--phase tg", "--from 15.05s", "--request 1", "--to 15.1s"] {
        let part = asked(&place, &format!("--by request {words}")).unwrap();
        let of = |report: &Value| {
            let rows = report["requests"].as_array().unwrap();
            rows.iter().find(|row| row["request"] == 1).cloned()
        };
        assert_eq!(of(&part), of(&whole), "{words}");
    }
    let phases = |words: &str| {
        let report = asked(&place, &format!("--by phase {words}")).unwrap();
        let rows = report["phases"].as_array().unwrap().clone();
        let figures = ["phase", "runs", "tokens", "wall_ns", "tokens_per_s"];
        let tokens = rows.iter().filter(|row| row["kind"] == "generation");
        tokens.map(|row| figures.map(|key| row[key].clone())).collect::<Vec<_>>()
    };
    assert_eq!(phases("--phase tg"), phases(""));
    // In the middle of the second request's tokens.
    assert_eq!(phases("--from 15.05s --to 20s")[0][0], "tg7");
}

#[test]
fn graph_runs_have_the_programs_own_numbers_everywhere() {
    let place = place();
    let runs = asked(&place, "--by run").unwrap();
    assert_eq!(*column(&runs, "runs", "run")[0], 100);
    let later = asked(&place, "--by run --request 1").unwrap();
    assert_eq!(*column(&later, "runs", "run")[0], 111);
    let longest = asked(&place, "--top-kernels 1 --request 1").unwrap();
    assert!(longest.to_string().contains("\"graph_run\":111"), "{longest:#}");
    place.run(&["convert", "p.json", "-o", "p.csv"]).succeeded();
    place.run(&["report", "p.json", "--chrome-trace", "trace.json"]).succeeded();
    for (file, text) in [("p.csv", "CPU,0,100,"), ("trace.json", "\"graph_run\":100,")] {
        let written = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(written.contains(text), "{file}: {written}");
    }
}

#[test]
fn every_second_has_its_tokens() {
    let place = place();
    let seconds = asked(&place, "--by second --to 16s").unwrap();
    let figures = |at: usize| {
        let row = &seconds["seconds"][at];
        ["runs", "prompt_tokens", "generated_tokens", "requests"]
            .map(|key| row[key].as_u64().unwrap())
    };
    assert_eq!(figures(0), [11, 8, 10, 1]);
    assert_eq!(figures(1), [0, 0, 0, 0]);
    assert_eq!(figures(15), [11, 8, 10, 1]);
}
