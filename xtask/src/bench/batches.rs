//! What it costs to note a call of libllama: `tests/host-programs/hands_over_batches.c` makes calls that
//! compute nothing but one op. The same graph without a call costs what is noted of the graph.

use super::measure::median_and_range;
use super::repeated::{Agent, Bench, Repeated};
use crate::shell;
use anyhow::Context;
use ggprof_e2e::{built, published_ggml};

const ROUNDS: usize = 31;
const TIMES: [u32; 3] = [500, 1_500, 5_000];
/// The first one is what the others are held against.
const WAYS: [(&str, [&str; 2]); 5] = [
    ("a graph of one op", ["graph", "1"]),
    ("`llama_decode`, 1 token", ["decode", "1"]),
    ("`llama_decode`, 512 tokens", ["decode", "512"]),
    ("`llama_process`, 1 token", ["process", "1"]),
    ("`llama_process`, 512 tokens", ["process", "512"]),
];

pub(super) fn run() -> anyhow::Result<()> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)
        .context("the published ggml libraries cannot be had")?;
    let bench = Bench { libraries, agent: built::agent(), spools: shell::target().join("bench") };
    std::fs::create_dir_all(&bench.spools)?;
    const SOURCE: &str = "hands_over_batches.c";
    let flags = ["-Wall", "-Werror", "-shared", "-fPIC", "-DLIBRARY"];
    let library = built::linked_program(SOURCE, "so", &flags).canonicalize()?;
    let library = library.to_str().context("a path in UTF-8")?;
    let program = built::linked_program(SOURCE, "program", &["-Wall", "-Werror", library, "-ldl"]);
    let ways = WAYS.each_ref().map(|(what, arguments)| Repeated {
        what,
        program: &program,
        arguments,
        times: TIMES,
    });
    println!("\nA call of libllama, noted: what it adds to what is noted of its graph");
    println!("| call | instructions | ns |");
    println!("| :--- | ---: | ---: |");
    let instructions = added_instructions(&bench, &ways);
    let nanoseconds = added_nanoseconds(&bench, &ways)?;
    for (at, (way, ns)) in ways.iter().zip(nanoseconds).enumerate() {
        let (middle, least, most) = median_and_range(ns);
        let instructions = match &instructions {
            Ok(added) => format!("{:+.0}", added[at]),
            Err(error) => format!("not measured: {error:#}"),
        };
        let what = way.what;
        println!("| {what} | {instructions} | {middle:+.0} ({least:+.0} to {most:+.0}) |");
    }
    Ok(())
}

fn added_instructions(bench: &Bench, ways: &[Repeated<'_>]) -> anyhow::Result<Vec<f64>> {
    let added = |way: &Repeated<'_>| -> anyhow::Result<f64> {
        Ok(bench.instructions(way, Agent::Recording)? - bench.instructions(way, Agent::Absent)?)
    };
    let all = ways.iter().map(added).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(beyond_the_first(&all))
}

/// Of each way, one number a round.
fn added_nanoseconds(bench: &Bench, ways: &[Repeated<'_>]) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut found = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        let added = |way: &Repeated<'_>| -> anyhow::Result<f64> {
            let without = bench.nanoseconds(way, Agent::Absent)?;
            Ok(bench.nanoseconds(way, Agent::Recording)? - without)
        };
        let round = ways.iter().map(added).collect::<anyhow::Result<Vec<_>>>()?;
        let round = beyond_the_first(&round).into_iter();
        found.iter_mut().zip(round).for_each(|(of_way, ns)| of_way.push(ns));
    }
    Ok(found)
}

/// The first as it is, and how much more the others are.
fn beyond_the_first(all: &[f64]) -> Vec<f64> {
    let first = all[0];
    all.iter().enumerate().map(|(at, it)| if at == 0 { first } else { it - first }).collect()
}
