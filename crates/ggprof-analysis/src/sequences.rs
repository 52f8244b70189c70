//! Follows the sequences of libllama's contexts: which tokens of a batch are a prompt and which go
//! on with what was generated, and where one request ends and the next begins.
//!
//! A sequence generates when it goes on where it was, with one token whose successor is asked for,
//! after such a result was given before; or with several of them, as when guesses of a smaller model
//! are checked. Everything else is a prompt. A prompt that comes after a result is of a new request.

use crate::steps::Part;
use ggprof_trace::{Batch, BatchSequence, ContextChange, ContextChangeKind};
use hashbrown::HashMap;

/// What tokens of a sequence are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Prompt,
    Generation,
}

/// What the next batch means for its sequences.
pub(crate) struct Turn {
    pub(crate) parts: Vec<Part>,
    pub(crate) is_warm_up: bool,
    pub(crate) is_after_clear: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Sequences {
    contexts: HashMap<u32, Context>,
    requests: u32,
}

#[derive(Debug, Default)]
struct Context {
    sequences: HashMap<u32, State>,
    is_warming_up: bool,
    was_cleared: bool,
}

/// Where a sequence stands.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The position behind its last token.
    next: u64,
    /// Tokens of its last step.
    tokens: u64,
    /// Its last step gave a result for its last token.
    has_output: bool,
    /// What comes belongs to a new request.
    is_over: bool,
    request: Option<u32>,
}

impl Sequences {
    /// How many requests there were.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Takes the next batch; they come by start, and changes in between.
    pub(crate) fn take(&mut self, batch: &Batch) -> Turn {
        let context = self.contexts.entry(batch.context).or_default();
        let is_after_clear = std::mem::take(&mut context.was_cleared);
        let is_warm_up = context.is_warming_up;
        let outputs_unsaid = batch.outputs.is_none();
        let mut parts = Vec::with_capacity(batch.sequences.len());
        for entry in &batch.sequences {
            let Ok(sequence) = u32::try_from(entry.sequence) else { continue };
            let state = context.sequences.entry(sequence).or_default();
            parts.push(state.go_on(entry, outputs_unsaid, &mut self.requests));
        }
        Turn { parts, is_warm_up, is_after_clear }
    }

    pub(crate) fn change(&mut self, change: &ContextChange) {
        let known = change.context;
        let of_it = self.contexts.iter_mut().filter(|(id, _)| known.is_none_or(|it| it == **id));
        of_it.for_each(|(_, context)| context.change(change.what));
        // A context that nothing was computed in yet.
        if let Some(id) = known.filter(|id| !self.contexts.contains_key(id)) {
            let mut context = Context::default();
            context.change(change.what);
            self.contexts.insert(id, context);
        }
        if let (Some(id), ContextChangeKind::Freed) = (known, change.what) {
            self.contexts.remove(&id);
        }
    }
}

impl Context {
    fn change(&mut self, what: ContextChangeKind) {
        let is_meant = |wanted: Option<u32>, id: u32| wanted.is_none_or(|wanted| wanted == id);
        match what {
            ContextChangeKind::Cleared => {
                self.sequences.clear();
                self.was_cleared = true;
            }
            ContextChangeKind::Removed { sequence, first, last } => {
                for (_, state) in
                    self.sequences.iter_mut().filter(|(id, _)| is_meant(sequence, **id))
                {
                    state.remove(first.into(), last.map(u64::from));
                }
            }
            ContextChangeKind::Shifted { sequence, last, by, .. } => {
                for (_, state) in
                    self.sequences.iter_mut().filter(|(id, _)| is_meant(sequence, **id))
                {
                    // What it generates goes on behind what was moved.
                    if last.is_none_or(|last| u64::from(last) >= state.next) {
                        state.next = state.next.saturating_add_signed(by.into());
                    }
                }
            }
            ContextChangeKind::Copied { sequence, to } => {
                let next = self.sequences.get(&sequence).map_or(0, |state| state.next);
                self.sequences.insert(to, State { next, ..State::default() });
            }
            ContextChangeKind::WarmUp => self.is_warming_up = true,
            ContextChangeKind::WarmedUp => self.is_warming_up = false,
            ContextChangeKind::Freed => {}
        }
    }
}

impl State {
    /// Positions were taken away. Checking a smaller model's guesses takes back less than was added;
    /// what takes more, or takes nothing after a single token, makes room for another prompt.
    fn remove(&mut self, first: u64, last: Option<u64>) {
        if last.is_some_and(|last| last < self.next) {
            return;
        }
        let taken = self.next.saturating_sub(first);
        self.is_over |= taken >= self.tokens.max(1) || (taken == 0 && self.tokens <= 1);
        self.next = self.next.min(first);
    }

    fn go_on(&mut self, entry: &BatchSequence, outputs_unsaid: bool, requests: &mut u32) -> Part {
        let tokens = u64::from(entry.tokens);
        // Of a batch that asks for nothing in particular, libllama gives the last one.
        let outputs = if outputs_unsaid { 1 } else { u64::from(entry.outputs) };
        let (first, last) = entry.positions.map_or_else(
            || (self.next, self.next + tokens.saturating_sub(1)),
            |(first, last)| (first.into(), last.into()),
        );
        let goes_on = self.has_output && !self.is_over && first == self.next;
        let generates = goes_on && self.request.is_some() && outputs == tokens;
        let is_next_chunk = !self.has_output && !self.is_over && first == self.next;
        let request = match self.request {
            Some(request) if generates || is_next_chunk => request,
            _ => {
                *requests += 1;
                *requests - 1
            }
        };
        let role = if generates { Role::Generation } else { Role::Prompt };
        *self = State {
            next: last + 1,
            tokens,
            has_output: outputs > 0,
            is_over: false,
            request: Some(request),
        };
        Part { request, role, first, tokens, outputs }
    }
}
