//! The recordings that are kept here add up: budgets to the wall time, and exported events, summed up
//! without any of ggprof's code, to the busy times of the report.

use crate::place::Place;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// From the folder of this crate.
const RECORDINGS: [&str; 4] = [
    "../../examples/llama-8b-ngl32-h200.ggprof.gz",
    "../../examples/llama-moe-cpu-h200.ggprof.gz",
    "../ggprof-spool/tests/golden/version-7.spool",
    "tests/cli/upscaler.ggprof.zst",
];

/// An answer of ggprof in JSON. The golden spool is damaged on purpose, so the exit code may be 3.
fn answer(place: &Place, words: &[&str]) -> Value {
    let mut words = words.to_vec();
    words.extend(["--format", "json"]);
    serde_json::from_str(&place.run(&words).out).expect("JSON")
}

fn path(recording: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(recording).to_str().unwrap().to_owned()
}

#[test]
fn budgets_add_up_to_the_nanosecond() {
    let place = Place::new();
    for recording in RECORDINGS {
        let explained = answer(&place, &["explain", &path(recording)]);
        let mut phases: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for row in explained["budget"].as_array().unwrap() {
            let number = |key: &str| row[key].as_u64().unwrap();
            let phase = phases.entry(row["phase"].as_str().unwrap()).or_default();
            *phase = (phase.0 + number("ns"), number("wall_ns"));
        }
        assert!(!phases.is_empty(), "{recording}");
        for (phase, (sum_ns, wall_ns)) in phases {
            assert_eq!(sum_ns, wall_ns, "{phase} of {recording}");
        }
    }
}

#[test]
fn exported_events_add_up_to_the_busy_times() {
    let place = Place::new();
    for recording in RECORDINGS {
        let recording = &path(recording);
        place.run(&["convert", recording, "-o", "events.csv"]);
        let ops = ops(&fs::read_to_string(place.path("events.csv")).unwrap());
        let report = answer(&place, &["report", recording, "--by", "backend"]);
        let backends = report["backends"].as_array().unwrap();
        assert!(!backends.is_empty(), "{recording}");
        for backend in backends {
            let name = backend["backend"].as_str().unwrap();
            let ops: Vec<&Op> = ops.iter().filter(|op| op.backend == name).collect();
            let charged_ns: u64 = ops.iter().map(|op| op.charged_ns).sum();
            assert_eq!(backend["busy_ns"], charged_ns, "{name} of {recording}");
            // Between the kernels of an op a device does nothing; the host has no such gaps.
            if ops.iter().all(|op| op.measured == "host") {
                assert_eq!(backend["busy_ns"], covered_ns(&ops), "{name} of {recording}");
            }
        }
    }
}

struct Op {
    backend: String,
    measured: String,
    start_ns: u64,
    duration_ns: u64,
    charged_ns: u64,
}

fn ops(table: &str) -> Vec<Op> {
    let mut lines = table.lines().map(fields);
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|it| it == name).unwrap();
    let [kind, backend, measured] = ["type", "backend", "measured"].map(column);
    let [start, duration, charged] = ["start_ns", "duration_ns", "charged_ns"].map(column);
    let op = |row: Vec<String>| Op {
        backend: row[backend].clone(),
        measured: row[measured].clone(),
        start_ns: row[start].parse().unwrap(),
        duration_ns: row[duration].parse().unwrap(),
        charged_ns: row[charged].parse().unwrap(),
    };
    lines.filter(|row| row[kind] == "OP").map(op).collect()
}

/// Of a line of CSV. No field has a quotation mark or a line break in it.
fn fields(line: &str) -> Vec<String> {
    let mut is_quoted = false;
    let is_end = |letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    };
    line.split(is_end).map(|field| field.trim_matches('"').to_owned()).collect()
}

/// The time in which at least one of them was under way.
fn covered_ns(ops: &[&Op]) -> u64 {
    let mut spans: Vec<_> =
        ops.iter().map(|op| (op.start_ns, op.start_ns + op.duration_ns)).collect();
    spans.sort_unstable();
    let (mut sum_ns, mut until_ns) = (0, 0);
    for (start_ns, end_ns) in spans {
        sum_ns += end_ns.saturating_sub(start_ns.max(until_ns));
        until_ns = until_ns.max(end_ns);
    }
    sum_ns
}
