//! Whether the command compiles for the systems on which recordings are only read, and with the agent
//! for the other processor, where Rust's library for them is installed: to fetch them and to compile
//! everything once more for each takes too long to be done each time.

use crate::shell;

/// Each with what must compile for it.
const TARGETS: [(&str, &[&str]); 3] = [
    ("x86_64-pc-windows-gnu", &["ggprof"]),
    ("aarch64-apple-darwin", &["ggprof"]),
    ("aarch64-unknown-linux-gnu", &["ggprof", "ggprof-agent", "ggml-profiler"]),
];

pub(super) fn check() -> anyhow::Result<()> {
    for (target, packages) in TARGETS {
        match shell::has_installed_library_for(target) {
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
