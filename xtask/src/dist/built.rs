//! Builds what is handed out: agents first, then the command that carries them.

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::Command;

use super::{Platform, linker, needs};
use crate::shell;

/// Targets of the agents, in the words of Rust and of zig.
const AGENTS: [(&str, &str); 4] = [
    ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17"),
    ("x86_64-unknown-linux-musl", "x86_64-linux-musl"),
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17"),
    ("aarch64-unknown-linux-musl", "aarch64-linux-musl"),
];

/// Profiles of what is loaded into programs, and of the command.
const LOADED: &str = "dist";
const COMMAND: &str = "dist-command";

/// The files of a platform.
pub(super) struct Built {
    pub(super) command: PathBuf,
    pub(super) library: PathBuf,
    /// The agent for the same target.
    pub(super) agent: PathBuf,
}

/// All agents, each with its target.
pub(super) fn agents() -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    AGENTS.iter().map(|(target, _)| Ok((*target, agent(target)?))).collect()
}

fn agent(target: &str) -> anyhow::Result<PathBuf> {
    if !shell::has_library_for(target) {
        bail!("Rust's library for {target} is missing: `rustup target add {target}`");
    }
    let mut library = cargo("rustc", target, LOADED, "ggprof-agent")?;
    shell::run(library.args(["--lib", "--crate-type", "cdylib"]))?;
    let agent = place(target, LOADED).join("libggprof_agent.so");
    needs::check(&agent)?;
    needs::check_alone(&agent)?;
    Ok(agent)
}

pub(super) fn command_and_library(
    platform: &Platform,
    agents: &[(&'static str, PathBuf)],
) -> anyhow::Result<Built> {
    let named = agents.iter().map(|(target, file)| format!("{target}={}", file.display()));
    let named = named.collect::<Vec<_>>().join(":");
    shell::run(&mut cargo("build", platform.target, LOADED, "ggml-profiler")?)?;
    let mut command = cargo("rustc", platform.target, COMMAND, "ggprof")?;
    command.args(["--bin", "ggprof", "--", &linker::without_unwind_tables()?]);
    shell::run(command.env("GGPROF_AGENTS", named))?;
    let own = agents.iter().find(|(target, _)| *target == platform.target);
    let built = Built {
        command: place(platform.target, COMMAND).join("ggprof"),
        library: place(platform.target, LOADED).join("libggml_profiler.so"),
        agent: own.map(|(_, file)| file.clone()).context("there is no agent for its own target")?,
    };
    needs::check(&built.command)?;
    needs::check(&built.library)?;
    Ok(built)
}

fn place(target: &str, profile: &str) -> PathBuf {
    let place = shell::target().join(target).join(profile);
    std::path::absolute(&place).unwrap_or(place)
}

/// Without anything of this machine in the result.
fn cargo(verb: &str, target: &str, profile: &str, package: &str) -> anyhow::Result<Command> {
    let zig = AGENTS.iter().find(|(known, _)| *known == target).map(|(_, zig)| *zig);
    let linker = linker::for_target(zig.with_context(|| format!("{target} is not known"))?)?;
    let mut command =
        shell::cargo_command(&[verb, "--locked", "--profile", profile, "--target", target]);
    command.args(["--package", package]);
    let variable =
        |end: &str| format!("CARGO_TARGET_{}_{end}", target.to_uppercase().replace('-', "_"));
    let home =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|it| it + "/.cargo"));
    let mut flags = vec![
        format!("--remap-path-prefix={}=.", shell::root().display()),
        format!("--remap-path-prefix={}=cargo", home.context("HOME is not set")?),
    ];
    if target.ends_with("musl") {
        flags.push("-Ctarget-feature=-crt-static -Clink-self-contained=no".to_owned());
    }
    command.env(variable("LINKER"), linker).env(variable("RUSTFLAGS"), flags.join(" "));
    command.env("GGPROF_COMMIT", commit()?);
    // Zig's own cache lies in the home directory otherwise.
    command.env("ZIG_GLOBAL_CACHE_DIR", shell::target().join("dist/zig-cache"));
    Ok(command)
}

fn commit() -> anyhow::Result<String> {
    let words = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    let output = shell::command("git", &words).output().context("cannot start git")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
