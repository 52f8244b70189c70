//! Trials before the program's work begins, which count for no speed.

use crate::steps::{Step, StepKind, Stream};

/// llama.cpp tries a new context with two tokens before the real prompt comes, and again to see
/// what can be taken back.
pub(crate) const WARM_UP_TOKENS: u64 = 2;

/// Trials come first, and have few batches.
const MOST_TRIALS: usize = 64;

/// Marks the first steps of each stream as trials, if the memory was cleared behind them, and they
/// were short or are then done again. (Some are marked already: libllama was told.)
pub(crate) fn mark(steps: &mut [Step]) {
    let mut streams: Vec<Stream> = Vec::new();
    for at in 0..steps.len() {
        let stream = steps[at].stream;
        if !streams.contains(&stream) {
            streams.push(stream);
            let of_it = (at..steps.len()).filter(|&other| steps[other].stream == stream);
            let of_it: Vec<usize> = of_it.take(MOST_TRIALS).collect();
            let trials = trials(steps, &of_it);
            of_it[..trials].iter().for_each(|&trial| steps[trial].is_warm_up = true);
        }
    }
}

/// How many of a stream's first steps are trials.
fn trials(steps: &[Step], of_it: &[usize]) -> usize {
    let tokens =
        |of: &[usize]| -> Vec<u64> { of.iter().map(|&it| steps[it].tokens.unwrap_or(0)).collect() };
    let is_cleared_before = |_: &usize, next: &usize| !steps[*next].is_after_clear;
    let parts: Vec<&[usize]> = of_it.chunk_by(is_cleared_before).collect();
    let mut trials = 0;
    for pair in parts.windows(2) {
        let these = tokens(pair[0]);
        let is_short = matches!(these[..], [tokens] if tokens <= WARM_UP_TOKENS);
        // A benchmark may fill the memory before it does the same again.
        let is_done_again = trials == 0 && tokens(pair[1]).ends_with(&these);
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

/// Of a context whose calls were not seen: a first prompt of two tokens that no answer follows.
fn is_guessed_trial(steps: &[Step], of_it: &[usize]) -> bool {
    let [first, second, ..] = *of_it else { return false };
    let is_prompt = |at: usize| steps[at].is_guess && steps[at].kind == StepKind::Prompt;
    is_prompt(first) && is_prompt(second) && steps[first].tokens <= Some(WARM_UP_TOKENS)
}
