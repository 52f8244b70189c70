//! A snapshot of a program that goes on while it is recorded with a limited size: processor time, memory and
//! wall time, with the summary that is printed of it.

use super::measure::{Cost, cost, median};
use super::recorded::{Recorded, processor_time};
use crate::shell;
use anyhow::bail;
use ggprof_e2e::published_ggml;
use std::process::Stdio;
use std::time::{Duration, Instant};

const RUNS: usize = 3;
const LIMIT: (&str, u64) = ("1GB", 1_000_000_000);
/// Narrow layers: the more ops there are in a second, the sooner the file is full.
const WIDTH: &str = "64";
/// On a busy machine, too.
const FULL_WITHIN: Duration = Duration::from_secs(900);

pub(super) fn run() -> anyhow::Result<()> {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return Ok(()) };
    let ggprof = shell::build_ggprof()?;
    let recorded = Recorded::start(&ggprof, &libraries, LIMIT.0, WIDTH)?;
    wait_until_full(&recorded)?;
    let before = processor_time(recorded.launcher())?;
    let mut costs = Vec::new();
    for _ in 0..RUNS {
        costs.push(cost(&mut recorded.ggprof(&["ctl", "snapshot"]))?);
    }
    let sent = (processor_time(recorded.launcher())? - before) / RUNS as u32;
    let Cost { wall, processor, peak_bytes } = median(costs);
    println!(
        "\n`ggprof ctl snapshot` of a recording of {}, beside the recorded program: {:.2} s of processor \
         time and {:.2} s of who sends it, {:.2} s, {} MB; medians of {RUNS}",
        LIMIT.0,
        processor.as_secs_f64(),
        sent.as_secs_f64(),
        wall.as_secs_f64(),
        peak_bytes / 1_000_000,
    );
    Ok(())
}

/// Nearly so: what is freed is used again block by block.
fn wait_until_full(recorded: &Recorded<'_>) -> anyhow::Result<()> {
    let started = Instant::now();
    while started.elapsed() < FULL_WITHIN {
        std::thread::sleep(Duration::from_millis(500));
        let mut status = recorded.ggprof(&["ctl", "status", "--format", "json"]);
        let said = status.stdout(Stdio::piped()).output()?.stdout;
        let listed: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
        if listed[0]["bytes"].as_u64() > Some(LIMIT.1 / 100 * 98) {
            return Ok(());
        }
    }
    bail!("the recording is not full after {FULL_WITHIN:?}")
}
