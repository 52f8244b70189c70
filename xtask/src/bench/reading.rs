//! Reading recordings: processor time, memory and instructions of a summary, by the number of ops.

use super::measure::{Cost, cost, median};
use super::recordings::{self, Made};
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNS: usize = 5;
const SIZES: [u64; 3] = [1_000_000, 3_000_000, 10_000_000];
const MORE: u64 = 30_000_000;

pub(super) fn run(more: bool) -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let sizes: Vec<u64> = SIZES.into_iter().chain(more.then_some(MORE)).collect();
    let files = sizes.iter().map(|&ops| file(ops)).collect::<anyhow::Result<Vec<_>>>()?;
    println!("Reading: summaries, medians of {RUNS} interleaved runs, files in the page cache");
    println!(
        "| ops | file | processor | ns/op | wall | peak memory | bytes/op | instructions/op |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut costs = vec![Vec::new(); files.len()];
    for _ in 0..RUNS {
        for (file, costs) in files.iter().zip(&mut costs) {
            costs.push(cost(Command::new(&ggprof).arg(file))?);
        }
    }
    for ((&ops, file), costs) in sizes.iter().zip(&files).zip(costs) {
        row(ops, file, median(costs), instructions(&ggprof, file, ops));
    }
    compared(&ggprof, &files[1])
}

/// A comparison of two recordings beside a summary of one.
fn compared(ggprof: &Path, file: &Path) -> anyhow::Result<()> {
    let (mut summaries, mut diffs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        summaries.push(cost(Command::new(ggprof).arg(file))?);
        diffs.push(cost(Command::new(ggprof).arg("diff").args([file, file]))?);
    }
    let [summary, diff] = [median(summaries), median(diffs)].map(|it| it.processor.as_secs_f64());
    println!(
        "\n`ggprof diff` of two recordings of {} ops: {diff:.3} s of processor time, {:.2} summaries",
        SIZES[1],
        diff / summary
    );
    Ok(())
}

fn row(ops: u64, file: &Path, cost: Cost, instructions: Option<f64>) {
    let bytes = std::fs::metadata(file).map_or(0, |it| it.len());
    println!(
        "| {ops} | {} MB | {:.3} s | {:.0} | {:.3} s | {} MB | {:.0} | {} |",
        bytes / 1_000_000,
        cost.processor.as_secs_f64(),
        cost.processor.as_nanos() as f64 / ops as f64,
        cost.wall.as_secs_f64(),
        cost.peak_bytes / 1_000_000,
        cost.peak_bytes as f64 / ops as f64,
        instructions.map_or("-".to_owned(), |count| format!("{count:.0}")),
    );
}

/// A recording of so many ops, made once.
fn file(ops: u64) -> anyhow::Result<PathBuf> {
    let directory = shell::target().join("bench");
    std::fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{ops}.ggprof"));
    if !file.exists() {
        recordings::write(&file, &Made::of(ops))?;
    }
    Ok(file)
}

/// Instructions per op, counted by callgrind, of the smallest recordings only: it takes fifty times
/// as long.
fn instructions(ggprof: &Path, file: &Path, ops: u64) -> Option<f64> {
    if ops > SIZES[0] {
        return None;
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(ggprof).arg(file);
    let output = valgrind.output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split_once("Collected :"))?.1.trim();
    Some(counted.parse::<f64>().ok()? / ops as f64)
}
