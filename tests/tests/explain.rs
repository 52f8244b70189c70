//! Slow programs whose cause is known: `ggprof explain` names it first, and says what to change. Healthy
//! ones have nothing to change. The budget of every phase adds up, here and summed up from the events.
//!
//! `GGPROF_GAINS=3` makes each test print what following the advice brought, of what was promised.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ggprof_e2e::asked::{ask, list};
use ggprof_e2e::explained::{
    Recorded, check, check_healthy, check_named, check_without, named_first, print_gain, recording,
};
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::{budget, built, debian_sid, tool};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Attention that takes as long as all the rest of a token, because nothing else is large.
const ATTENTIVE: Model =
    Model { embedding: 512, feed_forward: 64, heads: 8, kv_heads: 8, ..Model::TINY };

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
}

/// Of an H200 and a CPU: kernels count on one side, and what the CPU does under them counts once.
#[test]
fn the_sum_of_events_of_all_recordings_that_are_kept() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut checked = 0;
    for folder in ["examples", "tests/recordings", "crates/ggprof/tests/cli"] {
        let files = std::fs::read_dir(project.join(folder)).unwrap().flatten();
        let files = files.map(|file| file.path());
        let is_packed = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
        };
        for recording in files.filter(is_packed) {
            assert!(budget::check_events(&recording), "{}", recording.display());
            checked += 1;
        }
    }
    assert!(checked >= 4);
}

/// Their names change now and then; advice has the newest.
#[test]
fn advised_options_are_those_of_llama_cpp() {
    // Of ggprof, of nvidia-smi, of docker, and of builds before the summer of 2026.
    const OTHERS: [&str; 5] = ["--by", "-d", "-q", "--cpus", "--no-mmap"];
    let Some(mut server) = debian_sid::command("llama-server", &["cpu"]) else { return };
    let help = server.arg("--help").output().unwrap().stdout;
    let known = options(&String::from_utf8_lossy(&help));
    let words = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ggprof-report/src/findings");
    let files = std::fs::read_dir(words).unwrap().flatten().map(|file| file.path());
    let mut advised = BTreeSet::new();
    for file in files.filter(|file| !file.ends_with("tests.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        // Every second piece is a literal.
        advised.extend(text.split('"').skip(1).step_by(2).flat_map(options));
    }
    assert!(advised.len() > 20, "{advised:?}");
    let is_unknown = |it: &&String| !known.contains(*it) && !OTHERS.contains(&it.as_str());
    let unknown: Vec<&String> = advised.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {advised:?}");
}

/// Such as `-ngl` and `--no-op-offload`.
fn options(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let is_option = |word: &&str| {
        let name = word.strip_prefix("--").or(word.strip_prefix('-'));
        name.is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_alphabetic()))
    };
    words.filter(is_option).map(str::to_owned).collect()
}

#[test]
fn too_many_threads() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let with = |threads: usize| {
        llama_bench(&small(), &["-t", &threads.to_string(), "-p", "0", "-n", "12"])
    };
    let Some(command) = with(4 * processors) else { return };
    check(&Recorded::of(command).explained(), "R9", "tg12", "-t ");
    let explained = |threads: usize| Recorded::of(with(threads).unwrap()).explained();
    check_without(&explained(processors), "R9");
    let advised = || explained(processors);
    print_gain("too many threads", "tg", || explained(4 * processors), advised);
}

/// The same program behind another one, which leaves it less of the machine.
fn behind(words: &[&str], bench: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(bench.get_program()).args(bench.get_args());
    command
}

#[test]
fn more_threads_than_processors_that_the_program_may_use() {
    let Some(bench) = llama_bench(&small(), &["-t", "4", "-p", "0", "-n", "12"]) else { return };
    let command = behind(&["taskset", "-c", "0"], &bench);
    let explained = Recorded::of(command).explained();
    check(&explained, "R9", "tg12", "-t 1 ");
    assert_eq!(named_first(&explained)["sentence"], "4 threads compute on one processor");
}

/// A control group that may use a quarter of a processor. Removed when this is dropped.
struct Limited(PathBuf);

impl Limited {
    /// `None` where none can be made.
    fn new() -> Option<Limited> {
        let made = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].iter().find_map(|parent| {
            let group = Path::new(parent).join(format!("ggprof-{}", std::process::id()));
            std::fs::create_dir(&group).ok()?;
            let group = Limited(group);
            let limits = [("cpu.max", "25000 100000"), ("cpu.cfs_quota_us", "25000")];
            let is_limited = |(file, limit): &(&str, &str)| {
                let file = group.0.join(file);
                file.exists() && std::fs::write(file, limit).is_ok()
            };
            limits.iter().any(is_limited).then_some(group)
        });
        if made.is_none() {
            eprintln!("no control group can be made here");
        }
        made
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_limit_of_processor_time() {
    let Some(group) = Limited::new() else { return };
    // Long enough for several readings of the sensors, also where they are read rarely.
    let words = ["-t", "1", "-p", "0", "-n", "512"];
    let Some(bench) = llama_bench(&small(), &words) else { return };
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let command = behind(&["sh", "-c", &enter, "sh"], &bench);
    check(&Recorded::of(command).explained(), "R24", "tg512", "a higher limit");
    check_without(&Recorded::of(bench).explained(), "R24");
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
    let spin = |_| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Neighbour(shell.spawn().unwrap())
    };
    let beside = |neighbours: usize| {
        let command = llama_bench(&small(), &words)?;
        let _neighbours: Vec<Neighbour> = (0..neighbours).map(spin).collect();
        Some(Recorded::of(command).explained())
    };
    let Some(explained) = beside(processors / 2) else { return };
    check(&explained, "R8", "tg64", "stop what else runs");
    let evidence = list(&explained, "findings")[0]["because"].as_str().unwrap();
    assert!(evidence.contains("other programs used"), "{evidence}");
    let staged = || beside(processors / 2).unwrap();
    print_gain("a neighbour", "tg", staged, || beside(0).unwrap());
}

#[test]
fn a_pause_between_tokens() {
    let model = Model::TINY.file("tiny").unwrap();
    let generation =
        Generation { version: NEWEST, model: &model, tokens: 16, threads: 1, vulkan_layers: None };
    let with = |wishes: &str| {
        let mut command = tool::fetched("node-llama-cpp", generation.command())?;
        command.env("GENERATE_WISHES", wishes);
        Some(Recorded::of(command).explained())
    };
    let Some(explained) = with(r#"{"pauseMs": 5}"#) else { return };
    check(&explained, "R6", "tg", "sampling");
    let staged = || with(r#"{"pauseMs": 5}"#).unwrap();
    print_gain("a pause between tokens", "tg", staged, || with("{}").unwrap());
}

#[test]
fn a_prompt_in_small_pieces() {
    let with =
        |batch: &str| llama_bench(&small(), &["-t", "1", "-p", "96", "-n", "4", "-ub", batch]);
    let Some(command) = with("4") else { return };
    check(&Recorded::of(command).explained(), "R19", "pp96", "-ub 512");
    let explained = |batch: &str| Recorded::of(with(batch).unwrap()).explained();
    check_healthy(&explained("512"));
    print_gain("a prompt in small pieces", "pp", || explained("4"), || explained("512"));
}

#[test]
fn a_context_that_grows() {
    let model = ATTENTIVE.file("attentive-512").unwrap();
    let with = |keys: &str| {
        let words = ["-t", "1", "-p", "0", "-n", "1500", "-fa", "0", "-ctk", keys];
        llama_bench(&model, &words)
    };
    let Some(command) = with("f16") else { return };
    // What waits for a processor besides is not counted as growth, so beside other programs its part is small.
    check_named(&Recorded::of(command).explained(), "R14", "tg1500", "-ctk q8_0");
    let explained = |keys: &str| Recorded::of(with(keys).unwrap()).explained();
    print_gain("a growing context", "tg", || explained("f16"), || explained("q8_0"));
}

/// A conversation of four requests with a server, which keeps what it computed or does not.
fn conversation(cache_prompt: bool) -> Option<Value> {
    let tell = "Tell me of llamas. ".repeat(8);
    let more = "And what else is there to know of them? ".repeat(4);
    let prompts = (0..4).map(|before| format!("{tell}{}", more.repeat(before)));
    requests(&prompts.collect::<Vec<_>>(), cache_prompt)
}

/// What `explain` says of a server that was asked one after the other.
fn requests(prompts: &[String], cache_prompt: bool) -> Option<Value> {
    let model = Model::TINY.file("tiny").unwrap();
    let (command, port) = llama_server::command(&model, 1)?;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("p.ggprof");
    let server = LlamaServer::start(recording(&command, &file), port);
    for prompt in prompts {
        let body = json!({
            "prompt": prompt,
            "n_predict": 2,
            "ignore_eos": true,
            "cache_prompt": cache_prompt,
            "temperature": 0,
        });
        server.ask("/completion", &body);
    }
    server.end();
    Some(ask(&[&file], &["explain"]))
}

#[test]
fn a_prompt_that_is_processed_again() {
    let Some(explained) = conversation(false) else { return };
    check(&explained, "R13", "pp", "cache_prompt");
    check_without(&conversation(true).unwrap(), "R13");
    let (staged, followed) = (|| conversation(false).unwrap(), || conversation(true).unwrap());
    print_gain("a prompt processed again", "pp", staged, followed);
}

/// Some are longer than the one before, and have nothing else to do with it.
#[test]
fn questions_that_have_nothing_to_do_with_each_other() {
    let prompts = [("ab", 40), ("cd", 60), ("ef", 90), ("gh", 30), ("ij", 70), ("kl", 45)];
    let prompts = prompts.map(|(words, times)| words.repeat(times));
    let Some(explained) = requests(&prompts, true) else { return };
    check_without(&explained, "R13");
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

/// What the driver calls the device that a recorded program used.
fn device_name(recorded: &Recorded) -> String {
    let json = recorded.file.with_extension("json");
    let mut convert = Command::new(built::ggprof());
    convert.arg("convert").arg(&recorded.file).arg("-o").arg(&json);
    assert!(convert.status().unwrap().success());
    let whole: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let is_it = |backend: &&Value| backend["device"] == "Vulkan0";
    let backend = list(&whole, "backends").iter().find(is_it).expect("the device");
    backend["description"].as_str().expect("a name").to_owned()
}

/// Beside a stand-in for a driver that says at which clock the device runs.
#[test]
fn a_clock_that_is_held_down() {
    let Some(mut command) = on_vulkan(64) else { return };
    command.env("STAND_IN_NAME", device_name(&Recorded::of(on_vulkan(1).unwrap())));
    let driver = TempDir::new().unwrap();
    let library = built::host_library("nvml_stand_in.c");
    std::fs::copy(library, driver.path().join("libnvidia-ml.so.1")).unwrap();
    command.env("LD_LIBRARY_PATH", driver.path()).env("STAND_IN_MHZ", "990");
    let explained = Recorded::of(command).ask(&["explain", "--phase", "tg"]);
    check(&explained, "R16", "tg", "power and temperature");
}
