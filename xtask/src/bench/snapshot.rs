//! A snapshot of a program that goes on while it is recorded with a limited size: processor time, memory and
//! wall time, with the summary that is printed of it.

use super::measure::{Cost, cost, median};
use crate::shell;
use anyhow::{Context, bail};
use ggprof_e2e::{built, published_ggml};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 3;
const LIMIT: (&str, u64) = ("1GB", 1_000_000_000);
/// Narrow layers: the more ops there are in a second, the sooner the file is full.
const OPS: [&str; 8] =
    ["--threads", "1", "--layers", "12", "--embd", "64", "--graphs", "100000000"];
/// On a busy machine, too.
const FULL_WITHIN: Duration = Duration::from_secs(900);

pub(super) fn run() -> anyhow::Result<()> {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return Ok(()) };
    let ggprof = shell::build_ggprof()?;
    let recorded = Recorded::start(&ggprof, &libraries)?;
    recorded.wait_until_full()?;
    let before = recorded.processor_time()?;
    let mut costs = Vec::new();
    for _ in 0..RUNS {
        costs.push(cost(&mut recorded.ctl(&["snapshot"]))?);
    }
    let sent = (recorded.processor_time()? - before) / RUNS as u32;
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

/// A recorded program, and a directory for what belongs to it.
struct Recorded<'a> {
    ggprof: &'a Path,
    directory: PathBuf,
    launcher: Child,
}

impl<'a> Recorded<'a> {
    fn start(ggprof: &'a Path, libraries: &Path) -> anyhow::Result<Self> {
        let directory = shell::target().join("bench/ring");
        _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory)?;
        let mut run = command(ggprof, &directory);
        run.args(["run", "--max-size", LIMIT.0, "-o", "/dev/null", "--"]);
        run.arg(built::workload()).arg(libraries).args(OPS);
        let launcher = run.spawn().context("ggprof cannot be started")?;
        Ok(Self { ggprof, directory, launcher })
    }

    fn ctl(&self, words: &[&str]) -> Command {
        let mut ctl = command(self.ggprof, &self.directory);
        ctl.arg("ctl").args(words);
        ctl
    }

    /// Nearly so: what is freed is used again block by block.
    fn wait_until_full(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < FULL_WITHIN {
            std::thread::sleep(Duration::from_millis(500));
            let mut status = self.ctl(&["status", "--format", "json"]);
            let said = status.stdout(Stdio::piped()).output()?.stdout;
            let listed: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
            if listed[0]["bytes"].as_u64() > Some(LIMIT.1 / 100 * 98) {
                return Ok(());
            }
        }
        bail!("the recording is not full after {FULL_WITHIN:?}")
    }

    /// Of the launcher so far, without the program.
    fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.launcher.id()))?;
        let behind_name = stat.rsplit_once(')').context("a process")?.1;
        let ticks: u64 = behind_name
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|it| it.parse::<u64>().ok())
            .sum();
        // A tick is a hundredth of a second in every Linux that there is.
        Ok(Duration::from_millis(10 * ticks))
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        _ = Command::new("kill").args(["-TERM", &self.launcher.id().to_string()]).status();
        _ = self.launcher.wait();
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn command(ggprof: &Path, directory: &Path) -> Command {
    let mut command = Command::new(ggprof);
    command.env("XDG_RUNTIME_DIR", directory).env("TMPDIR", directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
