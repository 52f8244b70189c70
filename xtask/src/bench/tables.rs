//! A hundred million events as Parquet, asked by DuckDB: the questions of docs/tables.md. Takes 2 GB of
//! disk, and some minutes the first time.

use super::measure::{cost, median};
use super::recordings::{self, Made};
use crate::shell;
use anyhow::{Context, anyhow, bail};
use ggprof_e2e::pypi;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNS: usize = 3;
const RECORDINGS: u64 = 100;
const OPS: u64 = 1_000_000;
const COMMITS: u64 = 20;
const HEADINGS: [&str; 2] =
    ["### p95 of MUL_MAT by commit", "### Tokens per second by commit and device"];

pub(super) fn run() -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let directory = tables(&ggprof)?;
    let duckdb = pypi::unpacked_for("duckdb", "2.0.0", "manylinux_2_28_x86_64");
    let duckdb = duckdb.map_err(|problem| anyhow!(problem))?;
    println!(
        "Tables: {RECORDINGS} recordings of {OPS} ops, {} MB of Parquet, medians of {RUNS} runs",
        bytes_below(&directory)? / 1_000_000
    );
    println!("| question | wall | processor | peak memory |\n| :--- | ---: | ---: | ---: |");
    for heading in HEADINGS {
        let question = question(heading)?;
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &duckdb).current_dir(&directory);
        python.args(["-c", "import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchall())"]);
        python.arg(question);
        let costs = (0..RUNS).map(|_| cost(&mut python)).collect::<anyhow::Result<Vec<_>>>()?;
        let cost = median(costs);
        println!(
            "| {} | {:.2} s | {:.2} s | {} MB |",
            heading.trim_start_matches("### "),
            cost.wall.as_secs_f64(),
            cost.processor.as_secs_f64(),
            cost.peak_bytes / 1_000_000
        );
    }
    Ok(())
}

/// The first question below a heading of the documentation.
fn question(heading: &str) -> anyhow::Result<String> {
    let document = std::fs::read_to_string(shell::root().join("docs/tables.md"))?;
    let section = document.split_once(heading).with_context(|| heading.to_owned())?.1;
    let block = section.split_once("```sql\n").with_context(|| heading.to_owned())?.1;
    Ok(block.split("```").next().unwrap_or_default().to_owned())
}

/// The folder that `tables` is in, made once; of the recordings only one at a time is there.
fn tables(ggprof: &Path) -> anyhow::Result<PathBuf> {
    let directory = shell::target().join("bench/many-events");
    let part = directory.with_extension("part");
    if directory.exists() {
        return Ok(directory);
    }
    std::fs::create_dir_all(&part)?;
    for at in 0..RECORDINGS {
        let file = part.join("recording.ggprof");
        let commit = at * COMMITS / RECORDINGS;
        let made = Made {
            version: format!("0.9.{commit}"),
            commit: format!("{:07x}", commit.wrapping_mul(0x9e37_79b9) & 0xfff_ffff),
            unix_ns: Made::of(0).unix_ns + at * 3_600_000_000_000,
            slowness: 1000 + commit * 5,
            seed: at,
            ..Made::of(OPS)
        };
        recordings::write(&file, &made)?;
        let mut convert = Command::new(ggprof);
        convert.arg("convert").arg(&file).args(["--to", "parquet", "-o"]).arg(part.join("tables"));
        if !convert.status()?.success() {
            bail!("{convert:?} failed");
        }
        std::fs::remove_file(file)?;
    }
    std::fs::rename(part, &directory)?;
    Ok(directory)
}

fn bytes_below(directory: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for entry in directory.read_dir()? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}
