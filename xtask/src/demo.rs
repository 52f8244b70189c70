//! `cargo xtask demo`: records a real llama.cpp and shows all results.

use crate::shell;
use anyhow::anyhow;
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::published_ggml;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOKENS: u32 = 64;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (name, model) = match arguments {
        [] => ("small", Model::SMALL),
        [flag] if flag == "--moe" => ("experts", Model::SMALL_EXPERTS),
        _ => return Err(crate::misused("demo")),
    };
    let ggprof = shell::build_ggprof()?;
    let program = program(&model.file(name)?)?;
    let outputs = Outputs::new()?;
    let mut record = Command::new(&ggprof);
    record
        .current_dir(shell::root())
        .args(["run", "--strict"])
        .args(["--output", &outputs.file("profile.json")]);
    record.args([
        "--output",
        &outputs.file("profile.ggprof"),
        "--html",
        &outputs.file("timeline.html"),
    ]);
    shell::run(record.arg("--").arg(program.get_program()).args(program.get_args()))?;
    let recording = outputs.file("profile.ggprof");
    let ggprof = ggprof.to_string_lossy();
    shell::run(&mut shell::command(&ggprof, &["report", &recording]))?;
    let trace = outputs.file("trace.json");
    shell::run(&mut shell::command(&ggprof, &["report", &recording, "--chrome-trace", &trace]))?;
    println!("\nWritten to demo/: profile.ggprof, profile.json, timeline.html, trace.json");
    Ok(())
}

/// A generation by llama.cpp, as it is published for Node.js.
fn program(model: &Path) -> anyhow::Result<Command> {
    // ggml's threads wait for each other by spinning: one core is left to others, because
    // without it each wait can take a turn of the scheduler, some milliseconds.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.saturating_sub(1).max(1);
    let version = published_ggml::NEWEST;
    Generation { version, model, tokens: TOKENS, threads, vulkan_layers: None }
        .command()
        .map_err(|problem| anyhow!("node-llama-cpp cannot be installed: {problem}"))
}

/// The directory that the demo leaves behind.
struct Outputs(PathBuf);

impl Outputs {
    fn new() -> anyhow::Result<Self> {
        let directory = PathBuf::from("demo");
        std::fs::create_dir_all(shell::root().join(&directory))?;
        Ok(Self(directory))
    }

    /// Seen from the project's directory, where the commands run.
    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}
