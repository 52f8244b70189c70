//! Tables of recordings, read by the engines that they are for: the questions of docs/tables.md, word for
//! word.

use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{built, published_ggml, pypi, tool};
use serde_json::Value;
use tempfile::TempDir;

const DUCKDB: (&str, &str) = ("duckdb", "2.0.0");
/// ClickHouse as a library, of 180 MB.
const CLICKHOUSE: (&str, &str) = ("chdb-core", "26.9.0");

/// Prints the rows that an engine finds for each question on standard input, as objects of JSON.
const ASK_DUCKDB: &str = "
import duckdb, json, sys
for question in json.load(sys.stdin):
    found = duckdb.sql(question)
    print(json.dumps([dict(zip(found.columns, row)) for row in found.fetchall()], default=str))
";
const ASK_CLICKHOUSE: &str = "
import chdb, json, sys
for question in json.load(sys.stdin):
    rows = str(chdb.query(question.strip().rstrip(';'), 'JSONEachRow')).splitlines()
    print('[' + ','.join(rows) + ']')
";

/// More events than a group of rows has.
const LONG: u64 = 140_000;

/// A profile of ggml's own profiler with so many events.
fn long_profile() -> String {
    const OPS: [&str; 7] = ["MUL_MAT", "ADD", "MUL", "ROPE", "RMS_NORM", "CPY", "GET_ROWS"];
    let record = |at: u64| {
        let (op, start, duration) = (OPS[(at % 7) as usize], at * 1000, at * 7919 % 997);
        format!(
            r#"{{"type": 0, "name": "{op}", "backend_id": 0, "split_id": 0, "start_ns": {start}, "duration_ns": {duration}, "bytes": 64, "extra": null, "tensor_name": "t-{}", "ne": [16, 1, 1, 1]}}"#,
            at % 100
        )
    };
    let records: Vec<String> = (0..LONG).map(record).collect();
    let backend = r#"{"id": 0, "name": "CPU", "device": "CPU", "device_type": 0}"#;
    let records = records.join(",\n");
    format!(
        "{{\"version\": 3, \"profiler\": \"ggml\", \"backends\": [{backend}],\n\"records\": [\n{records}\n]}}\n"
    )
}

/// A recording of now, on the CPU, one of a program with a device, and a long one.
struct Recordings {
    directory: TempDir,
    files: Vec<PathBuf>,
}

impl Recordings {
    /// `None`, with a sentence, where the program cannot be had.
    fn new() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let version = published_ggml::NEWEST;
        published_ggml::libraries(version)?;
        let model = Model::TINY.file("tiny").expect("a model");
        let generation =
            Generation { version, model: &model, tokens: 12, threads: 2, vulkan_layers: None };
        let command = generation.command().unwrap();
        let recorded = directory.path().join("generation.ggprof");
        let mut run = Command::new(built::ggprof());
        run.args(["run", "-o"]).arg(&recorded).arg("--").arg(command.get_program());
        tool::output(run.args(command.get_args())).unwrap();
        let example =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/llama-moe-cpu-h200.ggprof.gz");
        let long = directory.path().join("long.json");
        std::fs::write(&long, long_profile()).unwrap();
        let files = vec![recorded, example, long];
        let mut convert = Command::new(built::ggprof());
        convert
            .arg("convert")
            .args(&files)
            .args(["--to", "parquet", "-o"])
            .arg(directory.path().join("tables"));
        tool::output(&mut convert).unwrap();
        Some(Self { directory, files })
    }

    /// The rows that an engine finds for each of the questions.
    fn ask(&self, package: &Path, program: &str, questions: &[String]) -> Vec<Vec<Value>> {
        let input = self.directory.path().join("questions.json");
        std::fs::write(&input, serde_json::to_vec(questions).unwrap()).unwrap();
        let mut python = Command::new("python3");
        python.args(["-c", program]).env("PYTHONPATH", package);
        python.current_dir(self.directory.path());
        let output = python.stdin(std::fs::File::open(input).unwrap()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// The questions below a heading of the documentation.
fn questions(heading: &str) -> Vec<String> {
    let document = include_str!("../../docs/tables.md");
    let section = document.split("\n## ").find(|section| section.starts_with(heading));
    let blocks = section.expect(heading).split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// What `ggprof report --by op` says of a recording.
fn report(file: &Path) -> Vec<Value> {
    let mut report = Command::new(built::ggprof());
    report.arg("report").arg(file).args(["--by", "op", "--format", "json"]);
    let report: Value = serde_json::from_str(&tool::output(&mut report).unwrap()).unwrap();
    report["operations"].as_array().expect("operations").clone()
}

/// The time of each op in the tables is that of the report, to the nanosecond. Returns how many.
fn check_times(by_op: &[Value], recording: &Value, file: &Path) -> usize {
    let reported = report(file);
    for row in &reported {
        let is_same = |found: &&Value| {
            ["type", "op", "backend"].iter().all(|key| found[key] == row[key])
                && &found["recording"] == recording
        };
        let found = by_op.iter().find(is_same).unwrap_or_else(|| panic!("no {row:#}"));
        let estimated = row["estimated_ns"].as_u64().unwrap_or(0);
        let measured = row["total_ns"].as_u64().unwrap_or(0) - estimated;
        // ClickHouse writes large integers as text.
        let sum = &found["total_ns"];
        let sum = sum.as_u64().or_else(|| sum.as_str()?.parse().ok()).unwrap_or(0);
        assert_eq!(sum, measured, "{row:#} {found:#}");
    }
    let of_recording = |row: &&Value| &row["recording"] == recording;
    assert_eq!(by_op.iter().filter(of_recording).count(), reported.len());
    reported.len()
}

fn check_all_times(recordings: &Recordings, by_op: &[Value], ids: &[Value]) {
    for file in &recordings.files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let id = ids.iter().find(|row| row["file"] == name).expect(name);
        assert!(check_times(by_op, &id["recording"], file) > 5, "{name}");
    }
}

#[test]
fn engines_find_what_reports_say() {
    let Some(recordings) = Recordings::new() else { return };
    let duckdb = pypi::unpacked_for(DUCKDB.0, DUCKDB.1, "manylinux_2_28_x86_64");
    let Some(duckdb) = tool::fetched("DuckDB", duckdb) else { return };
    let mut asked = questions("Questions");
    asked.push("SELECT recording, file, program FROM 'tables/recordings/*.parquet'".to_owned());
    asked.push("SELECT DISTINCT value FROM parquet_kv_metadata('tables/*/*.parquet')".to_owned());
    let answers = recordings.ask(&duckdb, ASK_DUCKDB, &asked);
    assert_eq!(answers.len(), asked.len());
    for (question, answer) in asked.iter().zip(&answers) {
        assert!(!answer.is_empty(), "nothing for {question}");
    }
    let [.., ids, about] = &answers[..] else { unreachable!() };
    check_all_times(&recordings, &answers[0], ids);
    assert_eq!(about.len(), 9, "a version and the names of the tables: {about:?}");
    // What the sums are made of adds up to them.
    let measured = |rows: &[Value], key: &str| -> u64 {
        rows.iter().map(|row| row[key].as_u64().unwrap_or(0)).sum()
    };
    assert_eq!(measured(&answers[0], "total_ns"), measured(&answers[1], "time_ns"));

    let clickhouse = pypi::unpacked(CLICKHOUSE.0, CLICKHOUSE.1);
    let Some(clickhouse) = tool::fetched("ClickHouse", clickhouse) else { return };
    let answers = recordings.ask(&clickhouse, ASK_CLICKHOUSE, &questions("ClickHouse"));
    assert!(answers.len() == 3 && answers.iter().all(|answer| !answer.is_empty()));
    check_all_times(&recordings, &answers[0], ids);
}
