//! `cargo xtask fuzz`: hostile bytes for every reader, for a bounded time.

use crate::shell;
use anyhow::Context;
use std::path::Path;

const TARGETS: &[&str] =
    &["ggml_json", "spool", "any_input", "merge", "catalogue", "live", "peaks", "kept_pairs"];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let seconds: u32 = match arguments {
        [] => 60,
        [flag, seconds] if flag == "--seconds" => seconds.parse().context("--seconds N")?,
        _ => return Err(crate::misused("fuzz")),
    };
    if shell::command("cargo", &["fuzz", "--version"])
        .output()
        .is_ok_and(|out| !out.status.success())
    {
        shell::cargo(&["install", "cargo-fuzz", "--locked"])?;
    }
    for target in TARGETS {
        let corpus = format!("fuzz/corpus/{target}");
        seed(&shell::root().join(&corpus))?;
        let time = format!("-max_total_time={seconds}");
        let words = ["fuzz", "run", target, &corpus, "--", &time, "-max_len=8192", "-timeout=10"];
        // The sanitizer needs a flag that a stable compiler takes only when told so.
        shell::run(shell::command("cargo", &words).env("RUSTC_BOOTSTRAP", "1"))?;
    }
    Ok(())
}

/// Starts from what was found before and from every kind of file there is.
fn seed(corpus: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(corpus)?;
    let seeds = shell::root().join("fuzz/seeds");
    for entry in std::fs::read_dir(&seeds).context("fuzz/seeds")? {
        let path = entry?.path();
        std::fs::copy(&path, corpus.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}
