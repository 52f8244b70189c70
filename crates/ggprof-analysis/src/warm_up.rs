//! Trials before the program's work begins, which count for no speed.

use crate::step::{Role, Step, StepKind, Stream};
use ggprof_trace::{ProcessIndex, Trace};
use hashbrown::{HashMap, HashSet};

/// llama.cpp tries a new context with two tokens before the real prompt comes, and again to see
/// what can be taken back.
pub(crate) const WARM_UP_TOKENS: u64 = 2;

/// Trials come first, and have few batches.
const MOST_TRIALS: usize = 64;

/// Marks the first steps of each stream as trials, if the memory was cleared behind them, and they
/// were short or a benchmark then does them again. That is a guess. (Some are marked already: libllama
/// was told.)
pub(crate) fn mark(trace: &Trace, steps: &mut [Step], requests: &mut u32) {
    for of_it in by_stream(steps) {
        let first = &of_it[..of_it.len().min(MOST_TRIALS)];
        let step = &steps[of_it[0]];
        let is_benchmark = is_benchmark(trace, step.process);
        let trials = if step.is_untried { 0 } else { trials(steps, first, is_benchmark) };
        let (tried, rest) = of_it.split_at(trials);
        tried.iter().for_each(|&trial| steps[trial].take_for_trial());
        tell_apart(steps, tried, rest, requests);
    }
}

/// The places of each stream's steps; streams by their first steps.
fn by_stream(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut known: HashMap<Stream, usize> = HashMap::new();
    let mut streams: Vec<Vec<usize>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let stream = *known.entry(step.stream).or_insert(streams.len());
        if stream == streams.len() {
            streams.push(Vec::new());
        }
        streams[stream].push(at);
    }
    streams
}

/// Other programs may well be asked the same twice.
fn is_benchmark(trace: &Trace, process: Option<ProcessIndex>) -> bool {
    let of_several = process.and_then(|process| trace.processes.get(usize::from(process.0)));
    let of_one = trace.provenance.as_ref().map(|provenance| &provenance.command);
    of_several.map(|process| &process.command).or(of_one).is_some_and(|it| it.contains("bench"))
}

/// A benchmark that fills the memory to a depth keeps that, and puts it back before each repetition. Where
/// it went on from there the first time, that is a prompt of its own, too.
pub(crate) fn tell_fills_apart(steps: &mut [Step], requests: &mut u32) {
    let first = |step: &Step| match step.parts[..] {
        [part] => Some((step.process, part.first)).filter(|(_, first)| *first > 0),
        _ => None,
    };
    let put_back = steps.iter().filter(|step| step.is_after_clear).filter_map(first);
    let put_back: HashSet<_> = put_back.collect();
    // By stream: the request that filled the memory, and the one that goes on from there.
    let mut behind: HashMap<Stream, (u32, u32)> = HashMap::new();
    for step in steps.iter_mut() {
        let is_from_there = first(step).is_some_and(|first| put_back.contains(&first));
        if step.is_after_clear {
            behind.remove(&step.stream);
            continue;
        }
        let [part] = &mut step.parts[..] else { continue };
        if is_from_there && part.role == Role::Prompt {
            behind.insert(step.stream, (part.request, *requests));
            *requests += 1;
        }
        let renamed = behind.get(&step.stream).filter(|(fill, _)| *fill == part.request);
        renamed.into_iter().for_each(|(_, new)| part.request = *new);
    }
}

/// A benchmark that fills the memory first goes on with what it tried alone: that is a prompt of its own.
fn tell_apart(steps: &mut [Step], tried: &[usize], rest: &[usize], requests: &mut u32) {
    let tokens = |steps: &[Step], at: usize| steps[at].tokens.unwrap_or(0);
    let sizes: Vec<u64> = tried.iter().map(|&at| tokens(steps, at)).collect();
    if sizes.iter().all(|&it| it <= WARM_UP_TOKENS) {
        return;
    }
    for (at, window) in rest.windows(sizes.len() + 1).enumerate() {
        let again = &window[1..];
        let is_end = rest.get(at + window.len()).is_none_or(|&next| steps[next].is_after_clear);
        let is_it = again
            .iter()
            .zip(&sizes)
            .all(|(&step, size)| tokens(steps, step) == *size && !steps[step].is_after_clear);
        if is_end && is_it {
            let mut new = HashMap::new();
            for &step in again {
                for part in &mut steps[step].parts {
                    part.request = *new.entry(part.request).or_insert_with(|| {
                        *requests += 1;
                        *requests - 1
                    });
                }
            }
        }
    }
}

/// How many of a stream's first steps are trials.
fn trials(steps: &[Step], of_it: &[usize], is_benchmark: bool) -> usize {
    let tokens =
        |of: &[usize]| -> Vec<u64> { of.iter().map(|&it| steps[it].tokens.unwrap_or(0)).collect() };
    let is_cleared_before = |_: &usize, next: &usize| !steps[*next].is_after_clear;
    let parts: Vec<&[usize]> = of_it.chunk_by(is_cleared_before).collect();
    let mut trials = 0;
    for pair in parts.windows(2) {
        let these = tokens(pair[0]);
        let is_short = matches!(these[..], [tokens] if tokens <= WARM_UP_TOKENS);
        // A benchmark may fill the memory before it does the same again.
        let next = tokens(pair[1]);
        let is_same = next.ends_with(&these) || up_to_first_token(&next).ends_with(&these);
        let is_done_again =
            is_benchmark && trials == 0 && is_same && !wants_results(steps, pair[0]);
        if !is_short && !is_done_again {
            break;
        }
        trials += pair[0].len();
        if !is_short {
            break;
        }
    }
    trials.max(usize::from(parts.len() == 1 && is_guessed_trial(steps, of_it)))
}

/// Embeddings of texts of the same length are just that, and so are measurements of such texts, for which
/// several results of each are asked for.
fn wants_results(steps: &[Step], of_it: &[usize]) -> bool {
    let has_several = |step: &Step| step.parts.iter().any(|part| part.outputs > 1);
    of_it.iter().any(|&at| steps[at].kind == StepKind::Encoding || has_several(&steps[at]))
}

/// Without all that is generated but the first token: llama-bench tries no more of it behind a prompt.
fn up_to_first_token(sizes: &[u64]) -> &[u64] {
    let prompt = sizes.iter().rposition(|&tokens| tokens > 1).map_or(0, |last| last + 1);
    match prompt {
        0 => &[],
        _ => &sizes[..(prompt + 1).min(sizes.len())],
    }
}

/// Of a context whose calls were not seen: a first prompt of two tokens that no answer follows.
fn is_guessed_trial(steps: &[Step], of_it: &[usize]) -> bool {
    let [first, second, ..] = *of_it else { return false };
    let is_prompt = |at: usize| steps[at].is_guess && steps[at].kind == StepKind::Prompt;
    is_prompt(first) && is_prompt(second) && steps[first].tokens <= Some(WARM_UP_TOKENS)
}
