//! What the program did, step by step: each call that it handed a batch to libllama with, or, where
//! such calls were not seen, each graph run.

use crate::done::done;
use crate::sequences::{Role, Sequences, Turn};
use crate::shape_guess::{Guess, guesses};
use crate::warm_up;
use ggprof_trace::{Batch, BatchFunction, BatchId, EventKind, Trace};

/// Larger batches with an output for every token come from measuring perplexity or making
/// embeddings, not from this many requests at once. For guesses only.
const MOST_SEQUENCES: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepKind {
    Prompt,
    Generation,
    /// Some sequences generate while others have their prompts read.
    Mixed,
    /// Embeddings, or the encoder of a model.
    Encoding,
    /// A graph without tokens.
    Graph,
}

/// A batch, or a graph run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub kind: StepKind,
    /// Whether kind and tokens are guessed from shapes.
    pub is_guess: bool,
    /// It is a trial before the program's work begins.
    pub is_warm_up: bool,
    pub stream: Stream,
    /// When the call or the graph run began.
    pub start_ns: u64,
    /// When its results were there.
    pub end_ns: u64,
    /// Its graph runs, by their places in the trace.
    pub runs: Vec<u32>,
    pub tokens: Option<u64>,
    /// Empty where sequences are not known.
    pub parts: Vec<Part>,
    /// The memory of its context was cleared right before.
    pub is_after_clear: bool,
}

/// Steps of one stream come one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// A context of libllama.
    Context(u32),
    Scheduler(u32),
}

/// What a step did for one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of its [`Request`](crate::Request).
    pub request: u32,
    pub role: Role,
    /// Position of its first token.
    pub first: u64,
    pub tokens: u64,
    pub outputs: u64,
}

impl Part {
    /// Whether it makes a token of the one before. A prompt of a single token is the same work.
    pub(crate) fn is_one_step(&self) -> bool {
        self.role == Role::Generation || (self.tokens, self.outputs) == (1, 1)
    }
}

impl Step {
    /// How many sequences generate a token.
    pub fn generating(&self) -> u64 {
        match self.kind {
            StepKind::Generation if self.parts.is_empty() => self.tokens.unwrap_or(0),
            _ => self.parts.iter().filter(|part| part.is_one_step()).count() as u64,
        }
    }
}

/// All steps, by start, and the sequences that their parts belong to.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    pub(crate) requests: u32,
}

pub(crate) fn steps(trace: &Trace) -> Steps {
    let done = done(trace);
    let mut runs_of_batch: Vec<Vec<u32>> = vec![Vec::new(); trace.batches.len()];
    let mut lone = Vec::new();
    for (at, run) in trace.graph_runs.iter().enumerate() {
        match run.batch {
            Some(BatchId(batch)) => runs_of_batch[batch as usize].push(at as u32),
            None => lone.push(at),
        }
    }
    let needs_guesses = !lone.is_empty() || trace.batches.iter().any(|it| it.tokens.is_none());
    let guesses = if needs_guesses { guesses(trace) } else { Vec::new() };
    let lookup = Lookup { trace, done: &done, guesses: &guesses, encodes: encodes(trace) };
    let mut steps: Vec<Step> = lone.into_iter().map(|at| lookup.of_run(at)).collect();
    let mut sequences = Sequences::default();
    let mut changes = trace.context_changes.iter().peekable();
    for (batch, runs) in trace.batches.iter().zip(runs_of_batch) {
        while let Some(change) = changes.next_if(|change| change.at_ns <= batch.start_ns) {
            sequences.change(change);
        }
        steps.push(lookup.of_batch(batch, runs, sequences.take(batch)));
    }
    steps.sort_by_key(|step| step.start_ns);
    mark_generation(&mut steps);
    warm_up::mark(&mut steps);
    // Of a part of a recording, the graph runs of some batches are not there.
    steps.retain(|step| !step.runs.is_empty());
    Steps { steps, requests: sequences.requests() }
}

struct Lookup<'a> {
    trace: &'a Trace,
    done: &'a [u64],
    guesses: &'a [Guess],
    /// Graph runs that end in an embedding.
    encodes: Vec<bool>,
}

impl Lookup<'_> {
    fn of_run(&self, at: usize) -> Step {
        let run = &self.trace.graph_runs[at];
        let guess = self.guesses[at];
        Step {
            kind: match guess.tokens {
                None => StepKind::Graph,
                Some(_) if self.encodes[at] => StepKind::Encoding,
                Some(1) => StepKind::Generation,
                Some(tokens) if guess.outputs == Some(tokens) && tokens <= MOST_SEQUENCES => {
                    StepKind::Generation
                }
                Some(_) => StepKind::Prompt,
            },
            is_guess: true,
            is_warm_up: false,
            stream: Stream::Scheduler(run.scheduler),
            start_ns: run.start_ns,
            end_ns: self.done[at],
            runs: vec![at as u32],
            tokens: guess.tokens,
            parts: Vec::new(),
            is_after_clear: false,
        }
    }

    fn of_batch(&self, batch: &Batch, runs: Vec<u32>, turn: Turn) -> Step {
        let done = runs.iter().map(|&run| self.done[run as usize]);
        let end_ns = done.chain(batch.end_ns).max().unwrap_or(batch.start_ns);
        let guess = runs.first().and_then(|&run| self.guesses.get(run as usize));
        let guess = guess.copied().unwrap_or_default();
        let tokens = batch.tokens.map(u64::from).or(guess.tokens);
        let encodes = batch.function == BatchFunction::Encode
            || runs.last().is_some_and(|&run| self.encodes[run as usize]);
        let kind = if encodes { StepKind::Encoding } else { kind_of(&turn.parts, tokens) };
        Step {
            kind,
            is_guess: turn.parts.is_empty(),
            is_warm_up: turn.is_warm_up,
            stream: Stream::Context(batch.context),
            start_ns: batch.start_ns,
            end_ns,
            runs,
            tokens,
            parts: turn.parts,
            is_after_clear: turn.is_after_clear,
        }
    }
}

pub(crate) fn kind_of(parts: &[Part], tokens: Option<u64>) -> StepKind {
    let generates = Part::is_one_step;
    match tokens {
        None => StepKind::Graph,
        Some(1) if parts.is_empty() => StepKind::Generation,
        Some(_) if parts.is_empty() => StepKind::Prompt,
        Some(_) if parts.iter().all(generates) => StepKind::Generation,
        Some(_) if parts.iter().any(generates) => StepKind::Mixed,
        Some(_) => StepKind::Prompt,
    }
}

/// A guess: several tokens with an output each are several sequences that generate, unless nothing
/// came before that they could go on with.
fn mark_generation(steps: &mut [Step]) {
    let mut begun: Vec<Stream> = Vec::new();
    for step in steps.iter_mut().filter(|step| step.is_guess) {
        let goes_on = begun.contains(&step.stream);
        if step.kind == StepKind::Generation && step.tokens > Some(1) && !goes_on {
            step.kind = StepKind::Prompt;
        }
        if !goes_on && matches!(step.kind, StepKind::Prompt | StepKind::Generation) {
            begun.push(step.stream);
        }
    }
}

/// Which graph runs end in an embedding instead of logits, by llama.cpp's names of its results.
fn encodes(trace: &Trace) -> Vec<bool> {
    const EMBEDDINGS: [&str; 2] = ["result_embd", "result_norm"];
    let mut last = vec![(0, None); trace.graph_runs.len()];
    let (starts, nodes) = (trace.events.starts(), trace.events.nodes());
    for (stretch, events) in trace.events.stretches() {
        let run = stretch.graph_run.filter(|_| stretch.kind == EventKind::Op);
        let Some(place) = run.and_then(|run| last.get_mut(run.0 as usize)) else { continue };
        for at in events.map(|at| at as usize) {
            if starts[at] >= place.0 {
                *place = (starts[at], Some(nodes[at]));
            }
        }
    }
    let ends_in_embedding = |(_, node): (u64, Option<_>)| {
        let name = node.and_then(|node| trace.tensor_name(node)).unwrap_or_default();
        EMBEDDINGS.iter().any(|embedding| name.starts_with(embedding))
    };
    last.into_iter().map(ends_in_embedding).collect()
}
