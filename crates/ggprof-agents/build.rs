//! Packs the agents that the command will carry: those that `GGPROF_AGENTS` names, as
//! `TARGET=FILE` with colons in between, or else, in an optimised build, one that is built here for
//! the same target.
//!
//! A library inside a program would be an artifact dependency, but stable cargo has none. So this
//! script runs cargo itself, with its own target directory, which is what makes `cargo install`
//! install something whole. Development builds carry no agent, so that a change of the agent does
//! not build the command anew: they use the agent that lies beside them.

use lzma_rust2::{Lzma2Options, Lzma2Writer};
use sha2::{Digest, Sha256};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer than an agent and what it resembles; the same as in `src/lib.rs`.
const DICTIONARY_BYTES: u32 = 1 << 23;
/// What the agent is made from, beside the project's `Cargo.toml`.
const SOURCES: [&str; 5] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/ggprof-agent",
    "crates/ggprof-spool",
    "crates/ggprof-ggml",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=GGPROF_AGENTS");
    println!("cargo:rerun-if-env-changed=GGPROF_COMMIT");
    let agents: Vec<Agent> = agents().into_iter().map(Agent::read).collect();
    let rows: String = agents.iter().map(|agent| pack(agent, base_of(agent, &agents))).collect();
    fs::write(out().join("agents.rs"), format!("&[\n{rows}]\n")).expect("OUT_DIR can be written");
    let commit = if agents.is_empty() { None } else { commit() };
    println!("cargo:rustc-env=GGPROF_COMMIT={}", commit.unwrap_or_default());
}

/// A library and the target that it was built for.
struct Agent {
    target: String,
    library: Vec<u8>,
}

impl Agent {
    fn read((target, file): (String, PathBuf)) -> Self {
        println!("cargo:rerun-if-changed={}", file.display());
        let library = fs::read(&file)
            .unwrap_or_else(|problem| panic!("{} cannot be read: {problem}", file.display()));
        Self { target, library }
    }

    fn processor(&self) -> &str {
        self.target.split('-').next().unwrap_or_default()
    }
}

/// The first agent for a processor is packed by itself; another one consists mostly of its parts.
fn base_of<'a>(agent: &Agent, all: &'a [Agent]) -> Option<&'a Agent> {
    let first = all.iter().find(|other| other.processor() == agent.processor());
    first.filter(|first| first.target != agent.target)
}

/// Each with the target that it was built for.
fn agents() -> Vec<(String, PathBuf)> {
    if let Some(named) = env::var("GGPROF_AGENTS").ok().filter(|named| !named.is_empty()) {
        let pair = |part: &str| {
            let (target, file) = part.split_once('=').expect("GGPROF_AGENTS is TARGET=FILE:…");
            (target.to_owned(), PathBuf::from(file))
        };
        return named.split(':').map(pair).collect();
    }
    let is_wanted = env::var_os("CARGO_FEATURE_CARRIED").is_some()
        && env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_wanted { vec![build()] } else { Vec::new() }
}

/// Builds the agent for the target of this build. Its target directory is its own, because cargo
/// holds a lock on the one that this script is run for.
fn build() -> (String, PathBuf) {
    let root = project();
    SOURCES
        .iter()
        .for_each(|path| println!("cargo:rerun-if-changed={}", root.join(path).display()));
    let target = env::var("TARGET").expect("cargo tells the target");
    let directory = out().join("agent");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo tells where it is"));
    cargo.args(["rustc", "--profile", "dist", "--package", "ggprof-agent", "--lib"]);
    cargo.args(["--crate-type", "cdylib", "--target", &target, "--target-dir"]).arg(&directory);
    cargo.current_dir(root);
    let built = cargo.status().expect("cargo can be started");
    assert!(built.success(), "the agent, which ggprof carries inside, could not be built");
    let file = directory.join(&target).join("dist/libggprof_agent.so");
    (target, file)
}

/// Writes the packed library; its row of the table.
fn pack(agent: &Agent, base: Option<&Agent>) -> String {
    let Agent { target, library } = agent;
    let mut options = Lzma2Options::with_preset(9);
    options.lzma_options.dict_size = DICTIONARY_BYTES;
    options.lzma_options.preset_dict = base.map(|base| base.library.clone());
    let mut encoder = Lzma2Writer::new(Vec::new(), options);
    encoder.write_all(library).expect("memory can be written");
    let packed = out().join(format!("{target}.lzma2"));
    fs::write(&packed, encoder.finish().expect("memory can be written")).expect("OUT_DIR is ours");
    let hash = Sha256::digest(library).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let (length, base) = (library.len(), base.map(|base| &base.target));
    format!(
        "    Agent {{ target: {target:?}, sha256: {hash:?}, length: {length}, base: {base:?}, \
         packed: include_bytes!({packed:?}) }},\n"
    )
}

/// What is being built: as the release says, or as git knows it.
fn commit() -> Option<String> {
    if let Some(given) = env::var("GGPROF_COMMIT").ok().filter(|given| !given.is_empty()) {
        return Some(given);
    }
    // Changes with every commit and checkout.
    if let Some(history) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={}", project().join(history).display());
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).current_dir(project()).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn out() -> PathBuf {
    env::var_os("OUT_DIR").expect("cargo tells where to write").into()
}
