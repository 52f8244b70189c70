//! Memory for tensors: what is recorded is what llama.cpp itself says, and what the model and its
//! context need by arithmetic.

use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, debian_sid};
use serde_json::Value;
use tempfile::TempDir;

/// A row of `--by memory`.
#[derive(Debug)]
struct Use {
    device: String,
    memory: String,
    purpose: String,
    end: u64,
    peak: u64,
}

/// Records the command, and gives what is said of its memory and what it wrote.
fn recorded(command: &Command, more: &[(&str, PathBuf)]) -> (Vec<Use>, String) {
    recorded_with(&[], command, more)
}

fn recorded_with(
    options: &[&str],
    command: &Command,
    more: &[(&str, PathBuf)],
) -> (Vec<Use>, String) {
    let place = TempDir::new().expect("a directory");
    let file = place.path().join("p.ggprof");
    let mut run = Command::new(built::ggprof());
    run.arg("run").args(options).arg("-o").arg(&file).arg("--").arg(command.get_program());
    run.args(command.get_args()).envs(more.iter().map(|(name, value)| (name, value)));
    let output = run.output().expect("ggprof runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (uses(&file), said)
}

fn uses(file: &Path) -> Vec<Use> {
    let mut report = Command::new(built::ggprof());
    report.arg("report").arg(file).args(["--by", "memory", "--format", "json"]);
    let output = report.output().expect("ggprof runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["memory"].as_array().expect("a table").iter();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.map(|row| Use {
        device: text(row, "device"),
        memory: text(row, "memory"),
        purpose: text(row, "use"),
        end: row["end_bytes"].as_u64().expect("bytes"),
        peak: row["peak_bytes"].as_u64().expect("bytes"),
    })
    .collect()
}

fn sum(uses: &[Use], purpose: &str) -> u64 {
    uses.iter().filter(|one| one.purpose == purpose).map(|one| one.peak).sum()
}

/// Kind of memory and megabytes of each line about a buffer of this sort, as llama.cpp prints them:
/// `load_tensors:   CPU_Mapped model buffer size =     0.14 MiB`.
fn printed(log: &str, sort: &str) -> Vec<(String, f64)> {
    let words = format!(" {sort} buffer size = ");
    let line = |line: &str| {
        let (before, after) = line.split_once(&words)?;
        let memory = before.split_whitespace().last()?.to_owned();
        Some((memory, after.trim().strip_suffix("MiB")?.trim().parse().ok()?))
    };
    log.lines().filter_map(line).collect()
}

/// Weights lie side by side, each at an address of its own alignment.
#[track_caller]
fn check_weights(uses: &[Use], model: &Model) {
    let (recorded, needed) = (sum(uses, "weights"), model.weight_bytes());
    let padding = 128 * (model.layers * 16 + 3);
    assert!((needed..needed + padding).contains(&recorded), "{recorded} for {needed} in {uses:?}");
}

/// Keys and values of so many tokens, two bytes each.
fn cache_bytes(model: &Model, tokens: u64) -> u64 {
    2 * 2 * tokens * model.layers * (model.embedding / model.heads * model.kv_heads)
}

/// The newest llama.cpp, whose parts each map what they need of the file.
#[test]
fn sizes_are_those_that_llama_prints() {
    let model = Model::TINY.file("tiny").expect("the model can be written");
    let Some(mut bench) = debian_sid::command("llama-bench", &["cpu"]) else { return };
    bench.arg("-m").arg(model).args(["-v", "-p", "16", "-n", "0", "-r", "1", "-t", "1"]);
    let (uses, log) = recorded(&bench, &[]);
    check_weights(&uses, &Model::TINY);
    assert_eq!(sum(&uses, "KV cache"), cache_bytes(&Model::TINY, 256));
    for (sort, purpose) in [("model", "weights"), ("KV", "KV cache"), ("compute", "compute")] {
        let printed = printed(&log, sort);
        assert!(!printed.is_empty(), "{sort} in {log}");
        for (memory, _) in &printed {
            let lines = printed.iter().filter(|(other, _)| other == memory);
            let megabytes: f64 = lines.clone().map(|(_, size)| size).sum();
            let recorded = uses.iter().find(|one| one.memory == *memory && one.purpose == purpose);
            let recorded = recorded.unwrap_or_else(|| panic!("{memory} {purpose} in {uses:?}"));
            // Each line is rounded to two digits.
            let error = (recorded.peak as f64 / 1048576.0 - megabytes).abs();
            assert!(error <= 0.005 * lines.count() as f64 + 1e-9, "{megabytes} MiB: {recorded:?}");
            assert_eq!(recorded.end, recorded.peak, "it is there until the end");
        }
    }
    // To four digits, when the context is freed.
    let exact = log.lines().find_map(|line| {
        let (_, rest) = line.split_once("compute buffer size is")?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    let compute = sum(&uses, "compute") as f64 / 1048576.0;
    assert_eq!(Some(format!("{compute:.4}")), exact);
}

#[test]
fn a_device_has_its_own_and_pins_some_of_the_hosts() {
    let Some((_, environment)) = published_ggml::vulkan_libraries(NEWEST) else { return };
    let model = Model::TINY.file("tiny").expect("the model can be written");
    let (tokens, threads, vulkan_layers) = (4, 1, Some(99));
    let generation = Generation { version: NEWEST, model: &model, tokens, threads, vulkan_layers };
    let command = match generation.command() {
        Ok(command) => command,
        Err(problem) => return eprintln!("not tested: {problem}"),
    };
    let (uses, _) = recorded(&command, &environment);
    check_weights(&uses, &Model::TINY);
    let of = |device: &str, memory: &str, purpose: &str| {
        let is =
            |one: &&Use| (&*one.device, &*one.memory, &*one.purpose) == (device, memory, purpose);
        uses.iter().find(is).unwrap_or_else(|| panic!("{device} {memory} {purpose}: {uses:?}")).peak
    };
    assert_eq!(of("Vulkan0", "Vulkan0", "KV cache"), cache_bytes(&Model::TINY, 1024));
    assert!(of("Vulkan0", "Vulkan0", "weights") > of("CPU", "CPU_Mapped", "weights"));
    assert!(of("Vulkan0", "Vulkan0", "compute") > 0);
    assert!(of("CPU", "Vulkan_Host", "compute") > 0);
}

/// The weights are older than the recording, and the context is freed when it is over.
#[test]
fn what_was_made_before_the_recording_began_is_in_it() {
    let model = Model::TINY.file("tiny").expect("the model can be written");
    let Some(mut bench) = debian_sid::command("llama-bench", &["cpu"]) else { return };
    bench.arg("-m").arg(model).args(["-p", "16", "-n", "0", "-r", "4", "-t", "1"]);
    let (uses, _) = recorded_with(&["--graphs", "3..4"], &bench, &[]);
    check_weights(&uses, &Model::TINY);
    assert_eq!(sum(&uses, "KV cache"), cache_bytes(&Model::TINY, 256));
    assert!(uses.iter().all(|one| one.end == one.peak), "{uses:?}");
}

/// Whoever was freed while nothing was recorded is known to be gone when it is again.
#[test]
fn a_stop_loses_no_death() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut program = UnderAgent::new(built::host_program("makes_buffers.c"));
    program.command.arg(libraries);
    program.run_well();
    let recording = program.recording();
    assert_eq!((recording.lost(), recording.completed_runs().count()), (0, 2));
    // The sizes of those that the program makes itself tell them apart.
    let kilobytes = recording.buffers.values().map(|one| (one.bytes >> 10, one));
    let own = kilobytes.filter(|(size, _)| (1000..=1004).contains(size));
    let mut own: Vec<_> = own.map(|(size, one)| (size, one.usage, one.died_ns != 0)).collect();
    own.sort_unstable();
    assert_eq!(own, [(1000, 1, false), (1002, 0, true), (1004, 0, true)]);
}

/// A child process costs a program for each page of its memory, so all of them come before the model.
#[test]
fn ggml_is_tried_out_before_memory_is_large() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut program = UnderAgent::new(built::host_program("makes_memory_first.c"));
    program.command.arg(libraries);
    let output = program.run_well();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "children while making memory: some\nchildren while computing: none\n");
    assert_eq!(program.recording().lost(), 0);
}
