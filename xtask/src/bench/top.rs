//! `ggprof top` beside programs that compute many small ops: what it takes of a processor.

use super::recorded::{Recorded, processor_time};
use crate::shell;
use anyhow::Context;
use ggprof_e2e::published_ggml;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

const LIMIT: &str = "256MB";
/// Of the layers: the narrower, the more ops in a second.
const WIDTHS: [&str; 3] = ["64", "256", "512"];
/// After the first, which has more to read.
const LOOKS: usize = 20;

pub(super) fn run() -> anyhow::Result<()> {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return Ok(()) };
    let ggprof = shell::build_ggprof()?;
    println!("\n`ggprof top --json`, once a second for {LOOKS} s");
    println!("| ops/s | of a processor | ns per op |");
    println!("| ---: | ---: | ---: |");
    for width in WIDTHS {
        let recorded = Recorded::start(&ggprof, &libraries, LIMIT, width)?;
        std::thread::sleep(Duration::from_secs(3));
        watch(&recorded)?;
    }
    Ok(())
}

fn watch(recorded: &Recorded<'_>) -> anyhow::Result<()> {
    let mut top = recorded.ggprof(&["top", "--json"]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(top.stdout.take().context("its output")?).lines();
    let mut line = || anyhow::Ok(serde_json::from_str::<Value>(&lines.next().context("a line")??)?);
    line()?;
    let (before, since) = (processor_time(top.id())?, Instant::now());
    let mut ops = 0;
    for _ in 0..LOOKS {
        let line = line()?;
        let counts = line["ops"].as_array().context("its ops")?.iter();
        ops += counts.filter_map(|op| op["count"].as_u64()).sum::<u64>();
    }
    let used = (processor_time(top.id())? - before).as_secs_f64();
    let seconds = since.elapsed().as_secs_f64();
    top.kill()?;
    top.wait()?;
    let (rate, share) = (ops as f64 / seconds, 100.0 * used / seconds);
    println!("| {rate:.0} | {share:.2}% | {:.1} |", used * 1e9 / ops as f64);
    Ok(())
}
