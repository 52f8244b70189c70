//! What the program did, step by step: each call with which it handed a batch to libllama, or, where
//! such calls were not seen, each graph run.

use crate::gaps::{Gaps, missing_before_of, within};
use crate::sequences::{KeptTokens, Sequences, Turn};
use crate::shape_guess::{Guess, guesses};
use crate::step::{Role, Step, StepKind, StepPart, Stream};
use crate::{drafts, warm_up};
use ggprof_trace::{
    Batch, BatchFunction, BatchId, ContextChangeKind, EventKind, ProcessIndex, Trace, done,
};
use hashbrown::{HashMap, HashSet};

/// Larger batches with an output for every token come from measuring perplexity or making
/// embeddings, not from this many requests at once. For guesses only.
const MOST_SEQUENCES: u64 = 64;

/// All steps, by start, and the sequences that their parts belong to. Those that were left out on request
/// are among them: what others are depends on them.
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
    let is_unsure = |batch: &Batch| batch.sequences.is_empty() || batch.is_from_positions;
    let needs_guesses = !lone.is_empty() || trace.batches.iter().any(is_unsure);
    let guesses = if needs_guesses { guesses(trace) } else { Vec::new() };
    let left_out = left_out(trace);
    let (encodes, read) = (encodes(trace), embeddings_read(trace));
    let lookup = Lookup { trace, done: &done, guesses: &guesses, left_out, encodes, read };
    let mut steps: Vec<Step> = lone.into_iter().map(|at| lookup.of_run(at)).collect();
    let mut requests = lookup.of_batches(runs_of_batch, &mut steps);
    steps.sort_by_key(|step| step.start_ns);
    mark_generation(&mut steps);
    warm_up::mark(trace, &mut steps, &mut requests);
    warm_up::tell_fills_apart(&mut steps, &mut requests);
    drafts::mark(&mut steps);
    let requests = number_anew(&mut steps);
    Steps { steps, requests }
}

/// Some requests turned out to be several, and some to be none. Numbers go by their first steps; how many
/// there are.
fn number_anew(steps: &mut [Step]) -> u32 {
    let mut new: HashMap<u32, u32> = HashMap::new();
    let of_requests = steps.iter().filter(|step| !step.is_draft).flat_map(|step| &step.parts);
    for part in of_requests {
        let next = new.len() as u32;
        new.entry(part.request).or_insert(next);
    }
    for part in steps.iter_mut().flat_map(|step| &mut step.parts) {
        part.request = new.get(&part.request).copied().unwrap_or(0);
    }
    new.len() as u32
}

/// When the graph runs of each batch were over that were left out on request, and who computed them.
fn left_out(trace: &Trace) -> HashMap<BatchId, (u64, Option<ProcessIndex>)> {
    let mut known = HashMap::new();
    for run in &trace.left_out {
        let Some(batch) = run.batch else { continue };
        let entry = known.entry(batch).or_insert((0, run.process));
        entry.0 = run.end_ns.max(entry.0);
    }
    known
}

/// Notes how much of what the last step of each request checked has stayed.
#[derive(Default)]
struct Checked {
    /// By request: its last step, and the part in it.
    last: HashMap<u32, (usize, usize)>,
}

impl Checked {
    fn note(&self, steps: &mut [Step], kept: KeptTokens) {
        let Some(&(step, part)) = self.last.get(&kept.request) else { return };
        let part = &mut steps[step].parts[part];
        part.kept = kept.tokens.clamp(part.tokens.min(1), part.tokens);
    }

    /// A step of which the next is the last now. That a sequence goes on where it was means that all
    /// before was right.
    fn take(&mut self, steps: &mut [Step]) {
        let Some((at, step)) = steps.iter().enumerate().next_back() else { return };
        let parts: Vec<StepPart> = step.parts.clone();
        for (place, part) in parts.iter().enumerate() {
            if let Some(&(before, place)) = self.last.get(&part.request) {
                let before = &mut steps[before].parts[place];
                let tokens = part.first.saturating_sub(before.first);
                if before.role == Role::Generation && before.kept < tokens {
                    before.kept = tokens.min(before.tokens);
                }
            }
            self.last.insert(part.request, (at, place));
        }
    }
}

struct Lookup<'a> {
    trace: &'a Trace,
    done: &'a [u64],
    guesses: &'a [Guess],
    left_out: HashMap<BatchId, (u64, Option<ProcessIndex>)>,
    /// Graph runs that end in an embedding.
    encodes: Vec<bool>,
    /// Calls, with their contexts, whose embeddings the program looked at.
    read: HashSet<(u32, u32)>,
}

impl Lookup<'_> {
    /// Adds the steps of all batches; how many requests there were.
    fn of_batches(&self, runs_of_batch: Vec<Vec<u32>>, steps: &mut Vec<Step>) -> u32 {
        let (mut sequences, mut checked) = (Sequences::default(), Checked::default());
        let mut changes = self.trace.context_changes.iter().peekable();
        let gaps = Gaps::of_recording(self.trace);
        // Of each context: when its last batch was, and whether its sequences are known.
        let mut last: HashMap<u32, (u64, bool)> = HashMap::new();
        for ((place, batch), runs) in (0..).zip(&self.trace.batches).zip(runs_of_batch) {
            let left_out = self.left_out.get(&BatchId(place)).copied();
            if left_out.is_none() && self.has_no_tokens(batch, &runs) {
                steps.extend(runs.iter().map(|&at| self.of_run(at as usize)));
                continue;
            }
            while let Some(change) = changes.next_if(|change| change.at_ns <= batch.start_ns) {
                let kept = sequences.change(change);
                kept.into_iter().for_each(|kept| checked.note(steps, kept));
            }
            let run = runs.first().map(|&run| self.trace.graph_runs[run as usize].process);
            let process = run.or(left_out.map(|(_, process)| process)).flatten();
            let this = (batch.start_ns, !batch.sequences.is_empty());
            let is_after_gap = match last.insert(batch.context, this) {
                Some((last_ns, is_known)) => {
                    !is_known || within(gaps.of_process(process), last_ns, batch.start_ns) > 0
                }
                None => missing_before_of(self.trace, process) > 0,
            };
            let turn = sequences.take(batch, is_after_gap);
            let mut step = self.of_batch(batch, runs, turn);
            step.process = process;
            step.end_ns = step.end_ns.max(left_out.map_or(0, |(done_ns, _)| done_ns));
            step.ready_ns = step.end_ns;
            steps.push(step);
            checked.take(steps);
        }
        for change in changes {
            let kept = sequences.change(change);
            kept.into_iter().for_each(|kept| checked.note(steps, kept));
        }
        for step in steps.iter_mut() {
            if matches!(step.stream, Stream::Context(id) if sequences.was_only_tried(id)) {
                step.take_for_trial();
            }
        }
        sequences.requests()
    }

    /// Parts of images have positions, too, but are not looked up in a table.
    fn has_no_tokens(&self, batch: &Batch, runs: &[u32]) -> bool {
        let is_without = |&run: &u32| self.guesses[run as usize].tokens.is_none();
        batch.is_from_positions && runs.iter().all(is_without)
    }

    fn of_run(&self, at: usize) -> Step {
        let run = &self.trace.graph_runs[at];
        let guess = self.guesses[at];
        Step {
            kind: match guess.tokens {
                Some(_) if self.encodes[at] => StepKind::Encoding,
                _ => guess.kind(),
            },
            is_guess: true,
            is_warm_up: false,
            is_guessed_trial: false,
            is_draft: false,
            stream: Stream::Scheduler(run.scheduler),
            process: run.process,
            start_ns: run.start_ns,
            end_ns: self.done[at],
            ready_ns: self.done[at],
            runs: vec![at as u32],
            tokens: guess.tokens,
            parts: Vec::new(),
            is_after_clear: false,
            is_untried: false,
        }
    }

    fn of_batch(&self, batch: &Batch, runs: Vec<u32>, turn: Turn) -> Step {
        let done = runs.iter().map(|&run| self.done[run as usize]);
        // A damaged file may say that it was done before it began.
        let end_ns = done.chain(batch.end_ns).fold(batch.start_ns, u64::max);
        let guess = runs.first().and_then(|&run| self.guesses.get(run as usize));
        let guess = guess.copied().unwrap_or_default();
        let tokens = batch.tokens.map(u64::from).or(guess.tokens);
        let encodes = batch.function == BatchFunction::Encode
            || runs.last().is_some_and(|&run| self.encodes[run as usize])
            || (self.read.contains(&(batch.context, batch.call)) && !goes_on(&turn.parts));
        let kind = match turn.parts.is_empty() {
            _ if encodes => StepKind::Encoding,
            true if has_result_of_each(batch) => StepKind::Generation,
            true => Guess { tokens, ..guess }.kind(),
            false => kind_of(&turn.parts, tokens),
        };
        Step {
            kind,
            is_guess: turn.parts.is_empty(),
            is_warm_up: turn.is_warm_up,
            is_guessed_trial: false,
            is_draft: false,
            stream: Stream::Context(batch.context),
            process: None,
            start_ns: batch.start_ns,
            end_ns,
            ready_ns: end_ns,
            runs,
            tokens,
            parts: turn.parts,
            is_after_clear: turn.is_after_clear,
            is_untried: turn.is_untried,
        }
    }
}

impl Guess {
    fn kind(self) -> StepKind {
        match self.tokens {
            None => StepKind::Graph,
            Some(1) => StepKind::Generation,
            Some(tokens) if self.outputs == Some(tokens) && tokens <= MOST_SEQUENCES => {
                StepKind::Generation
            }
            Some(_) => StepKind::Prompt,
        }
    }
}

/// Of a batch whose sequences are not known: they are more than can be told, with one token of each.
pub(crate) fn has_result_of_each(batch: &Batch) -> bool {
    batch.tokens > Some(1) && batch.outputs == batch.tokens
}

pub(crate) fn kind_of(parts: &[StepPart], tokens: Option<u64>) -> StepKind {
    let generates = StepPart::is_one_step;
    match tokens {
        None => StepKind::Graph,
        Some(1) if parts.is_empty() => StepKind::Generation,
        Some(_) if parts.is_empty() => StepKind::Prompt,
        Some(_) if parts.iter().all(generates) => StepKind::Generation,
        Some(_) if parts.iter().any(generates) => StepKind::Mixed,
        Some(_) => StepKind::Prompt,
    }
}

/// Whether a sequence goes on with a token that it generated.
pub(crate) fn goes_on(parts: &[StepPart]) -> bool {
    parts.iter().any(|part| part.role == Role::Generation)
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

/// Which calls the program looked at the embeddings of. Where each token has one of its own (`--pooling
/// none`), the graph ends in logits all the same.
fn embeddings_read(trace: &Trace) -> HashSet<(u32, u32)> {
    let read = trace.context_changes.iter().filter_map(|change| match change.what {
        ContextChangeKind::EmbeddingsRead { call } => Some((change.context?, call)),
        _ => None,
    });
    read.collect()
}

/// Which graph runs end in an embedding instead of logits, by llama.cpp's names of its results.
fn encodes(trace: &Trace) -> Vec<bool> {
    let mut last = vec![(0, None); trace.graph_runs.len()];
    for (stretch, events) in trace.events.stretches() {
        let run = stretch.graph_run.filter(|_| stretch.kind == EventKind::Op);
        let Some(place) = run.and_then(|run| last.get_mut(run.0 as usize)) else { continue };
        let starts = trace.events.spans(events.clone()).map(|(start_ns, _)| start_ns);
        for (start_ns, &node) in starts.zip(trace.events.nodes_of(events)) {
            if start_ns >= place.0 {
                *place = (start_ns, Some(node));
            }
        }
    }
    let ends_in_embedding = |(_, node): (u64, Option<_>)| {
        node.and_then(|node| trace.tensor_name(node)).is_some_and(is_embedding)
    };
    last.into_iter().map(ends_in_embedding).collect()
}

/// Whether a graph whose last result has this name makes embeddings.
pub(crate) fn is_embedding(name: &str) -> bool {
    const EMBEDDINGS: [&str; 2] = ["result_embd", "result_norm"];
    EMBEDDINGS.iter().any(|embedding| name.starts_with(embedding))
}
