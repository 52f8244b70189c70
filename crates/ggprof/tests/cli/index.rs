//! What `ggprof index` keeps and answers, on recordings that were made up.

use crate::place::{Place, Ran};
use expect_test::expect_file;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime};

const HOUR_NS: u64 = 3_600_000_000_000;
const START_NS: u64 = 1_790_000_000_000_000_000;

/// A prompt of 10 tokens and 2 generated ones, each token taking so many microseconds.
fn recording(commit: &str, device: &str, hour: u64, us: u64) -> String {
    let (prompt, token) = (us * 10_000, us * 1000);
    let spans = [(0, prompt), (prompt, prompt + token), (prompt + token, prompt + 2 * token)];
    let record = |(run, (start, end)): (usize, (u64, u64))| {
        json!({
            "type": 0, "name": "MUL_MAT", "backend_id": 0, "split_id": 0, "start_ns": start,
            "duration_ns": end - start, "bytes": 64, "extra": null, "tensor_name": "Qcur-0",
            "ne": [16, 1, 1, 1], "graph_run": run,
        })
    };
    let batch = |(call, (start, end)): (u64, (u64, u64))| {
        let (first, last) = if call == 0 { (0, 9) } else { (9 + call, 9 + call) };
        let tokens = last - first + 1;
        let part =
            json!({"sequence": 0, "positions": [first, last], "tokens": tokens, "outputs": 1});
        json!({
            "call": call + 1, "context": 1, "start_ns": start, "end_ns": end, "function": "Decode",
            "tokens": tokens, "outputs": 1, "sequences": [part],
        })
    };
    let facts = json!({
        "version": 1,
        "graph_runs": spans.map(|(start, end)| json!([1, start, end])),
        "graph_run_facts": [[1, 0], [2, 1], [3, 2]],
        "batches": (0..).zip(spans).map(batch).collect::<Vec<_>>(),
        "provenance": {
            "command": "/home/somebody/bin/llama-bench", "pid": 7, "cpu": "A Processor",
            "recorded_at_unix_ns": START_NS + hour * HOUR_NS, "clock_error_ns": 1,
            "ggml": [{"library": "libggml-base.so", "version": "0.9.1", "commit": commit}],
            "cut_short": false, "unfinished_runs": 0,
        },
    });
    let backends = json!([{"id": 0, "name": device, "device": device, "device_type": 1}]);
    let records: Vec<Value> = spans.into_iter().enumerate().map(record).collect();
    let records = Value::Array(records);
    // Written by hand, because `json!` sorts its keys and what is added follows the records.
    format!(
        r#"{{"version":3,"profiler":"ggml","backends":{backends},"records":{records},"ggprof":{facts}}}"#
    )
}

/// Five recordings of each of two commits on one device, the second of them slower; one on another.
fn place() -> Place {
    let place = Place::new();
    for folder in ["all/deep/down", "all/other", "all/third"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for run in 0..5 {
        let folder = ["", "other/", "third/"][run as usize % 3];
        place.file(&format!("all/{folder}b{run}.ggprof"), recording("bbb", "GPU0", run, 100 + run));
        let slower = recording("aaa", "GPU0", 24 + run, 110 + run);
        place.file(&format!("all/deep/down/a{run}.ggprof"), slower);
    }
    place.file("all/deep/c.ggprof", recording("aaa", "RPC[10.0.0.7:50052]", 48, 500));
    place
}

fn index(place: &Place, arguments: &[&str]) -> Ran {
    let mut command = place.command(&[&["index", "all"], arguments].concat());
    Ran::of(command.env("TZ", "UTC").output().unwrap())
}

fn json_of(ran: Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|problem| panic!("{problem}: {ran:?}"))
}

#[test]
fn speeds_by_commit_and_device() {
    let place = place();
    let table = index(&place, &[]).succeeded().out;
    expect_file!["golden/index.txt"].assert_eq(&table);
    expect_file!["golden/index.md"].assert_eq(&index(&place, &["--format", "markdown"]).out);
    expect_file!["golden/index.csv"].assert_eq(&index(&place, &["--format", "csv"]).out);
    // Neither paths nor hosts, also not in the catalogue.
    let kept = fs::read_to_string(place.path("all/.ggprof-index")).unwrap();
    for text in [&table, &kept] {
        assert!(!text.contains("somebody") && !text.contains("10.0.0.7"), "{text}");
    }
}

#[test]
fn parts_of_it() {
    let place = place();
    let rows = |arguments: &[&str]| -> Vec<(String, u64)> {
        let all = json_of(index(&place, &[arguments, &["--format", "json"]].concat()));
        let rows = all["speeds"].as_array().expect("rows").iter();
        let row = |row: &Value| {
            let name = format!("{} {}", row["commit"].as_str().unwrap_or("-"), row["phase"]);
            (name, row["recordings"].as_u64().unwrap())
        };
        rows.map(row).collect()
    };
    let named = |name: &str, count: u64| (name.to_owned(), count);
    let tg = ["--phase", "tg", "--device", "gpu"];
    assert_eq!(rows(&tg), [named("0.9.1 bbb \"tg2\"", 5), named("0.9.1 aaa \"tg2\"", 5)]);
    assert_eq!(rows(&[&tg[..], &["--commit", "AAA"]].concat()), [named("0.9.1 aaa \"tg2\"", 5)]);
    let later = ["--phase", "pp", "--since", "2026-09-23", "--until", "2026-09-23"];
    assert_eq!(rows(&later), [named("0.9.1 aaa \"pp10\"", 1)]);
    assert_eq!(rows(&["--phase", "pp", "--by", "file"]).len(), 11);
    assert_eq!(rows(&["--phase", "tg", "--by", "device,device"]).len(), 2);
    let all = json_of(index(&place, &["--program", "whisper", "--format", "json"]));
    assert!(all["empty"].as_str().unwrap().starts_with("No recording"), "{all}");
}

#[test]
fn only_what_changed_is_read_again() {
    let place = place();
    let catalogue =
        |place: &Place| json_of(index(place, &["--format", "json"]))["catalogue"].clone();
    assert_eq!(catalogue(&place)["read"], 11);
    assert_eq!(catalogue(&place)["read"], Value::Null);
    // One is new, one has changed, one is gone, one is only a copy.
    place.file("all/new.ggprof", recording("ccc", "GPU0", 72, 90));
    place.file("all/b0.ggprof", recording("bbb", "GPU0", 0, 101));
    fs::remove_file(place.path("all/other/b1.ggprof")).unwrap();
    fs::copy(place.path("all/third/b2.ggprof"), place.path("all/deep/copy.ggprof")).unwrap();
    let now = catalogue(&place);
    assert_eq!(
        (&now["recordings"], &now["read"], &now["copies"]),
        (&11.into(), &3.into(), &1.into())
    );
    // The same size, another time.
    let file = fs::File::open(place.path("all/b3.ggprof")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    assert_eq!(catalogue(&place)["read"], 1);
    assert_eq!(catalogue(&place)["read"], Value::Null);
    // A catalogue that is damaged or foreign costs time, not answers.
    let kept = place.path("all/.ggprof-index");
    let good = index(&place, &["--format", "csv"]).out;
    let mut bytes = fs::read(&kept).unwrap();
    bytes[60] = b'\xff';
    fs::write(&kept, bytes).unwrap();
    let damaged = index(&place, &["--format", "csv"]);
    assert!(damaged.err.contains("is damaged in 1 of its lines"), "{damaged:?}");
    fs::write(&kept, "\u{7f}ELF").unwrap();
    let foreign = index(&place, &["--format", "csv"]);
    assert!(foreign.err.contains("is no catalogue of this version"), "{foreign:?}");
    assert_eq!((&damaged.out, &foreign.out), (&good, &good));
    assert_eq!(catalogue(&place)["read"], Value::Null);
}

#[test]
fn damaged_and_foreign_files_are_a_sentence_each() {
    let place = place();
    place.file("all/empty.ggprof", "");
    place.file("all/foreign.ggprof.gz", "something else");
    let whole = recording("ccc", "GPU0", 1, 1);
    place.file("all/cut.ggprof", &whole[..whole.len() - 300]);
    fs::create_dir(place.path("all/folder.ggprof")).unwrap();
    std::os::unix::fs::symlink("..", place.path("all/deep/circle")).unwrap();
    for _ in 0..2 {
        let ran = index(&place, &[]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let warnings: Vec<&str> = ran.err.lines().collect();
        assert_eq!(warnings.len(), 2, "{ran:?}");
        assert!(warnings[0].contains("empty.ggprof is empty"), "{ran:?}");
        assert!(warnings[1].contains("foreign.ggprof.gz is no recording"), "{ran:?}");
        assert!(ran.out.contains("damaged or cut off: 1"), "{ran:?}");
    }
    place.run(&["index", "nowhere"]).failed_with_a_sentence();
    fs::create_dir(place.path("nothing")).unwrap();
    place.run(&["index", "nothing"]).failed_with_a_sentence();
}

#[test]
fn where_the_catalogue_cannot_be_kept() {
    let place = place();
    fs::create_dir(place.path("all/.ggprof-index")).unwrap();
    let ran = index(&place, &["--phase", "tg"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("cannot be kept there") && ran.out.contains("tg2"), "{ran:?}");
}
