//! What is run: real programs on several versions and builds of ggml, each with a result that it
//! prints and that is always the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::model::Model;
use crate::node_llama::Generation;
use crate::source_ggml::{self, Compiler, Kept};
use crate::trial::Trial;
use crate::{built, changed_ggml, debian_sid, llama_node, old_ggml, published_ggml, rust_programs};

/// A program and what hazards have to know of it.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    make: fn() -> Result<Command, String>,
    /// Computes on a Vulkan device, too.
    pub(super) on_vulkan: bool,
    /// Has its own handlers for signals that others leave alone.
    pub(super) is_node: bool,
    /// Prints how fast it was, which is never the same.
    pub(super) prints_figures: bool,
    /// What it says when it fails by a fault of its own, now and then.
    pub(super) own_fault: Option<&'static str>,
    /// Computes several graphs at once.
    pub(super) has_contexts: bool,
    /// Forks children that compute, too.
    pub(super) has_children: bool,
    /// Runs for less than a second where there is room.
    pub(super) is_quick: bool,
}

/// For the workload. Threads of one graph wait for each other at every node, which takes long
/// where others use the machine, too: so they have few of them.
const ONE_THREAD: &[&str] = &["--graphs", "80", "--layers", "3", "--threads", "1"];
const TWO_THREADS: &[&str] = &["--graphs", "12", "--layers", "1", "--threads", "2"];
const WITH_EXPERTS: &[&str] =
    &["--graphs", "40", "--layers", "3", "--threads", "1", "--experts", "8"];
const THREE_CONTEXTS: &[&str] =
    &["--graphs", "40", "--layers", "3", "--threads", "1", "--contexts", "3"];
const AS_A_PLUGIN: &[&str] = &["--graphs", "80", "--layers", "3", "--threads", "1", "--local"];
const SPLIT: &[&str] =
    &["--graphs", "12", "--layers", "2", "--threads", "1", "--prompt", "3", "--split"];

pub(super) const ALL: &[Program] = &[
    quick("workload 3.3.0", || workload("3.3.0", ONE_THREAD)),
    quick("workload 3.3.2", || workload("3.3.2", TWO_THREADS)),
    quick("workload 3.14.5", || workload("3.14.5", WITH_EXPERTS)),
    Program {
        has_contexts: true,
        ..quick("workload 3.22.1", || workload("3.22.1", THREE_CONTEXTS))
    },
    quick("workload 3.22.1 as a plugin", || workload("3.22.1", AS_A_PLUGIN)),
    quick("-Bsymbolic", || on_libraries(symbolic()?, TWO_THREADS)),
    quick("linked in", linked_in),
    quick("linked in, and another opened", linked_in_beside_another),
    quick("hidden in a library", hidden),
    slow("changed tensors", || tried(changed_ggml::selected(), "tensors of five dimensions")),
    slow("llama.cpp linked in", || {
        tried(changed_ggml::selected(), "llama.cpp inside a program that shows all")
    }),
    slow("llama.cpp in a library", || {
        tried(changed_ggml::selected(), "llama.cpp inside a library that calls itself directly")
    }),
    slow("pywhispercpp 1.3.0", || tried(old_ggml::quick(), "pywhispercpp 1.3.0")),
    slow("llama-cpp-2", || tried(rust_programs::all(), "llama-cpp-2 0.1.160 Release")),
    Program { has_children: true, ..quick("churns 3.3.2", || churns("3.3.2", "libggml-cpu.so")) },
    Program {
        has_children: true,
        ..quick("churns 3.22.1", || churns("3.22.1", "libggml-cpu-x64.so"))
    },
    Program { prints_figures: true, ..quick("Debian sid's llama-bench", bench) },
    Program { is_node: true, ..slow("Debian sid's llama-server", server) },
    Program { on_vulkan: true, ..quick("Vulkan 3.22.1", || vulkan("3.22.1")) },
    Program { on_vulkan: true, ..slow("Vulkan 3.14.5", || vulkan("3.14.5")) },
    Program {
        is_node: true,
        // On Node.js 20, in one of a hundred runs.
        own_fault: Some("Check failed: Heap::InFromPage(heap_object)"),
        ..slow("node-llama-cpp 3.1.1", || generation("3.1.1"))
    },
    Program { is_node: true, ..slow("node-llama-cpp 3.22.1", || generation("3.22.1")) },
    Program { is_node: true, ..slow("llama.node", || llama_node::command(&tiny()?, 16)) },
];

const fn quick(name: &'static str, make: fn() -> Result<Command, String>) -> Program {
    Program {
        name,
        make,
        on_vulkan: false,
        is_node: false,
        prints_figures: false,
        own_fault: None,
        has_contexts: false,
        has_children: false,
        is_quick: true,
    }
}

const fn slow(name: &'static str, make: fn() -> Result<Command, String>) -> Program {
    Program { is_quick: false, ..quick(name, make) }
}

impl Program {
    /// The command that runs it; an error is the reason why that is not possible here.
    pub(super) fn command(&self) -> Result<Command, String> {
        (self.make)()
    }
}

fn workload(version: &str, arguments: &[&str]) -> Result<Command, String> {
    let unavailable = || format!("the libraries of {version} cannot be had");
    on_libraries(published_ggml::libraries(version).ok_or_else(unavailable)?, arguments)
}

fn on_libraries(libraries: PathBuf, arguments: &[&str]) -> Result<Command, String> {
    let mut command = Command::new(built::workload());
    command.arg(libraries).args(["--embd", "64", "--announce", "--result"]).args(arguments);
    Ok(command)
}

fn symbolic() -> Result<PathBuf, String> {
    source_ggml::built_libraries(Compiler::Gcc, source_ggml::SYMBOLIC)
}

fn linked_in() -> Result<Command, String> {
    let mut command = Command::new(source_ggml::built_program("ggml_linked_in.c")?);
    command.args(["200", "1"]);
    Ok(command)
}

fn linked_in_beside_another() -> Result<Command, String> {
    let mut command = linked_in()?;
    command.args(published_ggml::libraries(published_ggml::NEWEST));
    Ok(command)
}

fn hidden() -> Result<Command, String> {
    let mut command = Command::new(built::host_program("opens_hidden_ggml.c"));
    command.arg(source_ggml::built_around("ggml_linked_in.c", Kept::Hidden)?).args(["200", "1"]);
    command.env("GGML_NO_BACKTRACE", "1");
    Ok(command)
}

fn churns(version: &str, backend: &str) -> Result<Command, String> {
    let unavailable = || format!("the libraries of {version} cannot be had");
    let mut command = Command::new(built::host_program("churns.c"));
    command.arg(published_ggml::libraries(version).ok_or_else(unavailable)?);
    command.args([backend, "4"]);
    Ok(command)
}

/// The command of a program that other tests try.
fn tried(trials: Vec<Trial>, name: &str) -> Result<Command, String> {
    let trial = trials.into_iter().find(|trial| trial.name.ends_with(name));
    (trial.ok_or_else(|| format!("{name} is not among the trials"))?.command)()
}

fn vulkan(version: &str) -> Result<Command, String> {
    let unavailable = || "no software Vulkan device, or no libraries for it".to_owned();
    let (libraries, environment) =
        published_ggml::vulkan_libraries(version).ok_or_else(unavailable)?;
    let mut command = on_libraries(libraries, SPLIT)?;
    command.envs(environment);
    Ok(command)
}

fn bench() -> Result<Command, String> {
    let mut command = debian_sid::prepared("llama-bench", &["cpu"])?;
    command.args(["-t", "1", "-p", "16", "-n", "16", "-r", "2", "-m"]).arg(tiny()?);
    Ok(command)
}

fn server() -> Result<Command, String> {
    let server = debian_sid::prepared("llama-server", &["cpu"])?;
    let mut command = Command::new("node");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/ask-server.mjs");
    command.arg(script).arg("16").arg(server.get_program());
    command.args(server.get_args()).args(["-t", "1", "-tb", "1", "-c", "512", "-np", "1"]);
    command.args(["--no-warmup", "--host", "127.0.0.1", "-m"]).arg(tiny()?);
    Ok(command)
}

fn generation(version: &'static str) -> Result<Command, String> {
    Generation { version, model: &tiny()?, tokens: 16, threads: 1, vulkan_layers: None }.command()
}

fn tiny() -> Result<PathBuf, String> {
    Model::TINY.file("tiny").map_err(|error| error.to_string())
}
