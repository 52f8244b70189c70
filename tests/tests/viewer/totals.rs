//! The page computes its totals itself, because they depend on the selection. Without a selection
//! they equal those of the reports.

use crate::{made, page, recordings};
use ggprof_e2e::built;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const FIGURES: [&str; 10] = [
    "count",
    "total_ns",
    "avg_ns",
    "min_ns",
    "p50_ns",
    "p95_ns",
    "max_ns",
    "share_of_wall",
    "gb_per_s",
    "gflop_per_s",
];

/// The place of `total_ns`.
const TOTAL: usize = 1;

/// Figures by op and backend.
type Totals = BTreeMap<(String, String), Vec<Option<f64>>>;

#[test]
fn the_page_and_the_reports_give_the_same_totals() {
    let place = tempfile::tempdir().expect("a directory for the pages");
    let mut recordings = kept();
    assert!(recordings.len() >= 4, "{recordings:?}");
    recordings.push(made(place.path(), "everything", recordings::everything()));
    for recording in recordings {
        let page = page(place.path(), "page.html", &recording, &[]);
        let told = told(&page);
        let (shown, reported) = (totals(&told["rows"]), reported(&recording));
        let of = recording.display();
        ranges_have_the_times_of_the_whole(&told, &of.to_string());
        every_grouping_divides_the_same(&told, &reported, &of.to_string());
        assert!(!shown.is_empty(), "{of}");
        assert_eq!(shown.keys().collect::<Vec<_>>(), reported.keys().collect::<Vec<_>>(), "{of}");
        for (row, figures) in &shown {
            for ((name, one), other) in FIGURES.iter().zip(figures).zip(&reported[row]) {
                assert!(same(*one, *other), "{of} {row:?} {name}: {one:?} on the page, {other:?}");
            }
        }
    }
}

/// All recordings that the project keeps, in whatever format.
fn kept() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["examples", "tests/recordings", "crates/ggprof/tests/cli"];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder with recordings"));
    let files = files.map(|file| file.expect("a file of it").path());
    let mut recordings: Vec<PathBuf> = files.filter(|file| is_recording(file)).collect();
    recordings.sort();
    recordings
}

/// Recordings that are kept are packed; nothing else is.
fn is_recording(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
}

/// Equal but for rounding. A rate that cannot be told is none on the page, and may be 0 elsewhere.
fn same(one: Option<f64>, other: Option<f64>) -> bool {
    let (one, other) = (one.unwrap_or(0.0), other.unwrap_or(0.0));
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

fn told(page: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer/test/totals.mjs");
    json_of(Command::new("node").arg(script).arg(page))
}

/// Whatever the table is grouped by, an op has the time that the report gives it, estimates included; also
/// where another one is hidden.
fn every_grouping_divides_the_same(told: &Value, reported: &Totals, of: &str) {
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for ((op, _), figures) in reported {
        *times.entry(op).or_default() += figures[TOTAL].unwrap_or(0.0);
    }
    let hidden = told["hidden"].as_str().expect("the first op");
    for (part, left_out) in [("all", None), ("rest", Some(hidden))] {
        for (grouping, sums) in told[part]["sums"].as_object().expect("sums by grouping") {
            let sums = sums.as_object().expect("sums by op");
            let of = format!("{of} by {grouping}, without {left_out:?}");
            for (op, time) in &times {
                let shown = sums.get(*op).and_then(Value::as_f64).unwrap_or(0.0);
                let expected = if left_out == Some(op) { 0.0 } else { *time };
                assert!(about(shown, expected), "{of}: {op} has {shown}, and not {expected}");
            }
            let all: f64 =
                times.iter().filter(|(op, _)| left_out != Some(op)).map(|(_, ns)| ns).sum();
            let tops = told[part]["tops"][grouping].as_f64().expect("the sum of its rows");
            assert!(about(tops, all), "{of}: all rows have {tops}, and not {all}");
        }
    }
    // Estimates are none of a range, or of what was searched for.
    let [all, rest, range, searched] = [0, 1, 2, 3].map(|at| told["whole"][at].as_bool());
    assert_eq!((all, rest), (Some(false), Some(false)), "{of}");
    assert_eq!(range, searched, "{of}");
    if of.contains("sampled") {
        assert_eq!(range, Some(true), "{of}");
        assert!(times["SPLIT"] < times["MUL_MAT"] / 100.0, "{of}: {times:?}");
    }
}

/// What is said of a range that has everything is what is said of the whole recording.
fn ranges_have_the_times_of_the_whole(told: &Value, of: &str) {
    for backend in told["inAll"].as_array().expect("backends that worked") {
        for at in [0, 1] {
            let [one, other] =
                ["of", "inRange"].map(|it| backend[it][at].as_f64().expect("a time"));
            assert!(about(one, other), "{of}: {backend}");
        }
    }
}

/// Estimates are whole nanoseconds in each row.
fn about(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1000.0 + 1e-9 * other.abs()
}

fn reported(recording: &Path) -> Totals {
    let mut report = Command::new(built::ggprof());
    let report =
        json_of(report.arg("report").arg(recording).args(["--by", "op", "--format", "json"]));
    // A fusion is a part of its op's row.
    let rows = report["operations"].as_array().expect("rows of operations").iter();
    totals(&rows.filter(|row| row["fusion"].is_null()).cloned().collect())
}

fn json_of(command: &mut Command) -> Value {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{problem}: {said}"))
}

fn totals(rows: &Value) -> Totals {
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| {
        let figures = FIGURES.iter().map(|&name| row[name].as_f64()).collect();
        ((text(&row["op"]), text(&row["backend"])), figures)
    })
    .collect()
}
