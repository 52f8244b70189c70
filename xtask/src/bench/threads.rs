//! What recording costs with many threads: at every op all of them wait for the slowest, and after
//! the graph for the one that folds.

use super::measure::{median_and_range, pairs, value};
use crate::shell;
use anyhow::Context;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::{built, published_ggml};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of runs of each kind.
const PAIRS: usize = 15;
const GRAPHS: u32 = 200;
const THREADS: [usize; 4] = [2, 4, 8, 16];

/// The size of a small model, dense and with experts, of which two are used.
const KINDS: [(&str, &[&str]); 2] = [
    ("dense", &["--layers", "22", "--embd", "1024"]),
    ("32 experts", &["--layers", "16", "--embd", "512", "--experts", "32"]),
];

/// One run: the median time of a graph, and how many ops it has.
#[derive(Clone, Copy)]
struct Run {
    graph_ns: f64,
    ops: f64,
}

pub(super) fn run() -> anyhow::Result<()> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)
        .context("the published ggml libraries cannot be had")?;
    let directory = shell::target().join("bench");
    std::fs::create_dir_all(&directory)?;
    let cores = std::thread::available_parallelism()?.get();
    println!("\nRecording with many threads, on {cores} cores: {PAIRS} pairs of runs in turns");
    println!(
        "| workload | threads | ops | µs per graph | recorded | speed | folding, ns per op | \
         hooks and barriers, ns per op |"
    );
    println!("| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, shape) in KINDS {
        for threads in THREADS.into_iter().filter(|threads| *threads <= cores) {
            let spool = directory.join("threads.ggprof");
            Bench { libraries: &libraries, spool, shape, threads }.row(name)?;
        }
    }
    Ok(())
}

struct Bench<'a> {
    libraries: &'a Path,
    spool: PathBuf,
    shape: &'a [&'a str],
    threads: usize,
}

impl Bench<'_> {
    fn row(&self, name: &str) -> anyhow::Result<()> {
        let pairs = pairs(PAIRS, || self.alone(), || self.recorded())?;
        let of = |values: Vec<f64>| median_and_range(values).0;
        let without = of(pairs.iter().map(|(without, _)| without.graph_ns).collect());
        let with = of(pairs.iter().map(|(_, (with, _))| with.graph_ns).collect());
        let ratios = pairs.iter().map(|(without, (with, _))| without.graph_ns / with.graph_ns);
        let (ratio, least, most) = median_and_range(ratios.collect());
        let ops = pairs[0].0.ops;
        let folding = of(pairs.iter().map(|(_, (with, share))| share * with.graph_ns).collect());
        println!(
            "| {name} | {} | {ops:.0} | {:.0} | {:.0} | x {ratio:.3} ({least:.3} to {most:.3}) | \
             {:.0} | {:+.0} |",
            self.threads,
            without / 1e3,
            with / 1e3,
            folding / ops,
            (with - without - folding) / ops,
        );
        Ok(())
    }

    fn alone(&self) -> anyhow::Result<Run> {
        let mut command = Command::new(built::workload());
        self.measure(&mut command)
    }

    /// Under `ggprof run`, and which share of a graph's time the agent spent before and behind
    /// it, by its own count.
    fn recorded(&self) -> anyhow::Result<(Run, f64)> {
        let mut command = Command::new(built::ggprof());
        command.arg("run").arg("-o").arg(&self.spool).arg("--").arg(built::workload());
        let run = self.measure(&mut command)?;
        let recording = Recording::read(&self.spool);
        let shares = recording.splits.values().filter_map(|split| {
            let end = split.end.as_ref()?;
            Some(end.agent_ticks as f64 / (end.ticks - split.begin.ticks) as f64)
        });
        Ok((run, median_and_range(shares.collect()).0))
    }

    fn measure(&self, command: &mut Command) -> anyhow::Result<Run> {
        command.arg(self.libraries).args(self.shape);
        command.args(["--threads", &self.threads.to_string()]);
        command.args(["--graphs", &GRAPHS.to_string()]).env_remove("LD_PRELOAD");
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ops = value(&text, "computed=")? / f64::from(GRAPHS);
        Ok(Run { graph_ns: value(&text, "median_ns=")?, ops })
    }
}
