//! Programs for aarch64, run by an emulator of programs (qemu-user): those of Debian sid, and small ones
//! of ours on published libraries. All of it is fetched and unpacked without root; the compiler is that
//! of the system (`g++-aarch64-linux-gnu`).
//!
//! The emulator is a program of this system and linked statically, so `LD_PRELOAD` does not concern it:
//! the loader of the emulated program finds the variable. `arm64_system.rs` emulates a whole system.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::built::{self, target_directory};
use crate::under_agent::UnderAgent;
use crate::{debian, published_ggml, tool};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const CPP_COMPILER: &str = "aarch64-linux-gnu-g++";
const STRIP: &str = "aarch64-linux-gnu-strip";
/// What is emulated: a processor without vectors of other lengths (SVE), which take the emulator five
/// times as long.
const PROCESSOR: &str = "neoverse-n1";

/// Leaves out those of the agent's tests that compile something: there is no compiler where they run.
pub const WITHOUT_A_COMPILER: [&str; 2] = ["--skip", "patch::got::tests::a_library_that_sees"];

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
        static TOLD: OnceLock<Option<Arm64>> = OnceLock::new();
        TOLD.get_or_init(|| tool::fetched("ggml for aarch64", Self::prepared())).clone()
    }

    pub(crate) fn prepared() -> Result<Self, String> {
        static READY: OnceLock<Result<Arm64, String>> = OnceLock::new();
        READY.get_or_init(Self::fetched).clone()
    }

    fn fetched() -> Result<Self, String> {
        let qemu = debian::unpacked("debian-qemu", "sid", &[], &["qemu-user"])?;
        let emulator = qemu.join("usr/bin/qemu-aarch64");
        Ok(Self { emulator, root: debian_root()?, agent: agent()? })
    }

    /// The same with a kernel that seems to keep time with the processor's counter, as that of a real
    /// machine does: then the agent reads the counter itself.
    pub fn with_counter(&self) -> Self {
        let root = self.root.with_file_name("with-counter");
        let clock = root.join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&clock).expect("the target directory can be written");
        std::fs::write(clock.join("current_clocksource"), "arch_sys_counter\n")
            .expect("it is there");
        for name in ["usr", "lib", "etc"] {
            // Another test may have made it.
            _ = std::os::unix::fs::symlink(self.root.join(name), root.join(name));
        }
        Self { root, ..self.clone() }
    }

    /// A program of Debian sid.
    pub fn debian(&self, program: &str) -> Command {
        self.emulated(&self.root.join("usr/bin").join(program))
    }

    /// A program of `host-programs/`.
    pub fn host_program(&self, source: &str) -> Command {
        self.emulated(&host_program(source))
    }

    /// The workload on these libraries.
    pub fn workload(&self, libraries: &Path) -> Command {
        let mut command = self.emulated(&workload());
        command.arg(libraries);
        command
    }

    /// The tests beside the agent's code.
    pub fn agent_tests(&self) -> Command {
        self.emulated(&agent_tests())
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

/// The root of Debian sid with llama.cpp.
pub(crate) fn debian_root() -> Result<PathBuf, String> {
    let packages = ["llama.cpp-tools"];
    let root = debian::unpacked_for("arm64", "debian-sid-arm64", "sid", &packages, &[])?;
    // What Debian's installer makes: programs name their loader by this path.
    let lib = root.join("lib");
    if !lib.exists() {
        std::os::unix::fs::symlink("usr/lib", lib).map_err(|error| error.to_string())?;
    }
    Ok(root)
}

pub(crate) fn agent() -> Result<PathBuf, String> {
    Ok(build(&["-p", "ggprof-agent"])?.join("libggprof_agent.so"))
}

/// A program of `host-programs/`.
pub fn host_program(source: &str) -> PathBuf {
    let compiler = if source.ends_with(".cpp") { CPP_COMPILER } else { COMPILER };
    let program = built::compile(source, "arm64", compiler, &["-ldl", "-lpthread"]);
    program.unwrap_or_else(|problem| panic!("{source}: {problem}"))
}

pub fn workload() -> PathBuf {
    let built = build(&["-p", "ggprof-workload"]).expect("it compiles for aarch64");
    built.join("ggprof-workload")
}

/// The program of the tests beside the agent's code.
pub fn agent_tests() -> PathBuf {
    executable(&["test", "--no-run", "-p", "ggprof-agent", "--lib"])
}

/// The command, with its checks and without an agent inside.
pub fn ggprof() -> PathBuf {
    executable(&["build", "-p", "ggprof", "--no-default-features", "--bin", "ggprof"])
}

/// The program that this makes, without what a debugger needs. Symbols stay: tests look for some.
fn executable(words: &[&str]) -> PathBuf {
    let mut cargo = cargo(words);
    let said = tool::output(cargo.arg("--message-format=json")).expect("it compiles for aarch64");
    let artefacts = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut programs =
        artefacts.filter_map(|it: serde_json::Value| it["executable"].as_str().map(PathBuf::from));
    let program = programs.next_back().expect("cargo tells what it built");
    let stripped = program.with_extension("stripped");
    let mut strip = Command::new(STRIP);
    tool::output(strip.arg("--strip-debug").arg(&program).arg("-o").arg(&stripped))
        .expect("it can be stripped");
    stripped
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
