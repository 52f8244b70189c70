//! Programs and builds of ggml that must be recorded completely and undisturbed, each run with
//! and without the agent.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arm64::{self, Arm64};
use crate::model::Model;
use crate::musl::{self, Musl};
use crate::node_llama::Generation;
use crate::source_ggml::{self, Compiler, Kept};
use crate::{built, debian_sid, image_program, llama_node, published_ggml, whisper_model};

mod finding;

pub use finding::Finding;

/// A program to record.
pub struct Row {
    pub name: String,
    pub platform: Platform,
    command: Box<dyn Fn() -> Result<Command, String>>,
    /// The way by which the ops of its CPU backend are to be seen.
    tier: &'static str,
    /// What is written before the figure that tells how fast it was.
    speed: Speed,
    /// Its last line of output is a result, which must not change.
    has_result: bool,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)
    }
}

/// What it was built for: a processor and a C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    X86Glibc,
    X86Musl,
    /// Emulated, a program at a time.
    Arm64Glibc,
}

impl Platform {
    pub fn words(self) -> &'static str {
        match self {
            Platform::X86Glibc => "x86-64, glibc",
            Platform::X86Musl => "x86-64, musl",
            Platform::Arm64Glibc => "aarch64, glibc, emulated",
        }
    }

    fn agent(self) -> Result<PathBuf, String> {
        match self {
            Platform::X86Glibc => Ok(built::agent()),
            Platform::X86Musl => musl::agent(),
            Platform::Arm64Glibc => arm64::agent(),
        }
    }
}

#[derive(Clone, Copy)]
enum Speed {
    Rate(&'static str),
    Time(&'static str),
    /// That of an emulator tells nothing, and some say none.
    Unknown,
}

/// From October 2024 on.
const NODE_LLAMA: [&str; 8] =
    ["3.1.1", "3.3.0", "3.3.2", "3.7.0", "3.12.4", "3.14.5", "3.19.1", "3.22.1"];
/// Enough for a rate to mean something.
const TOKENS: u32 = 128;

pub fn all() -> Vec<Row> {
    let mut rows: Vec<Row> = NODE_LLAMA.into_iter().map(node_llama).collect();
    rows.extend(["3.14.5", "3.22.1"].map(node_llama_vulkan));
    rows.extend([fugood(), sid_bench(), sid_server(), sid_whisper(), image()]);
    let symbolic = source_ggml::SYMBOLIC;
    rows.push(from_source("gcc, -Bsymbolic-functions", "C", Compiler::Gcc, symbolic));
    rows.push(from_source("clang", "A", Compiler::Clang, &[]));
    rows.push(from_source("clang, -Bsymbolic-functions", "C", Compiler::Clang, symbolic));
    rows.extend([linked_in(), hidden()]);
    rows.extend([musllinux(), sid_bench_arm64()]);
    rows.extend(["3.3.0", "3.22.1"].map(node_llama_arm64));
    rows
}

/// Those that no other test runs and that are quick.
pub fn short() -> Vec<Row> {
    // Not 3.7.0: on Node.js 20 it fails a check of V8's once in a hundred runs, also without us.
    vec![node_llama("3.1.1"), node_llama("3.12.4"), fugood(), sid_server(), sid_whisper()]
}

fn node_llama(version: &'static str) -> Row {
    // Before December 2024 no call announced an op.
    let tier = if matches!(version, "3.1.1" | "3.3.0") { "C" } else { "A" };
    let speed = Speed::Rate("tokens_per_second=");
    row(format!("node-llama-cpp {version}"), tier, speed, true, move || {
        Generation { version, model: &tiny()?, tokens: TOKENS, threads: 1, vulkan_layers: None }
            .command()
    })
}

fn node_llama_vulkan(version: &'static str) -> Row {
    let name = format!("node-llama-cpp {version}, Vulkan");
    row(name, "A", Speed::Time("median_ns="), false, move || {
        let unavailable = || "no software Vulkan device, or no libraries for it".to_owned();
        let (libraries, environment) =
            published_ggml::vulkan_libraries(version).ok_or_else(unavailable)?;
        let mut command = workload(&libraries);
        command.arg("--split").envs(environment);
        Ok(command)
    })
}

fn fugood() -> Row {
    let name = format!("@fugood/llama.node {} (clang, LTO)", llama_node::VERSION);
    row(name, "A", Speed::Rate("tokens_per_second="), true, || {
        llama_node::command(&tiny()?, TOKENS)
    })
}

fn sid_bench() -> Row {
    row("Debian sid's llama-bench", "A", Speed::Rate("\"avg_ts\": "), false, || {
        let mut command = sid("llama-bench")?;
        command.args(["-t", "1", "-p", "0", "-r", "3", "-o", "jsonl", "-n"]);
        command.arg(TOKENS.to_string()).arg("-m");
        command.arg(tiny()?);
        Ok(command)
    })
}

fn sid_server() -> Row {
    row("Debian sid's llama-server", "A", Speed::Rate("tokens_per_second="), true, || {
        let server = sid("llama-server")?;
        let mut command = Command::new("node");
        command.arg(built::application("ask-server.mjs")).arg(TOKENS.to_string());
        command.arg(server.get_program());
        command.args(server.get_args()).args(["-t", "1", "-tb", "1", "-c", "512", "-np", "1"]);
        command.args(["--host", "127.0.0.1", "-m"]).arg(tiny()?);
        Ok(command)
    })
}

fn sid_whisper() -> Row {
    row("Debian sid's whisper-bench", "A", Speed::Time("encode time = "), false, || {
        let mut command = sid("whisper-bench")?;
        command.args(["-t", "1", "-m"]).arg(whisper_model::file().map_err(|e| e.to_string())?);
        Ok(command)
    })
}

fn image() -> Row {
    let name = format!("stable-diffusion.cpp of {} (clang)", image_program::NAME);
    row(name, "C", Speed::Time("\"upscaleMs\":"), true, || image_program::prepared(1, 48))
}

fn from_source(
    how: &str,
    tier: &'static str,
    compiler: Compiler,
    link: &'static [&'static str],
) -> Row {
    let name = format!("ggml {} by {how}", source_ggml::VERSION);
    row(name, tier, Speed::Time("median_ns="), false, move || {
        Ok(workload(&source_ggml::built_libraries(compiler, link)?))
    })
}

fn linked_in() -> Row {
    let name = format!("ggml {} linked into a program", source_ggml::VERSION);
    row(name, "C", Speed::Time("median_ns="), true, || {
        let mut command = Command::new(source_ggml::built_program("ggml_linked_in.c")?);
        command.args(["300", "1"]);
        Ok(command)
    })
}

fn hidden() -> Row {
    let name = format!("ggml {} hidden in a library", source_ggml::VERSION);
    row(name, "C", Speed::Time("median_ns="), true, || {
        let mut command = Command::new(built::host_program("opens_hidden_ggml.c"));
        command
            .arg(source_ggml::built_around("ggml_linked_in.c", Kept::Hidden)?)
            .args(["300", "1"]);
        command.env("GGML_NO_BACKTRACE", "1");
        Ok(command)
    })
}

fn musllinux() -> Row {
    let row = row("pywhispercpp 1.5.1's ggml, in workers", "A", Speed::Unknown, false, || {
        Musl::prepared()?.command("forks_workers.c")
    });
    Row { platform: Platform::X86Musl, ..row }
}

fn sid_bench_arm64() -> Row {
    let row = row("Debian sid's llama-bench", "A", Speed::Unknown, false, || {
        let mut command = Arm64::prepared()?.debian("llama-bench");
        command.args(["-t", "2", "-p", "16", "-n", "4", "-r", "1", "-m"]).arg(tiny()?);
        Ok(command)
    });
    Row { platform: Platform::Arm64Glibc, ..row }
}

fn node_llama_arm64(version: &'static str) -> Row {
    let tier = if version == published_ggml::BEFORE_ANNOUNCED_OPS { "C" } else { "A" };
    let name = format!("ggml of node-llama-cpp {version} (clang)");
    let row = row(name, tier, Speed::Unknown, false, move || {
        let libraries = arm64::published(version).ok_or("its package cannot be had")?;
        let mut command = Arm64::prepared()?.workload(&libraries);
        command.args(["--threads", "2", "--graphs", "3", "--layers", "2", "--prompt", "8"]);
        Ok(command)
    });
    Row { platform: Platform::Arm64Glibc, ..row }
}

fn row(
    name: impl Into<String>,
    tier: &'static str,
    speed: Speed,
    has_result: bool,
    command: impl Fn() -> Result<Command, String> + 'static,
) -> Row {
    let (name, platform) = (name.into(), Platform::X86Glibc);
    Row { name, platform, command: Box::new(command), tier, speed, has_result }
}

fn workload(libraries: &Path) -> Command {
    let mut command = Command::new(built::workload());
    command.arg(libraries).args(["--graphs", "200", "--threads", "1"]);
    command.args(["--layers", "6", "--embd", "64"]);
    command
}

fn sid(program: &str) -> Result<Command, String> {
    debian_sid::prepared(program, &["cpu"])
}

fn tiny() -> Result<std::path::PathBuf, String> {
    Model::TINY.file("tiny").map_err(|error| error.to_string())
}
