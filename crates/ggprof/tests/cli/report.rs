//! What `ggprof report` prints, on a recording of ggml's own profiler.

use crate::place::{GGPROF, Place, RECORD, Ran, example, original, profile};
use expect_test::expect_file;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

fn report(arguments: &[&str]) -> Ran {
    asked("report", arguments).succeeded()
}

fn asked(command: &str, arguments: &[&str]) -> Ran {
    let place = Place::new();
    std::fs::copy(example(), place.path("example.json.gz")).unwrap();
    place.run(&[&[command, "example.json.gz"], arguments].concat())
}

#[test]
fn summary() {
    expect_file!["golden/summary.txt"].assert_eq(&report(&[]).out);
    expect_file!["golden/summary.md"].assert_eq(&report(&["--format", "markdown"]).out);
    expect_file!["golden/summary.json"].assert_eq(&report(&["--format", "json"]).out);
    expect_file!["golden/summary.csv"].assert_eq(&report(&["--format", "csv"]).out);
}

#[test]
fn explanation() {
    let explain = |arguments: &[&str]| asked("explain", arguments).succeeded().out;
    expect_file!["golden/explain.txt"].assert_eq(&explain(&[]));
    expect_file!["golden/explain.md"].assert_eq(&explain(&["--format", "markdown"]));
    let json: Value = serde_json::from_str(&explain(&["--format", "json"])).unwrap();
    let rows = json["budget"].as_array().unwrap();
    let sum: u64 = rows.iter().map(|row| row["ns"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), json["phases"][0]["wall_ns"].as_u64());
    assert_eq!(json["findings"][0]["rule"], "R6");
}

#[test]
fn by_everything() {
    expect_file!["golden/by-op.txt"].assert_eq(&report(&["--by", "op"]).out);
    expect_file!["golden/by-backend.txt"].assert_eq(&report(&["--by", "backend"]).out);
    expect_file!["golden/by-shape.txt"].assert_eq(&report(&["--by", "shape"]).out);
    expect_file!["golden/by-layer.txt"].assert_eq(&report(&["--by", "layer"]).out);
    expect_file!["golden/by-phase.txt"].assert_eq(&report(&["--by", "phase"]).out);
    expect_file!["golden/by-depth.txt"].assert_eq(&report(&["--by", "depth"]).out);
}

#[test]
fn rankings_in_one_call() {
    let ran = report(&["--inefficiency", "--top-kernels", "3", "--top-ops", "2"]);
    expect_file!["golden/rankings.txt"].assert_eq(&ran.out);
}

/// Facts and tables in few lines, the same bytes each time, and nothing of the place.
#[test]
fn what_maintainers_ask_for() {
    let issue = report(&["--issue"]).out;
    expect_file!["golden/issue.md"].assert_eq(&issue);
    assert_eq!(report(&["--issue"]).out, issue);
    assert!(report(&["--issue", "--format", "table"]).out.contains("Longest operations\n"));
    let since = report(&["--issue", "--since", "example.json.gz"]).out;
    assert!(since.contains("### Change of the time per token"), "{since}");
    for text in [issue, since] {
        assert!(text.lines().count() <= 60, "{text}");
        let place = std::env::current_dir().unwrap();
        let user = std::env::var("USER").unwrap_or_else(|_| "example.json".to_owned());
        for private in ["example", "/", &user, place.to_str().unwrap()] {
            let words = text.replace("t/s", "").replace("FLOP/s", "").replace("I/O", "");
            assert!(!words.contains(private), "{private} in {words}");
        }
    }
}

#[test]
fn totals_are_exact() {
    /// Type, op and backend.
    type Key = (String, String, i64);
    /// Count, total, minimum and maximum.
    type Sum = (u64, u64, u64, u64);
    let mut expected: BTreeMap<Key, Sum> = BTreeMap::new();
    for record in original()["records"].as_array().unwrap() {
        let kind = if record["type"] == 0 { "OP" } else { "COPY" };
        let name = record["name"].as_str().unwrap().to_owned();
        let key = (kind.to_owned(), name, record["backend_id"].as_i64().unwrap());
        let ns = record["duration_ns"].as_u64().unwrap();
        let sum = expected.entry(key).or_insert((0, 0, u64::MAX, 0));
        *sum = (sum.0 + 1, sum.1 + ns, sum.2.min(ns), sum.3.max(ns));
    }
    let report: Value = serde_json::from_str(&report(&["--format", "json"]).out).unwrap();
    let mut found = BTreeMap::new();
    for row in report["operations"].as_array().unwrap() {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_u64().unwrap();
        let key = (text("type"), text("op"), row["backend_id"].as_i64().unwrap());
        let (count, total) = (number("count"), number("total_ns"));
        assert_eq!(row["avg_ns"].as_f64().unwrap(), total as f64 / count as f64);
        found.insert(key, (count, total, number("min_ns"), number("max_ns")));
    }
    assert_eq!(found, expected);
}

#[test]
fn parts_of_the_wall_time_sum_to_it() {
    let report: Value = serde_json::from_str(&report(&["--format", "json"]).out).unwrap();
    for backend in report["backends"].as_array().unwrap() {
        let parts = ["busy_ns", "copying_ns", "idle_ns"];
        let sum: u64 = parts.iter().map(|part| backend[*part].as_u64().unwrap()).sum();
        assert_eq!(sum, report["time"]["wall_ns"]);
    }
}

#[test]
fn chrome_trace_has_every_event_where_it_was_recorded() {
    let place = Place::new();
    let example = example();
    let ran = place
        .run(&["report", example.to_str().unwrap(), "--chrome-trace", "trace.json"])
        .succeeded();
    assert_eq!(ran.out, "");
    let trace: Value =
        serde_json::from_slice(&std::fs::read(place.path("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    // Nanoseconds from the text of the number: a float would round.
    let nanos = |value: &Value| value.to_string().replace('.', "").parse::<u64>().unwrap();
    let ns = |value: &Value| {
        let text = value.to_string();
        let (_, decimals) = text.split_once('.').unwrap_or((&text, ""));
        nanos(value) * 10u64.pow(3 - decimals.len() as u32)
    };
    let is_event = |event: &&Value| event["cat"].is_string() && event["ph"] == "X";
    let mut found: Vec<(u64, u64)> =
        events.iter().filter(is_event).map(|event| (ns(&event["ts"]), ns(&event["dur"]))).collect();
    let mut expected: Vec<(u64, u64)> = original()["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            (record["start_ns"].as_u64().unwrap(), record["duration_ns"].as_u64().unwrap())
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    // On one lane no slice overlaps another, and every arrow has two ends inside slices.
    let mut lanes: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let lane = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let start = ns(&event["ts"]);
        lanes.entry(lane).or_default().push((start, start + ns(&event["dur"])));
    }
    for spans in lanes.values_mut() {
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }
    let mut arrows = [0, 0];
    for event in events {
        let end = match event["ph"].as_str().unwrap() {
            "s" => 0,
            "f" => 1,
            _ => continue,
        };
        arrows[end] += 1;
        let lane = &lanes[&(event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())];
        let at = ns(&event["ts"]);
        assert!(lane.iter().any(|&(start, end)| start <= at && at <= end));
    }
    let copies =
        original()["records"].as_array().unwrap().iter().filter(|r| r["type"] == 1).count();
    assert_eq!(arrows, [copies, copies]);
}

#[test]
fn exports_and_tables_in_one_call() {
    let place = Place::new();
    let file = place.file("p.json", profile(&[RECORD]));
    let arguments = [
        "--chrome-trace",
        "t.json",
        "--html-viewer",
        "t.html",
        "--html-max-records",
        "5",
        "--top-ops",
        "1",
    ];
    let ran = place.run(&[&[file.to_str().unwrap()], &arguments[..]].concat()).succeeded();
    assert!(ran.out.starts_with("Top 1 operations"), "{}", ran.out);
    assert_eq!(place.names(), ["p.json", "t.html", "t.json"]);
    assert!(std::fs::read_to_string(place.path("t.html")).unwrap().contains("id=\"recording\""));
}

#[test]
fn view_writes_a_page_that_only_the_user_can_open() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let place_for_pages = place.path("pages");
    std::fs::create_dir(&place_for_pages).unwrap();
    let output = std::process::Command::new(crate::place::GGPROF)
        .arg("view")
        .arg(example())
        .env("TMPDIR", &place_for_pages)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = std::path::PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
    let directory = std::fs::metadata(page.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
}

#[test]
fn convert_by_extension() {
    let place = Place::new();
    let example = example();
    let example = example.to_str().unwrap();
    let outputs = ["a.json", "a.txt", "a.CSV", "a.html", "a"];
    let mut arguments = vec!["convert", example];
    outputs.iter().for_each(|name| arguments.extend(["-o", name]));
    place.run(&arguments).succeeded();
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert!(read("a.json").starts_with("{\n  \"version\": 3,"));
    assert_eq!(read("a.json"), read("a"));
    assert!(read("a.CSV").starts_with("type,op,"));
    assert!(read("a.html").starts_with("<!DOCTYPE html>"));
    expect_file!["golden/convert.txt"].assert_eq(&read("a.txt"));

    // Our own JSON gives the same report as the file it came from.
    let ours = place.run(&["a.json", "--by", "shape"]).succeeded();
    assert_eq!(ours.out, place.run(&[example, "--by", "shape"]).succeeded().out);
    let again = place.run(&["convert", "a.json", "-o", "-"]).succeeded();
    assert_eq!(again.out, read("a.json"));
}

#[test]
fn compressed_and_piped_input() {
    let place = Place::new();
    let json = profile(&[RECORD, RECORD]);
    let zst = ruzstd::encoding::compress_to_vec(
        json.as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let mut gz = Vec::new();
    flate2::read::GzEncoder::new(json.as_bytes(), Default::default()).read_to_end(&mut gz).unwrap();
    let expected = place.run_with_input(&["-"], json.as_bytes()).succeeded().out;
    assert!(expected.starts_with("ggprof: standard input"));
    for packed in [zst, gz] {
        assert_eq!(place.run_with_input(&["report", "-"], &packed).succeeded().out, expected);
        // Cut off, it still gives what was whole.
        let ran = place.run_with_input(&["-"], &packed[..packed.len() / 2]);
        assert!(matches!(ran.code, Some(1 | 3)), "{ran:?}");
    }
}

/// Runs a shell line on a terminal 80 columns wide, made by script(1).
fn on_a_terminal(line: &str) -> String {
    let line = format!("stty rows 24 cols 80; {line}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("GGPROF", GGPROF).env_remove("NO_COLOR");
    let output = script.output().expect("script(1), of bsdutils");
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_colours_and_lines_that_fit() {
    let example = example();
    let example = example.to_str().unwrap();
    let colour = on_a_terminal(&format!("\"$GGPROF\" '{example}'"));
    assert!(colour.contains("\x1b[1m"), "{colour}");
    for plain in [
        format!("NO_COLOR=1 \"$GGPROF\" '{example}'"),
        format!("\"$GGPROF\" '{example}' --color never"),
    ] {
        let plain = on_a_terminal(&plain);
        assert!(!plain.contains('\x1b'), "{plain}");
        for line in plain.lines().skip(1) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn the_terminal_obeys_nothing_in_a_file() {
    let place = Place::new();
    let hostile = r"\u001b]0;owned\u0007\u009b31m\nfake line</script>";
    let record = RECORD.replace("Qcur-0", hostile).replace("MUL_MAT", hostile);
    let json = profile(&[&record]).replace("\"CPU\"", &format!("\"{hostile}\""));
    place.file("p.json", &json);
    for format in ["table", "markdown"] {
        for by in ["op", "backend", "shape", "layer", "phase"] {
            let ran = place.run(&["p.json", "--format", format, "--by", by, "--top-kernels", "1"]);
            let obeyed = |c: char| c.is_control() && c != '\n';
            assert!(!ran.out.contains(obeyed) && !ran.out.contains("\nfake"), "{ran:?}");
        }
    }
    place.run(&["convert", "p.json", "-o", "p.txt"]).succeeded();
    assert!(!std::fs::read_to_string(place.path("p.txt")).unwrap().contains('\x1b'));
}

#[test]
fn help_completions_and_manual() {
    let place = Place::new();
    expect_file!["golden/help.txt"].assert_eq(&place.run(&["--help"]).succeeded().out);
    expect_file!["golden/help-report.txt"]
        .assert_eq(&place.run(&["report", "--help"]).succeeded().out);
    for shell in ["bash", "zsh", "fish"] {
        let completions = place.run(&["generate", "completions", shell]).succeeded().out;
        assert!(completions.contains("top-kernels"), "{shell}");
        assert!(!completions.contains("deliver"), "what the agent runs is no command for people");
    }
    assert!(place.run(&["generate", "man"]).succeeded().out.contains(".TH ggprof"));
    assert!(place.run(&["generate", "man", "ctl", "stop"]).succeeded().out.contains("ctl\\-stop"));
    place.run(&["generate", "man", "deliver"]).failed_with_a_sentence();
    std::fs::create_dir(place.path("man")).unwrap();
    place.run(&["generate", "man", "--directory", "man"]).succeeded();
    assert!(
        place.path("man/ggprof-diff.1").exists() && !place.path("man/ggprof-deliver.1").exists()
    );
    assert_eq!(place.run(&["report"]).code, Some(2));
    assert_eq!(place.run(&[]).code, Some(2));
}

#[test]
fn what_is_wrong_with_a_command_line_is_said() {
    let place = Place::new();
    let mut sentences = String::new();
    for line in [
        "reprot p.json",
        "run --graphs 0..1 -- touch ran",
        "run --graphs 9..3 -- touch ran",
        "run --max-size 4MB -- touch ran",
        "run --budget -1 -- touch ran",
        "run --budget 1% -- touch ran",
        "run --duration 0s -- touch ran",
        "bench --record=--cuda=much -- touch ran",
        "report p.json --html-max-records 5",
        "report p.json --html-max-records all",
    ] {
        let ran = place.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{line}: {ran:?}");
        let said = ran.err.lines().take_while(|line| !line.starts_with("Usage"));
        said.filter(|line| !line.is_empty()).for_each(|line| {
            sentences.push_str(line);
            sentences.push('\n');
        });
    }
    assert_eq!(place.names(), [""; 0]);
    expect_file!["golden/wrong-command-lines.txt"].assert_eq(&sentences);
}

/// The same recording twice stands for two processes that did everything at the same time.
#[test]
fn several_recordings_are_one_trace() {
    let place = Place::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let recording = examples.join("llama-moe-cpu-h200.ggprof.gz");
    std::fs::create_dir(place.path("all")).unwrap();
    for name in ["all/a.ggprof.gz", "all/b.ggprof.gz"] {
        std::fs::copy(&recording, place.path(name)).unwrap();
    }
    let json = |arguments: &[&str]| -> Value {
        let ran = place.run(&[arguments, &["--format", "json"]].concat()).succeeded();
        serde_json::from_str(&ran.out).unwrap()
    };
    let (one, all) = (json(&["report", "all/a.ggprof.gz"]), json(&["report", "all"]));
    assert_eq!(json(&["all/a.ggprof.gz", "all/b.ggprof.gz"])["backends"], all["backends"]);
    let backends = |answer: &Value| answer["backends"].as_array().unwrap().clone();
    assert_eq!(backends(&all).len(), 2 * backends(&one).len());
    for (at, backend) in backends(&all).iter().enumerate() {
        let alone = &backends(&one)[at % backends(&one).len()];
        for column in ["busy_ns", "copying_ns", "ops", "copies"] {
            assert_eq!(backend[column], alone[column], "{column}");
        }
    }
    assert_eq!(one["time"]["wall_ns"], all["time"]["wall_ns"]);
    // The first call began long before its first op.
    let phases = one["phases"].as_array().unwrap();
    let of_phases: u64 = phases.iter().map(|phase| phase["wall_ns"].as_u64().unwrap()).sum();
    assert!(of_phases <= one["time"]["wall_ns"].as_u64().unwrap(), "{phases:?}");
    let shared = all["shared_devices"].as_array().unwrap();
    assert_eq!(shared.len(), 4);
    assert!(shared.iter().all(|row| row["used_ns"] == row["together_ns"]), "{shared:?}");

    let refused = place.run(&["report", "all", "all/a.ggprof.gz"]);
    refused.failed_with_a_sentence();
    assert!(refused.err.contains("all/a.ggprof.gz is named twice"), "{}", refused.err);

    place.file("p.json", profile(&[RECORD]));
    let refused = place.run(&["report", "all", "p.json"]);
    refused.failed_with_a_sentence();
    assert!(refused.err.contains("p.json does not say when it was made"), "{}", refused.err);
}

/// The example's ops have numbers in no ggml that is known here.
#[test]
fn ops_need_a_ggml_that_numbers_them() {
    let ran = asked("report", &["--export-ops", "ops.txt"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("does not say how its ggml numbers its ops"), "{}", ran.err);
    let ran = asked("report", &["--export-ops", "ops.txt", "--for", "missing.so"]);
    assert!(ran.err.contains("missing.so cannot be opened"), "{}", ran.err);
    let ran = asked("report", &["--export-ops", "ops.txt.gz"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

/// A recording of stable-diffusion.cpp, which makes an image of 32 x 32 pixels larger.
#[test]
fn a_program_without_tokens_has_graphs_and_no_speed() {
    let place = Place::new();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/upscaler.ggprof.zst");
    std::fs::copy(recording, place.path("upscaler.ggprof.zst")).unwrap();
    let arguments = ["report", "upscaler.ggprof.zst", "--by", "phase", "--format", "json"];
    let report: Value = serde_json::from_str(&place.run(&arguments).succeeded().out).unwrap();
    let [phase] = &report["phases"].as_array().unwrap()[..] else { panic!("{report:#}") };
    assert_eq!((&phase["phase"], &phase["runs"]), (&"graphs".into(), &1.into()));
    assert!(phase["tokens_per_s"].is_null() && report["first_token"].is_null(), "{report:#}");
    // The program itself says that it took 2.14 s.
    assert_eq!(phase["wall_ns"], 2_139_708_224_u64);
}
