//! Profiles of ggml's own profiler: seconds, memory, and MB/s beside the plain reading of the file, and
//! beside ggml's own script.

use super::measure::{Cost, cost, median};
use super::profiles;
use crate::shell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const RUNS: usize = 5;
/// Of the script, which takes a hundred times as long.
const REFERENCE_RUNS: usize = 3;

pub(super) fn run(reference: Option<&Path>) -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let directory = shell::target().join("bench");
    std::fs::create_dir_all(&directory)?;
    println!("Analysis: median of {RUNS} interleaved runs, file in the page cache");
    println!("| records | file | what | processor | ns/record | wall | MB/s | peak memory |");
    println!("| ---: | ---: | :--- | ---: | ---: | ---: | ---: | ---: |");
    for records in [100_000, 1_000_000] {
        let file = directory.join(format!("{records}.json"));
        if !file.exists() {
            profiles::write(&file, records)?;
        }
        measure(&ggprof, &file, records, reference)?;
    }
    Ok(())
}

fn measure(
    ggprof: &Path,
    file: &Path,
    records: u64,
    reference: Option<&Path>,
) -> anyhow::Result<()> {
    let bytes = std::fs::metadata(file)?.len();
    let trace = file.with_extension("trace.json");
    let (mut reads, mut summaries, mut exports) = (Vec::new(), Vec::new(), Vec::new());
    let mut references = Vec::new();
    for round in 0..RUNS {
        let wall = read_plainly(file)?;
        reads.push(Cost { wall, processor: wall, peak_bytes: 0 });
        summaries.push(cost(Command::new(ggprof).arg("report").arg(file))?);
        let export = ["--chrome-trace".as_ref(), trace.as_os_str()];
        exports.push(cost(Command::new(ggprof).arg("report").arg(file).args(export))?);
        if let Some(script) = reference.filter(|_| round < REFERENCE_RUNS) {
            references.push(cost(Command::new("python3").arg(script).arg(file))?);
        }
    }
    let summary = median(summaries);
    let row = |what: &str, cost: Cost| {
        let seconds = cost.processor.as_secs_f64();
        println!(
            "| {records} | {} MB | {what} | {seconds:.3} s | {:.0} | {:.3} s | {:.0} | {} |",
            bytes / 1_000_000,
            seconds * 1e9 / records as f64,
            cost.wall.as_secs_f64(),
            bytes as f64 / 1e6 / seconds,
            if cost.peak_bytes == 0 {
                "-".to_owned()
            } else {
                format!("{} MB", cost.peak_bytes / 1_000_000)
            },
        );
    };
    row("plain reading", median(reads));
    row("summary", summary);
    row("Chrome export", median(exports));
    if !references.is_empty() {
        let python = median(references);
        row("reference summary", python);
        println!(
            "\nsummary of {records} records: {:.0} times less processor time than the reference \
             ({:.0} times faster), 1/{:.0} of its memory\n",
            python.processor.as_secs_f64() / summary.processor.as_secs_f64(),
            python.wall.as_secs_f64() / summary.wall.as_secs_f64(),
            python.peak_bytes as f64 / summary.peak_bytes as f64
        );
    }
    Ok(())
}

fn read_plainly(file: &Path) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut input = File::open(file)?;
    let mut buffer = vec![0; 512 * 1024];
    while input.read(&mut buffer)? > 0 {}
    Ok(start.elapsed())
}
