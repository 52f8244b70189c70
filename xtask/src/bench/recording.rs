//! What recording costs the program: instructions, nanoseconds, tokens per second.
//!
//! Runs with and without the agent alternate, and what is reported is the median of the
//! ratios of neighbours: the machine's mood changes slowly, and both feel the same of it.

use super::measure::{median_and_range, pairs, value};
use crate::shell;
use anyhow::{Context, anyhow};
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{built, published_ggml};
use std::path::PathBuf;
use std::process::Command;

/// Pairs of short runs of the workload.
const WORKLOAD_PAIRS: usize = 31;
/// Pairs of generations.
const GENERATION_PAIRS: usize = 31;
const TOKENS: u32 = 128;

/// Twelve layers, as a small model has, each so narrow that the cost of an op is hardly hidden
/// by its work.
const SHAPE: [&str; 6] = ["--threads", "1", "--layers", "12", "--embd", "64"];

pub(super) fn run() -> anyhow::Result<()> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)
        .context("the published ggml libraries cannot be had")?;
    let bench = Bench { libraries, agent: built::agent(), spools: shell::target().join("bench") };
    std::fs::create_dir_all(&bench.spools)?;
    println!("\nRecording: llama.cpp of node-llama-cpp {}, one thread", published_ggml::NEWEST);
    println!("| what | without | with | difference |");
    println!("| :--- | ---: | ---: | ---: |");
    bench.instructions()?;
    bench.nanoseconds()?;
    bench.generation()
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
    /// Instructions per op, as valgrind counts them, which no other program disturbs.
    fn instructions(&self) -> anyhow::Result<()> {
        let per_op = |agent| -> anyhow::Result<f64> {
            // Late enough that the agent has taken out the hooks it does not need.
            let (few, many) = (self.count(agent, 200)?, self.count(agent, 300)?);
            Ok((many.0 - few.0) as f64 / (many.1 - few.1) as f64)
        };
        let (without, with) = match (per_op(Agent::Absent), per_op(Agent::Recording)) {
            (Ok(without), Ok(with)) => (without, with),
            (Err(error), _) | (_, Err(error)) => {
                println!("| instructions per op | - | - | not measured: {error:#} |");
                return Ok(());
            }
        };
        let added = with - without;
        println!("| instructions per op | {without:.0} | {with:.0} | +{added:.0} |");
        Ok(())
    }

    /// Instructions and ops of a run with so many graphs.
    fn count(&self, agent: Agent, graphs: u32) -> anyhow::Result<(u64, u64)> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(built::workload());
        command.arg(&self.libraries).args(SHAPE);
        command.args(["--graphs", &graphs.to_string()]);
        self.with_agent(&mut command, agent);
        let output = command.output().context("valgrind cannot be started")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        // The agent's short-lived children are counted too, each by itself; the program ends last.
        let mut counts = errors.lines().filter_map(|line| line.split_once("refs:"));
        let refs = counts.next_back().context("no count")?.1;
        let refs = refs.trim().replace(',', "").parse()?;
        Ok((refs, value(&String::from_utf8_lossy(&output.stdout), "computed=")? as u64))
    }

    /// Nanoseconds per op, from the median time of a graph.
    fn nanoseconds(&self) -> anyhow::Result<()> {
        let graphs = 600;
        let once = |agent| -> anyhow::Result<f64> {
            let mut command = Command::new(built::workload());
            command.arg(&self.libraries).args(SHAPE);
            command.args(["--graphs", &graphs.to_string()]);
            self.with_agent(&mut command, agent);
            let output = command.output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let ops = value(&text, "computed=")? / f64::from(graphs);
            Ok(value(&text, "median_ns=")? / ops)
        };
        for (what, agent) in
            [("ns per op", Agent::Recording), ("ns per op, agent loaded and idle", Agent::Idle)]
        {
            let pairs = pairs(WORKLOAD_PAIRS, || once(Agent::Absent), || once(agent))?;
            let [without, with] = medians(&pairs);
            let (added, least, most) =
                median_and_range(pairs.iter().map(|(without, with)| with - without).collect());
            println!(
                "| {what} | {without:.0} | {with:.0} | {added:+.0} ({least:+.0} to {most:+.0}) |"
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
