//! What recording costs the program: instructions, nanoseconds, tokens per second.
//!
//! Runs with and without the agent alternate, and the result is the median of the ratios of
//! neighbours: the load of the machine changes slowly, so it affects both runs of a pair alike.

use super::measure::{median_and_range, pairs, value};
use crate::shell;
use anyhow::{Context, anyhow};
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{built, published_ggml};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of short runs of the workload.
const WORKLOAD_PAIRS: usize = 31;
/// Pairs of generations.
const GENERATION_PAIRS: usize = 31;
const TOKENS: u32 = 128;

/// Twelve layers, as a small model has, each so narrow that the cost of an op is hardly hidden
/// by its work.
const OPS: [&str; 7] = ["--threads", "1", "--layers", "12", "--embd", "64", "--graphs"];
const COPIES: [u32; 3] = [2_000, 12_000, 20_000];

pub(super) fn run() -> anyhow::Result<()> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)
        .context("the published ggml libraries cannot be had")?;
    let bench = Bench { libraries, agent: built::agent(), spools: shell::target().join("bench") };
    std::fs::create_dir_all(&bench.spools)?;
    println!("\nRecording: llama.cpp of node-llama-cpp {}, one thread", published_ggml::NEWEST);
    println!("| what | without | with | difference |");
    println!("| :--- | ---: | ---: | ---: |");
    let copying = built::host_program("copies_tensors.c");
    for repeated in [
        Repeated {
            what: "op",
            program: &built::workload(),
            arguments: &OPS,
            times: [200, 300, 600],
        },
        Repeated { what: "tensor copy", program: &copying, arguments: &["copy"], times: COPIES },
        Repeated {
            what: "async write",
            program: &copying,
            arguments: &["set_async"],
            times: COPIES,
        },
    ] {
        bench.instructions(&repeated)?;
        bench.nanoseconds(&repeated)?;
    }
    bench.generation()
}

/// A program that does the same again and again.
struct Repeated<'a> {
    what: &'a str,
    program: &'a Path,
    /// Behind the libraries, and before the number of times.
    arguments: &'a [&'a str],
    /// Instructions are counted between the first two numbers of times, nanoseconds over the
    /// third.
    times: [u32; 3],
}

impl Repeated<'_> {
    /// Adds what to run to a command, which is the program itself or a tool that runs it.
    fn arguments(&self, command: &mut Command, libraries: &Path, times: u32) {
        command.arg(libraries).args(self.arguments).arg(times.to_string());
    }
}

/// How the agent takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Agent {
    Absent,
    Idle,
    Recording,
}

struct Bench {
    libraries: PathBuf,
    agent: PathBuf,
    spools: PathBuf,
}

impl Bench {
    /// Instructions, as valgrind counts them, which no other program disturbs.
    fn instructions(&self, repeated: &Repeated<'_>) -> anyhow::Result<()> {
        let what = repeated.what;
        let each = |agent| -> anyhow::Result<f64> {
            // Late enough that the agent has taken out the hooks it does not need.
            let [few, many, _] = repeated.times;
            let (few, many) =
                (self.count(repeated, agent, few)?, self.count(repeated, agent, many)?);
            Ok((many.0 - few.0) as f64 / (many.1 - few.1) as f64)
        };
        let (without, with) = match (each(Agent::Absent), each(Agent::Recording)) {
            (Ok(without), Ok(with)) => (without, with),
            (Err(error), _) | (_, Err(error)) => {
                println!("| instructions per {what} | - | - | not measured: {error:#} |");
                return Ok(());
            }
        };
        let added = with - without;
        println!("| instructions per {what} | {without:.0} | {with:.0} | +{added:.0} |");
        Ok(())
    }

    /// All instructions, and what was computed by them.
    fn count(
        &self,
        repeated: &Repeated<'_>,
        agent: Agent,
        times: u32,
    ) -> anyhow::Result<(u64, u64)> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(repeated.program);
        repeated.arguments(&mut command, &self.libraries, times);
        self.with_agent(&mut command, agent);
        let output = command.output().context("valgrind cannot be started")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        // The agent's short-lived children are counted too, each by itself; the program ends last.
        let mut counts = errors.lines().filter_map(|line| line.split_once("refs:"));
        let refs = counts.next_back().context("no count")?.1;
        let refs = refs.trim().replace(',', "").parse()?;
        Ok((refs, value(&String::from_utf8_lossy(&output.stdout), "computed=")? as u64))
    }

    /// Nanoseconds, from the median time.
    fn nanoseconds(&self, repeated: &Repeated<'_>) -> anyhow::Result<()> {
        let what = repeated.what;
        let times = repeated.times[2];
        let once = |agent| -> anyhow::Result<f64> {
            let mut command = Command::new(repeated.program);
            repeated.arguments(&mut command, &self.libraries, times);
            self.with_agent(&mut command, agent);
            let output = command.output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let each = value(&text, "computed=")? / f64::from(times);
            Ok(value(&text, "median_ns=")? / each)
        };
        for (how, agent) in [("", Agent::Recording), (", agent loaded and idle", Agent::Idle)] {
            let pairs = pairs(WORKLOAD_PAIRS, || once(Agent::Absent), || once(agent))?;
            let [without, with] = medians(&pairs);
            let (added, least, most) =
                median_and_range(pairs.iter().map(|(without, with)| with - without).collect());
            println!(
                "| ns per {what}{how} | {without:.0} | {with:.0} | {added:+.0} ({least:+.0} to \
                 {most:+.0}) |"
            );
        }
        Ok(())
    }

    /// Tokens per second of a real application.
    fn generation(&self) -> anyhow::Result<()> {
        let model = Model::SMALL.file("small")?;
        let version = published_ggml::NEWEST;
        let generation =
            Generation { version, model: &model, tokens: TOKENS, threads: 1, vulkan_layers: None };
        let once = |agent| -> anyhow::Result<f64> {
            let mut command = generation.command().map_err(|problem| anyhow!(problem))?;
            if agent == Agent::Recording {
                command = self.recorded(&command);
            } else {
                self.with_agent(&mut command, agent);
            }
            let output = command.output()?;
            value(&String::from_utf8_lossy(&output.stderr), "tokens_per_second=")
        };
        for (what, agent) in [
            ("tokens/s, 110 M weights", Agent::Recording),
            ("tokens/s, agent loaded and idle", Agent::Idle),
        ] {
            let pairs = pairs(GENERATION_PAIRS, || once(Agent::Absent), || once(agent))?;
            let [without, with] = medians(&pairs);
            let (ratio, least, most) =
                median_and_range(pairs.iter().map(|(without, with)| with / without).collect());
            println!(
                "| {what} | {without:.1} | {with:.1} | x {ratio:.3} ({least:.3} to {most:.3}) |"
            );
        }
        Ok(())
    }

    /// As users do it: the launcher works ahead for the agent.
    fn recorded(&self, program: &Command) -> Command {
        let mut command = Command::new(built::ggprof());
        command.arg("run").arg("-o").arg(self.spools.join("generation.ggprof")).arg("--");
        command.arg(program.get_program()).args(program.get_args());
        command
    }

    fn with_agent(&self, command: &mut Command, agent: Agent) {
        let spool = self.spools.join("recording.ggprof");
        // The agent never writes over a recording.
        let _ = std::fs::remove_file(&spool);
        command.env_remove("LD_PRELOAD").env_remove("GGPROF_SPOOL");
        if agent != Agent::Absent {
            command.env("LD_PRELOAD", &self.agent);
        }
        if agent == Agent::Recording {
            command.env("GGPROF_SPOOL", spool);
        }
    }
}

fn medians(pairs: &[(f64, f64)]) -> [f64; 2] {
    let of = |values: Vec<f64>| median_and_range(values).0;
    [of(pairs.iter().map(|pair| pair.0).collect()), of(pairs.iter().map(|pair| pair.1).collect())]
}
