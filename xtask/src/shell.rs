//! Runs commands and finds places.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The project's directory, wherever the task was started.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project").to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => root().join(path),
        None => root().join("target"),
    }
}

/// A command that runs in the project's directory.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    command
}

/// The cargo that runs this task.
pub(crate) fn cargo_command(arguments: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    command(&cargo, arguments)
}

pub(crate) fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    run(&mut cargo_command(arguments))
}

/// Whether Rust's library for a target is installed, or rustup could install it now.
pub(crate) fn has_library_for(target: &str) -> bool {
    let is_there = || has_installed_library_for(target);
    let mut rustup = command("rustup", &["target", "add", target]);
    let mut added = || rustup.stdout(Stdio::null()).stderr(Stdio::null()).status();
    is_there() || added().is_ok_and(|status| status.success() && is_there())
}

/// Whether it is installed.
pub(crate) fn has_installed_library_for(target: &str) -> bool {
    let mut ask = command("rustc", &["--print", "target-libdir", "--target", target]);
    let answer = ask.output().map(|output| output.stdout).unwrap_or_default();
    Path::new(String::from_utf8_lossy(&answer).trim()).is_dir()
}

/// Shows the command, runs it, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Builds the command and the agent, which lie beside each other, and returns the command's path.
pub(crate) fn build_ggprof() -> anyhow::Result<PathBuf> {
    cargo(&["build", "--release", "--no-default-features", "--package", "ggprof"])?;
    cargo(&["rustc", "--release", "--package", "ggprof-agent", "--lib", "--crate-type", "cdylib"])?;
    Ok(target().join("release/ggprof"))
}
