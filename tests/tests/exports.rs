//! Formats of other tools, read with what these tools publish: times add up to those of the report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::{built, npm, pypi, tool};
use serde_json::Value;
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

/// The same recording as it would be of another machine, which was started a second later.
fn on_another_machine(recording: &Path, to: &Path) {
    ggprof(&["convert", recording.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    let mut trace: Value = serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap();
    for anchor in trace["ggprof"]["provenance"]["clock_anchors"].as_array_mut().unwrap() {
        anchor[1] = (anchor[1].as_u64().unwrap() + 1_000_000_000).into();
    }
    std::fs::write(to, trace.to_string()).unwrap();
}

/// Both machines have a process of the same number, and a device of the same name.
#[test]
fn perfettos_schema_reads_each_machine() {
    let Some(mut reader) = tool::fetched("Perfetto's schema", perfetto()) else { return };
    let directory = TempDir::new().unwrap();
    let (one, other) = (recording(RECORDINGS[0]), directory.path().join("other.json"));
    on_another_machine(&one, &other);
    let merged = directory.path().join("merged.json");
    let files = [&one, &other, Path::new("-o"), &merged].map(|path| path.to_str().unwrap());
    ggprof(&[&["merge"], &files[..]].concat());

    let found = read(&merged, "trace.pftrace", &mut reader);
    assert_same_totals(&found, &rows(&merged), "merged");
    let machines = &found["machines"];
    assert_eq!(machines.as_object().unwrap().len(), 2, "{machines}");
    assert_eq!(machines["0"], machines["2"], "each with all that was recorded there");
    assert_eq!(machines["0"]["pids"].as_array().unwrap().len(), 1, "{machines}");
    assert!(machines["0"]["stages"].as_u64() > Some(0), "{machines}");
    assert_eq!(found["counts"]["remote_clock_sync"], 1, "{}", found["counts"]);
    assert_eq!(found["counts"]["trace_stats"], 1, "{}", found["counts"]);
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
            assert_eq!(sums["estimated_time"], sum("total_ns").to_string(), "{name} {sums}");
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
