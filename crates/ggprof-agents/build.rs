//! Packs the agents that the command will carry: those that `GGPROF_AGENTS` names, as
//! `TARGET=FILE` with colons in between, or else, in an optimised build, one that is built here for
//! the same target.
//!
//! A library inside a program would be an artifact dependency, but stable cargo has none. So this
//! script runs cargo itself, with its own target directory, which is what makes `cargo install`
//! install something whole. Development builds carry no agent, so that a change of the agent does
//! not build the command anew: they use the agent that lies beside them.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let agents = agents();
    let mut table = "&[\n".to_owned();
    for (target, file) in &agents {
        println!("cargo:rerun-if-changed={}", file.display());
        pack(&mut table, target, file);
    }
    table += "]\n";
    fs::write(out().join("agents.rs"), table).expect("OUT_DIR can be written");
    let commit = if agents.is_empty() { None } else { commit() };
    println!("cargo:rustc-env=GGPROF_COMMIT={}", commit.unwrap_or_default());
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
    cargo.args(["build", "--profile", "dist", "--package", "ggprof-agent", "--lib"]);
    cargo.args(["--target", &target, "--target-dir"]).arg(&directory).current_dir(root);
    let built = cargo.status().expect("cargo can be started");
    assert!(built.success(), "the agent, which ggprof carries inside, could not be built");
    let file = directory.join(&target).join("dist/libggprof_agent.so");
    (target, file)
}

/// Writes the packed library, and its row of the table.
fn pack(table: &mut String, target: &str, file: &Path) {
    let library = fs::read(file)
        .unwrap_or_else(|problem| panic!("{} cannot be read: {problem}", file.display()));
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&library).expect("memory can be written");
    let packed = out().join(format!("{target}.deflate"));
    fs::write(&packed, encoder.finish().expect("memory can be written")).expect("OUT_DIR is ours");
    let hash = Sha256::digest(&library).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let length = library.len();
    writeln!(
        table,
        "    Agent {{ target: {target:?}, sha256: {hash:?}, length: {length}, \
         packed: include_bytes!({packed:?}) }},"
    )
    .expect("texts can be written to");
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
