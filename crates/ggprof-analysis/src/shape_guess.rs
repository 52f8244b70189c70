//! How many tokens a graph run took in and gave out, guessed from shapes: for runs of which the
//! program's own batch is not known.
//!
//! The number of tokens in a graph run is the number of columns that its matrix products
//! multiply the weights with. Only a graph that looks tokens up in a table has any: whisper's
//! encoder and programs that make images multiply as well.
//!
//! Where no product was seen, because only the calls are known that start a device's work, the
//! rows tell that are looked up for the tokens: llama.cpp leaves that to the CPU.

use crate::split_kinds::runs_like_sampled;
use ggprof_trace::{EventKind, GraphRunId, Signature, Tensor, Trace};
use std::ops::Range;

/// How many tokens a graph run took in and gave out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) tokens: Option<u64>,
    pub(crate) outputs: Option<u64>,
}

/// One for each graph run.
pub(crate) fn guesses(trace: &Trace) -> Vec<Guess> {
    let looked_up = looked_up(trace);
    let mut guesses = by_products(trace);
    // A run that was timed as a whole does what others of its kind do.
    for (run, like) in runs_like_sampled(trace) {
        if guesses[run.0 as usize].tokens.is_none() {
            guesses[run.0 as usize] = guesses[like.0 as usize];
        }
    }
    for (guess, looked_up) in guesses.iter_mut().zip(looked_up) {
        let out_of_sight = looked_up.outputs.is_some();
        if looked_up.tokens.is_none() {
            *guess = Guess::default();
        } else if guess.tokens.is_none() && out_of_sight {
            *guess = looked_up;
        }
    }
    guesses
}

/// By the products that were seen.
fn by_products(trace: &Trace) -> Vec<Guess> {
    let columns: Vec<Option<u64>> =
        trace.nodes.ids().map(|node| columns(trace, trace.signature(node))).collect();
    // Per run: how often each number of columns occurs, and the product that starts last.
    let mut counts: Vec<Vec<(u64, u32)>> = vec![Vec::new(); trace.graph_runs.len()];
    let mut last: Vec<(u64, Option<u64>)> = vec![(0, None); trace.graph_runs.len()];
    for (run, ops) in ops_of_runs(trace) {
        let (counts, last) = (&mut counts[run.0 as usize], &mut last[run.0 as usize]);
        let nodes = trace.events.nodes_of(ops.clone()).iter();
        for ((start_ns, _), node) in trace.events.spans(ops).zip(nodes) {
            let Some(columns) = columns[node.0 as usize] else { continue };
            match counts.iter_mut().find(|(value, _)| *value == columns) {
                Some((_, count)) => *count += 1,
                None => counts.push((columns, 1)),
            }
            if start_ns >= last.0 {
                *last = (start_ns, Some(columns));
            }
        }
    }
    let most = |counts: &Vec<(u64, u32)>| {
        counts.iter().max_by_key(|(value, count)| (*count, *value)).map(|(value, _)| *value)
    };
    counts
        .iter()
        .zip(last)
        .map(|(counts, (_, outputs))| Guess { tokens: most(counts), outputs })
        .collect()
}

/// What each run looks up first, and what its last split on a device gives out.
fn looked_up(trace: &Trace) -> Vec<Guess> {
    let of_node: Vec<Guess> =
        trace.nodes.ids().map(|node| told(trace, trace.signature(node))).collect();
    let mut guesses = vec![Guess::default(); trace.graph_runs.len()];
    for (run, ops) in ops_of_runs(trace) {
        let guess = &mut guesses[run.0 as usize];
        for node in trace.events.nodes_of(ops) {
            let Guess { tokens, outputs } = of_node[node.0 as usize];
            *guess = Guess { tokens: guess.tokens.or(tokens), outputs: outputs.or(guess.outputs) };
        }
    }
    guesses
}

/// What an op alone tells: of tokens that it looks up, or of what a whole split gives out.
fn told(trace: &Trace, signature: &Signature) -> Guess {
    match (trace.text(signature.op), &*signature.sources) {
        ("GET_ROWS", [table, rows]) if is_flat(&table.tensor) && is_list(&rows.tensor) => {
            Guess { tokens: Some(rows.tensor.ne[0] as u64), outputs: None }
        }
        (Signature::WHOLE_SPLIT, _) if is_flat(&signature.output) => {
            Guess { tokens: None, outputs: Some(signature.output.ne[1] as u64) }
        }
        _ => Guess::default(),
    }
}

/// The ops of graph runs, as they stand together.
fn ops_of_runs(trace: &Trace) -> impl Iterator<Item = (GraphRunId, Range<u32>)> {
    let ops = trace.events.stretches().filter(|(stretch, _)| stretch.kind == EventKind::Op);
    ops.filter_map(|(stretch, events)| Some((stretch.graph_run?, events)))
}

fn is_list(tensor: &Tensor) -> bool {
    is_flat(tensor) && tensor.ne[1] == 1
}

fn is_flat(tensor: &Tensor) -> bool {
    let ne = &tensor.ne;
    ne[0] > 0 && ne[1] > 0 && ne[2] <= 1 && ne[3] <= 1
}

/// Columns that a product of weights with activations has; `None` for other ops.
fn columns(trace: &Trace, signature: &Signature) -> Option<u64> {
    let [weights, activations, ..] = &*signature.sources else { return None };
    let product = trace.text(signature.op) == "MUL_MAT";
    (product && is_flat(&weights.tensor) && is_flat(&activations.tensor))
        .then_some(activations.tensor.ne[1] as u64)
}
