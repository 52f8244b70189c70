//! What recording costs the program: instructions, nanoseconds, tokens per second.
//!
//! Runs with and without the agent alternate, and the result is the median of the ratios of
//! neighbours: the load of the machine changes slowly, so it affects both runs of a pair alike.

use super::measure::{median_and_range, pairs, value};
use super::repeated::{Agent, Bench, Repeated};
use crate::shell;
use anyhow::{Context, anyhow};
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::{built, published_ggml};
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
        bench.print_instructions(&repeated);
        bench.print_nanoseconds(&repeated)?;
    }
    bench.generation()
}

impl Bench {
    fn print_instructions(&self, repeated: &Repeated<'_>) {
        let what = repeated.what;
        let each = |agent| self.instructions(repeated, agent);
        match (each(Agent::Absent), each(Agent::Recording)) {
            (Ok(without), Ok(with)) => {
                let added = with - without;
                println!("| instructions per {what} | {without:.0} | {with:.0} | +{added:.0} |");
            }
            (Err(error), _) | (_, Err(error)) => {
                println!("| instructions per {what} | - | - | not measured: {error:#} |");
            }
        }
    }

    fn print_nanoseconds(&self, repeated: &Repeated<'_>) -> anyhow::Result<()> {
        let what = repeated.what;
        let once = |agent| self.nanoseconds(repeated, agent);
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
}

fn medians(pairs: &[(f64, f64)]) -> [f64; 2] {
    let of = |values: Vec<f64>| median_and_range(values).0;
    [of(pairs.iter().map(|pair| pair.0).collect()), of(pairs.iter().map(|pair| pair.1).collect())]
}
