//! Whether everything compiles with the oldest Rust that `Cargo.toml` names, where that is installed.
//! (clippy knows of most of what is newer, but not of functions that became safe.)

use anyhow::Context;
use std::path::Path;

use super::Extras;
use super::source::Source;
use crate::shell;

pub(super) fn check(root: &Path, extras: Extras) -> anyhow::Result<()> {
    let manifest = Source::read(root, "Cargo.toml")?.text;
    let oldest = version(&manifest).context("Cargo.toml names no rust-version")?;
    if extras == Extras::Fetched && toolchain(&installed(), oldest).is_none() {
        let words = ["toolchain", "install", oldest, "--profile", "minimal"];
        // Where it cannot be had, the next question finds none.
        _ = shell::command("rustup", &words).status();
    }
    match toolchain(&installed(), oldest) {
        Some(toolchain) => shell::run(&mut shell::command(
            "rustup",
            &["run", toolchain, "cargo", "check", "--workspace", "--locked"],
        )),
        None => {
            eprintln!("not checked: `rustup toolchain install {oldest}` brings the oldest Rust");
            Ok(())
        }
    }
}

/// What rustup says of toolchains, a line each.
fn installed() -> String {
    let answer = shell::command("rustup", &["toolchain", "list"]).output();
    let answer = answer.map(|answer| answer.stdout).unwrap_or_default();
    String::from_utf8_lossy(&answer).into_owned()
}

fn version(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("rust-version"))?;
    line.split('"').nth(1)
}

/// The name of an installed toolchain of this version, whatever its last number is.
fn toolchain<'a>(installed: &'a str, version: &str) -> Option<&'a str> {
    let mut names = installed.lines().filter_map(|line| line.split_whitespace().next());
    names.find(|name| {
        let rest = name.strip_prefix(version);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_rust_is_found_by_its_version() {
        let manifest = "[workspace.package]\n# why\nrust-version = \"1.88\"\n";
        assert_eq!(version(manifest), Some("1.88"));
        let installed =
            "stable-x86_64 (active, default)\n1.8-x86_64\n1.88.0-x86_64\n1.95.0-x86_64\n";
        assert_eq!(toolchain(installed, "1.88"), Some("1.88.0-x86_64"));
        assert_eq!(toolchain("1.88-x86_64 (override)", "1.88"), Some("1.88-x86_64"));
        assert_eq!(toolchain("stable-x86_64\n1.880-x86_64\n", "1.88"), None);
    }
}
