//! Slow programs whose cause is known: `ggprof explain` names it first, and says what to change. Healthy
//! ones have nothing to change. The budget of every phase adds up, here and summed up from the events.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::{budget, built, debian_sid, tool};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Attention that takes as long as all the rest of a token, because nothing else is large.
const ATTENTIVE: Model = Model { heads: 32, kv_heads: 32, feed_forward: 64, ..Model::TINY };

/// A recording in a directory of its own.
struct Recorded {
    file: PathBuf,
    _directory: TempDir,
}

impl Recorded {
    fn of(command: Command) -> Recorded {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("p.ggprof");
        let output = recording(&command, &file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Recorded { file, _directory: directory }
    }

    /// What `ggprof` answers in JSON.
    fn ask(&self, words: &[&str]) -> Value {
        ask(&self.file, words)
    }

    fn explained(&self) -> Value {
        let explained = self.ask(&["explain"]);
        assert_ne!(budget::check_rows(&explained), 0, "{explained:#}");
        explained
    }
}

/// The command under `ggprof run`.
fn recording(command: &Command, file: &Path) -> Command {
    let mut run = Command::new(built::ggprof());
    run.args(["run", "-o"]).arg(file).arg("--").arg(command.get_program());
    run.args(command.get_args());
    for (name, value) in command.get_envs() {
        run.env(name, value.unwrap_or_default());
    }
    run
}

fn ask(file: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(built::ggprof());
    command.args(&words[..1]).arg(file).args(&words[1..]).args(["--format", "json"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The first finding is of this rule and has these words in what to try.
#[track_caller]
fn check(explained: &Value, rule: &str, phase: &str, advice: &str) {
    let first = &list(explained, "findings")[0];
    let text = |key: &str| first[key].as_str().unwrap_or_default();
    assert_eq!(text("rule"), rule, "{explained:#}");
    assert!(text("phase").starts_with(phase), "{first:#}");
    assert!(text("try").contains(advice), "{first:#}");
}

/// Nothing is worth a change, and that is said.
#[track_caller]
fn check_healthy(explained: &Value) {
    assert_eq!(list(explained, "findings"), [] as [Value; 0], "{explained:#}");
    assert!(explained["healthy"].as_str().unwrap().starts_with("No single cause"));
}

/// Debian sid's llama-bench on a model.
fn llama_bench(model: &Path, words: &[&str]) -> Option<Command> {
    let mut command = debian_sid::command("llama-bench", &["cpu"])?;
    command.arg("-m").arg(model).args(["-r", "1"]).args(words);
    Some(command)
}

fn small() -> PathBuf {
    Model::SMALL.file("small").unwrap()
}

#[test]
fn a_healthy_run_and_the_sum_of_its_events() {
    let Some(command) = llama_bench(&small(), &["-t", "1", "-p", "48", "-n", "8"]) else { return };
    let recorded = Recorded::of(command);
    let explained = recorded.explained();
    check_healthy(&explained);
    // Somebody else's sum: the time in which an op ran in the phase's graph runs.
    let json = recorded.file.with_extension("json");
    let mut convert = Command::new(built::ggprof());
    convert.arg("convert").arg(&recorded.file).arg("-o").arg(&json);
    assert!(convert.status().unwrap().success());
    let exported: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let by_run = recorded.ask(&["report", "--by", "run"]);
    for label in ["pp48", "tg8"] {
        let runs: Vec<u64> = (0..)
            .zip(list(&by_run, "runs"))
            .filter(|(_, run)| run["phase"] == label)
            .map(|(number, _)| number)
            .collect();
        assert!(!runs.is_empty(), "{by_run:#}");
        let mut times: Vec<(u64, u64)> = list(&exported, "records")
            .iter()
            .filter(|it| it["type"] == 0 && runs.contains(&it["graph_run"].as_u64().unwrap()))
            .map(|it| (it["start_ns"].as_u64().unwrap(), it["duration_ns"].as_u64().unwrap()))
            .collect();
        times.sort_unstable();
        let (mut sum, mut until) = (0, 0);
        for (start, duration) in times {
            let end = start + duration;
            sum += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        let is_computing = |row: &&Value| {
            row["phase"] == label
                && (row["spent"] == "computing" || row["spent"] == "unequal_threads")
        };
        let computing = list(&explained, "budget").iter().filter(is_computing);
        assert_eq!(computing.map(|row| row["ns"].as_u64().unwrap()).sum::<u64>(), sum, "{label}");
    }
}

#[test]
fn too_many_threads() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let threads = (4 * processors).to_string();
    let words = ["-t", &threads, "-p", "0", "-n", "12"];
    let Some(command) = llama_bench(&small(), &words) else { return };
    check(&Recorded::of(command).explained(), "R9", "tg12", "-t ");
}

/// Ended when this is dropped.
struct Neighbour(Child);

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_neighbour_on_the_same_cores() {
    let processors = std::thread::available_parallelism().unwrap().get();
    if processors < 2 {
        return;
    }
    let words = ["-t", &processors.to_string(), "-p", "0", "-n", "64", "-r", "2"];
    let Some(command) = llama_bench(&small(), &words) else { return };
    let spin = |_| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Neighbour(shell.spawn().unwrap())
    };
    let neighbours: Vec<Neighbour> = (0..processors / 2).map(spin).collect();
    let explained = Recorded::of(command).explained();
    drop(neighbours);
    check(&explained, "R8", "tg64", "stop what else runs");
    let evidence = list(&explained, "findings")[0]["because"].as_str().unwrap();
    assert!(evidence.contains("other programs used"), "{evidence}");
}

#[test]
fn a_pause_between_tokens() {
    let model = Model::TINY.file("tiny").unwrap();
    let generation =
        Generation { version: NEWEST, model: &model, tokens: 16, threads: 1, vulkan_layers: None };
    let Some(mut command) = tool::fetched("node-llama-cpp", generation.command()) else { return };
    command.env("GENERATE_WISHES", r#"{"pauseMs": 5}"#);
    check(&Recorded::of(command).explained(), "R6", "tg", "sampling");
}

#[test]
fn a_prompt_in_small_pieces() {
    let words = ["-t", "1", "-p", "96", "-n", "4", "-ub", "4"];
    let Some(command) = llama_bench(&small(), &words) else { return };
    check(&Recorded::of(command).explained(), "R19", "pp96", "-ub 512");
}

#[test]
fn a_context_that_grows() {
    let model = ATTENTIVE.file("attentive").unwrap();
    let words = ["-t", "1", "-p", "0", "-n", "700", "-fa", "0"];
    let Some(command) = llama_bench(&model, &words) else { return };
    check(&Recorded::of(command).explained(), "R14", "tg700", "-fa on");
}

#[test]
fn a_prompt_that_is_processed_again() {
    let model = Model::TINY.file("tiny").unwrap();
    let Some((command, port)) = llama_server::command(&model, 1) else { return };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("p.ggprof");
    let server = LlamaServer::start(recording(&command, &file), port);
    let mut conversation = "Tell me of llamas. ".repeat(8);
    for _ in 0..4 {
        let body = json!({
            "prompt": conversation,
            "n_predict": 2,
            "ignore_eos": true,
            "cache_prompt": false,
            "temperature": 0,
        });
        server.ask("/completion", &body);
        conversation += &"And what else is there to know of them? ".repeat(4);
    }
    server.end();
    let explained = ask(&file, &["explain"]);
    check(&explained, "R13", "pp", "cache_prompt");
}

/// A generation on Mesa's software device.
fn on_vulkan(tokens: u32) -> Option<Command> {
    let (_, environment) = published_ggml::vulkan_libraries(NEWEST)?;
    let model = Model::TINY.file("tiny").unwrap();
    let generation =
        Generation { version: NEWEST, model: &model, tokens, threads: 1, vulkan_layers: Some(99) };
    let mut command = tool::fetched("node-llama-cpp", generation.command())?;
    command.envs(environment);
    Some(command)
}

#[test]
fn pipelines_compiled_in_the_first_run() {
    let Some(command) = on_vulkan(4) else { return };
    let recorded = Recorded::of(command);
    check(&recorded.explained(), "R17", "pp", "warm up");
    // Of the software device.
    let system = &recorded.ask(&["report", "--issue"])["system"];
    let driver = system["driver"][0].as_str().unwrap_or_default();
    assert!(driver.starts_with("Vulkan0 0.0."), "{system}");
    assert!(system["system"].as_str().is_some_and(|it| it.contains("Linux ")), "{system}");
}

/// Beside a stand-in for a driver that says at which clock the device runs.
#[test]
fn a_clock_that_is_held_down() {
    let Some(mut command) = on_vulkan(64) else { return };
    let driver = TempDir::new().unwrap();
    let library = built::host_library("nvml_stand_in.c");
    std::fs::copy(library, driver.path().join("libnvidia-ml.so.1")).unwrap();
    command.env("LD_LIBRARY_PATH", driver.path()).env("STAND_IN_MHZ", "990");
    let explained = Recorded::of(command).ask(&["explain", "--phase", "tg"]);
    check(&explained, "R16", "tg", "power and temperature");
}
