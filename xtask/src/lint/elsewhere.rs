//! Whether the command compiles for the systems on which recordings are only read, and with the agent
//! for the other processor, where Rust's library for them is installed.

use super::Extras;
use crate::shell;

/// Each with what must compile for it.
const TARGETS: [(&str, &[&str]); 3] = [
    ("x86_64-pc-windows-gnu", &["ggprof"]),
    ("aarch64-apple-darwin", &["ggprof"]),
    ("aarch64-unknown-linux-gnu", &["ggprof", "ggprof-agent", "ggml-profiler"]),
];

pub(super) fn check(extras: Extras) -> anyhow::Result<()> {
    let has_library = match extras {
        Extras::AsInstalled => shell::has_installed_library_for,
        Extras::Fetched => shell::has_library_for,
    };
    for (target, packages) in TARGETS {
        match has_library(target) {
            true => {
                let mut words = vec!["clippy", "--target", target];
                words.extend(packages.iter().flat_map(|package| ["--package", package]));
                shell::cargo(&[&words[..], &["--", "--deny", "warnings"]].concat())?;
            }
            false => eprintln!("not checked: `rustup target add {target}` brings what it takes"),
        }
    }
    Ok(())
}
