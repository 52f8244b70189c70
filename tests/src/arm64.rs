//! Programs for aarch64, run by an emulator of programs (qemu-user): those of Debian sid, and small ones
//! of ours on published libraries. All of it is fetched and unpacked without root; the compiler is that
//! of the system (`g++-aarch64-linux-gnu`).
//!
//! The emulator is a program of this system and linked statically, so `LD_PRELOAD` does not concern it:
//! the loader of the emulated program finds the variable.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::built::{self, target_directory};
use crate::under_agent::UnderAgent;
use crate::{debian, published_ggml, tool};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const CPP_COMPILER: &str = "aarch64-linux-gnu-g++";
/// What is emulated: a processor without vectors of other lengths (SVE), which take the emulator five
/// times as long.
const PROCESSOR: &str = "neoverse-n1";

/// What there is for aarch64.
#[derive(Debug, Clone)]
pub struct Arm64 {
    emulator: PathBuf,
    /// Debian sid.
    root: PathBuf,
    agent: PathBuf,
}

impl Arm64 {
    /// `None`, with a sentence, where it cannot be had.
    pub fn new() -> Option<Self> {
        static READY: OnceLock<Option<Arm64>> = OnceLock::new();
        READY.get_or_init(|| tool::fetched("ggml for aarch64", Self::fetched())).clone()
    }

    fn fetched() -> Result<Self, String> {
        let qemu = debian::unpacked("debian-qemu", "sid", &[], &["qemu-user"])?;
        let packages = ["llama.cpp-tools"];
        let root = debian::unpacked_for("arm64", "debian-sid-arm64", "sid", &packages, &[])?;
        // What Debian's installer makes: programs name their loader by this path.
        let lib = root.join("lib");
        if !lib.exists() {
            std::os::unix::fs::symlink("usr/lib", lib).map_err(|error| error.to_string())?;
        }
        let agent = build(&["-p", "ggprof-agent"])?.join("libggprof_agent.so");
        Ok(Self { emulator: qemu.join("usr/bin/qemu-aarch64"), root, agent })
    }

    /// A program of Debian sid.
    pub fn debian(&self, program: &str) -> Command {
        self.emulated(&self.root.join("usr/bin").join(program))
    }

    /// A program of `host-programs/`.
    pub fn host_program(&self, source: &str, flags: &[&str]) -> Command {
        let compiler = if source.ends_with(".cpp") { CPP_COMPILER } else { COMPILER };
        let flags = [flags, &["-ldl", "-lpthread"]].concat();
        let program = built::compile(source, "arm64", compiler, &flags);
        self.emulated(&program.unwrap_or_else(|problem| panic!("{source}: {problem}")))
    }

    /// The workload on these libraries.
    pub fn workload(&self, libraries: &Path) -> Command {
        let built = build(&["-p", "ggprof-workload"]).expect("it compiles for aarch64");
        let mut command = self.emulated(&built.join("ggprof-workload"));
        command.arg(libraries);
        command
    }

    /// The tests beside the agent's code.
    pub fn agent_tests(&self) -> Command {
        let mut cargo = cargo(&["test", "--no-run", "--message-format=json", "-p", "ggprof-agent"]);
        let said = tool::output(&mut cargo).expect("they compile for aarch64");
        let artefacts = said.lines().filter_map(|line| serde_json::from_str(line).ok());
        let program = artefacts
            .filter_map(|it: serde_json::Value| it["executable"].as_str().map(PathBuf::from))
            .next_back();
        self.emulated(&program.expect("cargo tells what it built"))
    }

    /// To be recorded.
    pub fn under_agent(&self, command: Command) -> UnderAgent {
        UnderAgent::with(command, &self.agent)
    }

    fn emulated(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.emulator);
        command.arg("-L").arg(&self.root).args(["-cpu", PROCESSOR]).arg(program);
        command
    }
}

/// The directory of the libraries that node-llama-cpp publishes for aarch64: clang's, with the barrier
/// between ops in line.
pub fn published(version: &str) -> Option<PathBuf> {
    published_ggml::package("linux-arm64", version)
}

/// Builds it for aarch64 as it is handed out, and tells where it is.
fn build(packages: &[&str]) -> Result<PathBuf, String> {
    tool::output(cargo(&["build", "--quiet", "--release"]).args(packages))?;
    let directory = target_directory().join(TARGET).join("release");
    directory.canonicalize().map_err(|error| error.to_string())
}

fn cargo(words: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).args(["--target", TARGET]);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo
}
