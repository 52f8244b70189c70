//! Recorded ops on their own: in llama.cpp's `test-backend-ops`, which reads what we write of them, and
//! alone on the libraries that they were recorded on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ggprof_e2e::model::Model;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, debian_sid};
use serde_json::Value;
use tempfile::TempDir;

/// A generation with experts, by the ggml that `test-backend-ops` is of.
fn recorded() -> Option<UnderAgent> {
    let bench = debian_sid::command("llama-bench", &["cpu"])?;
    let model = Model::TINY_EXPERTS.file("tiny-experts").expect("a model can be written");
    let mut program = UnderAgent::of(bench);
    program.command.args(["--threads", "1", "--n-prompt", "16", "--n-gen", "2"]);
    program.command.args(["--repetitions", "1", "--model"]).arg(model);
    program.run_well();
    Some(program)
}

fn export(recording: &Path, to: &Path) -> Output {
    let mut command = Command::new(built::ggprof());
    command.args(["export", "ops"]).arg(recording).arg("-o").arg(to);
    command.output().expect("ggprof starts")
}

/// What `test-backend-ops` says of a file.
fn read_by_ggml(mode: &str, file: &Path) -> Output {
    let mut reader =
        debian_sid::command("test-backend-ops", &["cpu"]).expect("it was there before");
    reader.args([mode, "-b", "CPU", "--test-file"]).arg(file).env("GGML_NO_BACKTRACE", "1");
    reader.output().expect("it starts")
}

/// The ops of the lines that it prints, `MUL_MAT(name=…`, and all of each line but the name and what it found.
fn named(output: &Output) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let op = |line: &str| {
        let (op, rest) = line.trim_start().split_once("(name=")?;
        let (_, arguments) = rest.split_once(',')?;
        let (arguments, _) = arguments.split_once("):")?;
        Some((op.to_owned(), format!("{op}({arguments})")))
    };
    text.lines().filter_map(op).collect()
}

/// The longest ops in the report for an issue, fusions as their parts.
fn reported(recording: &Path) -> Vec<String> {
    let mut command = Command::new(built::ggprof());
    command.args(["report", "--issue", "--format", "json"]).arg(recording);
    let output = command.output().expect("ggprof starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["longest"].as_array().expect("the longest operations");
    let texts = rows.iter().map(|row| row["op"].as_str().expect("a string"));
    texts.flat_map(|text| text.split(" + ").map(str::to_owned)).collect()
}

#[test]
fn ggml_reads_every_line_as_the_op_that_was_recorded() {
    let Some(program) = recorded() else { return };
    let [recording] = &program.files()[..] else { panic!("there is one recording") };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("ops.txt");
    let exported = export(recording, &file);
    assert!(exported.status.success(), "{exported:?}");
    let lines = std::fs::read_to_string(&file).unwrap();

    let supported = read_by_ggml("support", &file);
    assert!(supported.status.success(), "{supported:?}");
    let ops = named(&supported);
    assert_eq!(ops.len(), lines.lines().count());
    // The longest first; and all that a model with experts computes.
    for op in ["MUL_MAT_ID", "MUL_MAT", "GET_ROWS", "SET_ROWS", "ROPE", "FLASH_ATTN_EXT", "SWIGLU"]
    {
        assert!(ops.iter().any(|it| it.0 == op), "{op} in {ops:?}");
    }
    for ours in reported(recording) {
        assert!(ops.iter().any(|it| it.1 == ours), "{ours} in {ops:#?}");
    }
    // A fusion is written as its parts.
    for op in ["RMS_NORM", "MUL"] {
        assert!(ops.iter().any(|it| it.0 == op), "{op} in {ops:?}");
    }
    // Each is computed; that ggml then compares memory that no op has written is its own affair.
    let computed = read_by_ggml("test", &file);
    assert!(computed.status.code().is_some(), "{computed:?}");
    let shortest = directory.path().join("two.txt");
    let last: Vec<String> = lines.lines().rev().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&shortest, last.concat()).unwrap();
    let timed = read_by_ggml("perf", &shortest);
    assert!(timed.status.success(), "{timed:?}");
    assert!(String::from_utf8_lossy(&timed.stdout).contains("us/run"), "{timed:?}");

    damaged_recordings_make_no_file_that_ends_its_reader(recording, directory.path());
}

/// Each copy has some bytes of its records changed. The lines of all of them are computed together.
/// `GGPROF_DAMAGED=200` makes as many copies.
fn damaged_recordings_make_no_file_that_ends_its_reader(recording: &Path, directory: &Path) {
    let wanted = std::env::var("GGPROF_DAMAGED").ok().and_then(|it| it.parse().ok());
    let copies: u32 = wanted.unwrap_or(12);
    const CHANGES: u64 = 60;
    let bytes = std::fs::read(recording).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap_or_default() as u64;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut all = std::collections::BTreeSet::new();
    for _ in 0..copies {
        let mut bytes = bytes.clone();
        for _ in 0..CHANGES {
            let at = (4096 + next(used - 4096)) as usize;
            bytes[at] ^= 1 << next(8);
        }
        let (damaged, lines) = (directory.join("damaged.spool"), directory.join("damaged.txt"));
        std::fs::write(&damaged, bytes).unwrap();
        let exported = export(&damaged, &lines);
        assert!(exported.status.code().is_some_and(|code| code < 4), "{exported:?}");
        let Ok(lines) = std::fs::read_to_string(&lines) else { continue };
        all.extend(lines.lines().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()));
    }
    let file: PathBuf = directory.join("all.txt");
    let lines: Vec<String> = all.into_iter().map(|line| format!("{line} -\n")).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    let computed = read_by_ggml("test", &file);
    let is_done = |line: &&str| line.contains("): ");
    let done = String::from_utf8_lossy(&computed.stdout).lines().filter(is_done).count();
    let next = lines.get(done);
    assert!(computed.status.code().is_some(), "{:?} at {next:?}", computed.status);
}

/// The rows of `ops bench`.
fn bench(program: &UnderAgent, arguments: &[&str], environment: &[(&str, PathBuf)]) -> Vec<Value> {
    let [recording] = &program.files()[..] else { panic!("there is one recording") };
    let mut command = Command::new(built::ggprof());
    command.args(["ops", "bench"]).arg(recording).args(arguments).args(["--format", "json"]);
    let output = command.envs(environment.iter().cloned()).output().expect("ggprof starts");
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let least = report["op_bench_least"].as_array().expect("what any op takes");
    assert!(least.iter().all(|row| row["least_ns"].as_f64() > Some(0.0)) && !least.is_empty());
    report["op_bench"].as_array().expect("a table").clone()
}

fn times(row: &Value) -> [Option<f64>; 3] {
    ["model_ns", "warm_ns", "cold_ns"].map(|key| row[key].as_f64())
}

#[test]
fn ops_run_alone_on_the_ggml_of_the_program() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut workload = UnderAgent::workload(&libraries, &["--threads", "2", "--experts", "4"]);
    workload.run_well();
    let rows = bench(&workload, &["--top", "4"], &[]);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert!(times(row).iter().all(|time| time.is_some_and(|ns| ns > 0.0)), "{row}");
        assert_eq!((&row["backend"], &row["problem"]), (&"CPU".into(), &Value::Null));
    }
    // Beside a ggml whose backend ends its process: that loses its own row.
    let broken = TempDir::new().unwrap();
    let base = "libggml-base.so";
    std::os::unix::fs::symlink(libraries.join(base), broken.path().join(base)).unwrap();
    let backend = built::host_library("ends_when_opened.c");
    std::fs::copy(backend, broken.path().join("libggml-cpu.so")).unwrap();
    let [broken, libraries] = [broken.path(), &libraries].map(|path| path.to_str().unwrap());
    let rows = bench(&workload, &["--top", "1", "--ggml", broken, "--ggml", libraries], &[]);
    let [lost, whole] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&lost["ggml"], &whole["ggml"]), (&broken.into(), &libraries.into()));
    assert!(lost["problem"].as_str().is_some_and(|why| why.contains("signal 6")), "{lost}");
    assert_eq!(times(lost)[1..], [None, None]);
    assert!(times(whole).iter().all(Option::is_some), "{whole}");
}

#[test]
fn ops_of_a_device_run_alone_on_the_device() {
    let Some((libraries, environment)) = published_ggml::vulkan_libraries(NEWEST) else { return };
    let mut workload = UnderAgent::workload(&libraries, &["--threads", "2", "--split"]);
    workload.command.envs(environment.iter().cloned()).env("GGPROF_VULKAN", "group");
    workload.run_well();
    // It compiles its shaders on a processor that other tests use as well.
    let wanted = ["--top", "1", "--backend", "Vulkan0", "--limit", "5min"];
    let rows = bench(&workload, &wanted, &environment);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert!(times(row).iter().all(|time| time.is_some_and(|ns| ns > 0.0)), "{row}");
    assert_eq!(row["backend"], "Vulkan0");
}
