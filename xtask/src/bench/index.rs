//! The catalogue of a thousand recordings: how long it takes to make, and to answer from.

use super::measure::{Cost, cost, median};
use super::recordings::{self, Made};
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNS: usize = 5;
const COMMITS: u64 = 50;
const MACHINES: u64 = 4;
/// Of each commit on each machine.
const REPEATED: u64 = 5;
/// A prompt and a few tokens.
const OPS: u64 = 5_000;
const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

pub(super) fn run() -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let directory = directory()?;
    let index = |more: &[&str]| cost(Command::new(&ggprof).arg("index").arg(&directory).args(more));
    let kept = directory.join(".ggprof-index");
    let page = shell::target().join("bench/history.html");
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        let _ = std::fs::remove_file(&kept);
        let html = page.to_string_lossy();
        for (costs, more) in costs.iter_mut().zip([&[][..], &[], &["--html", &html]]) {
            costs.push(index(more)?);
        }
    }
    println!(
        "Index: {} recordings of {OPS} ops, tokens/s by commit and device, medians of {RUNS} runs",
        COMMITS * MACHINES * REPEATED
    );
    let [first, again, with_page] = costs.map(median);
    println!("| | wall | processor | peak memory |\n| :--- | ---: | ---: | ---: |");
    row("all recordings are new", first);
    row("none is new", again);
    row("none is new, with the page", with_page);
    println!("catalogue {} KB, page {} KB", kilobytes(&kept), kilobytes(&page));
    Ok(())
}

fn row(what: &str, cost: Cost) {
    println!(
        "| {what} | {:.3} s | {:.3} s | {} MB |",
        cost.wall.as_secs_f64(),
        cost.processor.as_secs_f64(),
        cost.peak_bytes / 1_000_000
    );
}

fn kilobytes(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |it| it.len() / 1000)
}

/// The recordings, made once: a commit a day, of which one in ten changes the speed.
fn directory() -> anyhow::Result<PathBuf> {
    let directory = shell::target().join("bench/index");
    let part = directory.with_extension("part");
    if directory.exists() {
        return Ok(directory);
    }
    let mut slowness = 1000;
    for commit in 0..COMMITS {
        let folder = part.join(format!("day-{commit}"));
        std::fs::create_dir_all(&folder)?;
        if commit % 10 == 9 {
            slowness = slowness * [94, 103][(commit / 10 % 2) as usize] / 100;
        }
        for machine in 0..MACHINES {
            for run in 0..REPEATED {
                let seed = (commit * MACHINES + machine) * REPEATED + run;
                let made = Made {
                    version: format!("0.9.{commit}"),
                    commit: format!("{:07x}", commit.wrapping_mul(0x9e37_79b9) & 0xfff_ffff),
                    cpu: format!("Processor {}", ["A", "B", "C", "D"][machine as usize]),
                    unix_ns: Made::of(0).unix_ns + commit * DAY_NS + run * 3_600_000_000_000,
                    slowness: slowness * (10 + machine) / 10 * (1000 + seed * 7919 % 11) / 1000,
                    seed,
                    ..Made::of(OPS)
                };
                recordings::write(&folder.join(format!("{machine}-{run}.ggprof")), &made)?;
            }
        }
    }
    std::fs::rename(part, &directory)?;
    Ok(directory)
}
