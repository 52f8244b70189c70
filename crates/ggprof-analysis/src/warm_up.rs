//! Trials before the program's work begins, which count for no speed.

use crate::steps::{Step, StepKind, Stream};

/// llama.cpp tries a new context with two tokens before the real prompt comes.
const WARM_UP_TOKENS: u64 = 2;

/// A trial has few batches.
const MOST_TRIALS: usize = 64;

/// The first steps of a context are a trial if libllama was told so; or if its memory is cleared
/// afterwards, and they were short or are then done again.
pub(crate) fn mark(steps: &mut [Step]) {
    let mut seen: Vec<Stream> = Vec::new();
    for at in 0..steps.len() {
        let stream = steps[at].stream;
        if seen.contains(&stream) {
            continue;
        }
        seen.push(stream);
        let of_it = (at..steps.len()).filter(|&other| steps[other].stream == stream);
        let of_it: Vec<usize> = of_it.take(MOST_TRIALS + 1).collect();
        let end = of_it.iter().skip(1).position(|&other| steps[other].is_after_clear);
        let Some(end) = end else {
            mark_guessed(steps, &of_it);
            continue;
        };
        let (trial, rest) = of_it.split_at(end + 1);
        let tokens = |of: &[usize]| of.iter().map(|&it| steps[it].tokens.unwrap_or(0)).sum::<u64>();
        let again = &rest[..trial.len().min(rest.len())];
        if tokens(trial) <= WARM_UP_TOKENS || tokens(again) == tokens(trial) {
            trial.to_vec().into_iter().for_each(|it| steps[it].is_warm_up = true);
        }
    }
}

/// Of a context whose calls were not seen: a first prompt of two tokens that no answer follows.
fn mark_guessed(steps: &mut [Step], of_it: &[usize]) {
    let [first, second, ..] = *of_it else { return };
    let is_prompt = |at: usize| steps[at].is_guess && steps[at].kind == StepKind::Prompt;
    if is_prompt(first) && is_prompt(second) && steps[first].tokens <= Some(WARM_UP_TOKENS) {
        steps[first].is_warm_up = true;
    }
}
