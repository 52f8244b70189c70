//! Programs for musl with a published ggml: the libraries of a musllinux wheel, run by the musl of
//! Debian sid. (That of Debian 12 is older than these libraries, and crashes on them.)

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::built::{self, target_directory};
use crate::{debian, pypi, tool};

const TARGET: &str = "x86_64-unknown-linux-musl";
const LOADER: &str = "usr/lib/x86_64-linux-musl/libc.so";

/// What there is for musl.
#[derive(Debug)]
pub struct Musl {
    /// The command, with the agents for both C libraries inside.
    pub ggprof: PathBuf,
    /// The directory of the libraries.
    pub libraries: PathBuf,
    loader: PathBuf,
}

impl Musl {
    /// `None`, with a sentence, where it cannot be had. Rust's library for musl need not be there.
    pub fn new() -> Option<Self> {
        static AGENT: OnceLock<Option<PathBuf>> = OnceLock::new();
        let told = |problem: &String| eprintln!("not tested: {problem}");
        let agent = AGENT.get_or_init(|| agent().inspect_err(told).ok()).clone()?;
        tool::fetched("a ggml for musl", Self::with(agent))
    }

    pub(crate) fn prepared() -> Result<Self, String> {
        Self::with(agent()?)
    }

    fn with(agent: PathBuf) -> Result<Self, String> {
        static GGPROF: OnceLock<PathBuf> = OnceLock::new();
        let wheel = pypi::unpacked_for("pywhispercpp", "1.5.1", "musllinux_1_2_x86_64")?;
        let root = debian::unpacked("debian-musl", "sid", &[], &["musl"])?;
        let agents = [(built::TARGET, built::agent()), (TARGET, agent)];
        let ggprof = GGPROF.get_or_init(|| built::carrying("one-file-musl", &agents)).clone();
        Ok(Self { ggprof, libraries: wheel, loader: root.join(LOADER) })
    }

    /// A program of `host-programs/` on these libraries.
    pub fn command(&self, source: &str) -> Result<Command, String> {
        let program = match source.ends_with(".cpp") {
            true => self.compile_cpp(source)?,
            false => built::compile(source, "musl", "musl-gcc", &["-ldl", "-lpthread"])?,
        };
        let mut command = Command::new(&self.loader);
        command.arg(program).arg(&self.libraries);
        Ok(command)
    }

    /// A library of `host-programs/`.
    pub fn library(&self, source: &str) -> Result<PathBuf, String> {
        built::compile(source, "musl-so", "musl-gcc", &["-shared", "-fPIC"])
    }

    /// The agent's own tests.
    pub fn agent_tests(&self) -> Result<Command, String> {
        let words = ["test", "--no-run", "--lib", "--message-format=json"];
        let said = tool::output(&mut cargo_for_agent(&words)?)?;
        let artefacts = said.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut programs = artefacts
            .filter_map(|it: serde_json::Value| it["executable"].as_str().map(PathBuf::from));
        let mut command = Command::new(&self.loader);
        command.arg(programs.next_back().ok_or("cargo names no program")?);
        Ok(command)
    }

    /// There is no C++ compiler for musl, but the wheel has the library.
    fn compile_cpp(&self, source: &str) -> Result<PathBuf, String> {
        let object = built::compile(source, "musl-object", "g++", &["-fPIC", "-c"])?;
        let program = object.with_extension("musl");
        let folder = "pywhispercpp.libs";
        let library = |beginning| pypi::library(folder, self.libraries.clone(), beginning);
        let mut link = Command::new("musl-gcc");
        link.arg("-o").arg(&program).arg(&object);
        link.args([library("libstdc++")?, library("libgcc_s")?]);
        let place = self.libraries.join(folder);
        link.arg(format!("-Wl,-rpath,{}", place.display()));
        link.arg("-Wl,--allow-shlib-undefined,--eh-frame-hdr");
        tool::output(&mut link)?;
        Ok(program)
    }
}

/// The agent for musl, not optimised.
pub(crate) fn agent() -> Result<PathBuf, String> {
    tool::output(&mut cargo_for_agent(&["build"])?)?;
    Ok(target_directory().join(TARGET).join("debug/libggprof_agent.so"))
}

/// What compiles the agent for musl.
fn cargo_for_agent(words: &[&str]) -> Result<Command, String> {
    let mut sysroot = Command::new("rustc");
    let sysroot = tool::output(sysroot.args(["--print", "sysroot"]))?;
    if !Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir() {
        return Err(format!("Rust's library for {TARGET} is not installed"));
    }
    let link = target_directory().join("musl/link");
    std::fs::create_dir_all(&link).map_err(|error| error.to_string())?;
    // The agent finds its unwinder while it runs, so this may be empty.
    std::fs::write(link.join("libgcc_s.so"), "").map_err(|error| error.to_string())?;
    let flags = format!(
        "-C target-feature=-crt-static -C link-self-contained=no -L native={}",
        link.canonicalize().map_err(|error| error.to_string())?.display()
    );
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).args(["--quiet", "-p", "ggprof-agent", "--target", TARGET]);
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", "musl-gcc");
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS", flags);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    Ok(cargo)
}
