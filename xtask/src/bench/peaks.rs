//! Whether `ggprof peaks` finds what a small C program finds that reads memory, in turns with it.

use crate::shell;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 3;
const MEGABYTES: &str = "512";
const PASSES: &str = "200";

pub(super) fn run() -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let reader = reader()?;
    let threads = std::thread::available_parallelism()?.get();
    println!("Reading memory on {threads} threads, the best of {ROUNDS} rounds in turns, GB/s");
    println!("| round | `ggprof peaks` | C program |\n| ---: | ---: | ---: |");
    let mut best = [0.0f64; 2];
    for round in 1..=ROUNDS {
        let rates = [ours(&ggprof)?, theirs(&reader, threads)?];
        println!("| {round} | {:.1} | {:.1} |", rates[0] / 1e9, rates[1] / 1e9);
        best = [best[0].max(rates[0]), best[1].max(rates[1])];
    }
    println!("| best | {:.1} | {:.1} |", best[0] / 1e9, best[1] / 1e9);
    println!("`ggprof peaks` finds {:.3} of what the C program does", best[0] / best[1]);
    Ok(())
}

fn reader() -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/read_memory.c");
    let program = shell::target().join("bench/read_memory");
    std::fs::create_dir_all(shell::target().join("bench"))?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O3", "-march=native", "-pthread", "-o"]).arg(&program).arg(source);
    ensure!(compiler.status().context("cc cannot be run")?.success(), "cc failed");
    Ok(program)
}

fn theirs(reader: &Path, threads: usize) -> anyhow::Result<f64> {
    let output = Command::new(reader).args([&threads.to_string(), MEGABYTES, PASSES]).output()?;
    ensure!(output.status.success(), "{} failed", reader.display());
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// The best rate of any number of threads.
fn ours(ggprof: &Path) -> anyhow::Result<f64> {
    let file = shell::target().join("bench/peaks.json");
    let output = Command::new(ggprof).arg("peaks").arg("-o").arg(&file).output()?;
    ensure!(output.status.success(), "ggprof peaks failed");
    let peaks: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let rates = peaks["cpu"]["read"].as_array().context("no rates")?.iter();
    let rates = rates.filter_map(|rate| rate["bytes_per_s"].as_f64());
    rates.reduce(f64::max).context("no rates")
}
