//! A program that uses ggml as a real one does, without llama.cpp or a model
//! file: graphs of transformer layers at prompt and single-token shapes, expert
//! layers, several schedulers on several threads.
//!
//! It prints what it expects to be computed, so that a recording can be checked
//! against it, and its wall times, so that runs can be compared:
//!
//! ```text
//! graph kind=prompt nodes=61 computed=45
//! done graphs=20 runs=20 computed=900 seconds=0.123456 median_ns=5432
//! ```
//!
//! The median is over single graphs: on a busy machine it is steadier than the
//! sum.

mod arguments;
mod ggml;
mod graphs;
mod weights;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arguments::Arguments;
use ggml::Ggml;
use graphs::Session;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("ggprof-workload: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let ggml = Ggml::open(&arguments.libraries, arguments.local)?;
    let (computed, result) = (AtomicU64::new(0), AtomicU64::new(0));
    let times = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.contexts)
            .map(|context| {
                let (ggml, sums, times) = (&ggml, (&computed, &result), &times);
                scope.spawn(move || one_context(ggml, arguments, context, sums, times))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err("a context's thread panicked".to_owned()))
        })
    })?;
    if arguments.result {
        println!("result={:016x}", result.into_inner());
    }
    let mut times = times.into_inner().unwrap_or_default();
    times.sort_unstable();
    println!(
        "done graphs={} runs={} computed={} seconds={:.6} median_ns={}",
        arguments.graphs,
        arguments.graphs * arguments.contexts,
        computed.into_inner(),
        times.iter().sum::<u64>() as f64 / 1e9,
        times.get(times.len() / 2).copied().unwrap_or(0),
    );
    Ok(())
}

/// One scheduler with backends and weights of its own.
fn one_context(
    ggml: &Ggml,
    arguments: &Arguments,
    context: usize,
    (computed, result): (&AtomicU64, &AtomicU64),
    times: &Mutex<Vec<u64>>,
) -> Result<(), String> {
    let mut session = Session::new(ggml, arguments)?;
    let mut first_token = None;
    for number in (0..).take_while(|&number| is_wanted(arguments, number)) {
        // The first graph is a prompt, as in real life; the rest are tokens.
        let tokens = if number == 0 { arguments.prompt } else { 1 };
        let graph = session.build(tokens)?;
        if context == 0 && number < 2 {
            let kind = if number == 0 { "prompt" } else { "token" };
            println!("graph kind={kind} nodes={} computed={}", graph.nodes, graph.computed);
        }
        let start = Instant::now();
        session.compute(&graph)?;
        let elapsed = start.elapsed().as_nanos() as u64;
        if let Ok(mut times) = times.lock() {
            times.push(elapsed);
        }
        computed.fetch_add(graph.computed, Ordering::Relaxed);
        if arguments.until_told && number > 0 {
            let found = session.result(&graph);
            if *first_token.get_or_insert(found) != found {
                return Err(format!("graph {number} came out unlike the first of its kind"));
            }
        }
        if arguments.result && (number < 2 || !arguments.until_told) {
            // Contexts come in any order.
            result.fetch_add(session.result(&graph), Ordering::Relaxed);
        }
        if arguments.announce {
            // One line per finished graph: a test that kills us counts them.
            println!("computed {}", number + 1);
        }
    }
    Ok(())
}

fn is_wanted(arguments: &Arguments, number: usize) -> bool {
    if arguments.until_told { number < 2 || !is_told() } else { number < arguments.graphs }
}

/// Whether somebody wrote to this program, or its input has ended.
fn is_told() -> bool {
    let mut input = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is ours.
    unsafe { libc::poll(&mut input, 1, 0) != 0 }
}
