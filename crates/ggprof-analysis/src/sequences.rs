//! Follows the sequences of libllama's contexts: which tokens of a batch are a prompt and which go
//! on with what was generated, and where one request ends and the next begins.
//!
//! `sequences/progress.rs` has the rules; here they are applied to the sequences of each context.

mod progress;

use crate::step::{Role, StepPart};
use crate::warm_up::WARM_UP_TOKENS;
use ggprof_trace::{Batch, BatchSequence, ContextChange, ContextChangeKind};
use hashbrown::{HashMap, HashSet};
use progress::Progress;

/// What the next batch means for its sequences.
pub(crate) struct Turn {
    pub(crate) parts: Vec<StepPart>,
    pub(crate) is_warm_up: bool,
    pub(crate) is_after_clear: bool,
    pub(crate) is_untried: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Sequences {
    contexts: HashMap<u32, ContextState>,
    /// Those that were freed after nothing but a trial.
    only_tried: HashSet<u32>,
    requests: u32,
}

#[derive(Debug, Default)]
struct ContextState {
    sequences: HashMap<u32, Progress>,
    batches: u64,
    tokens: u64,
    is_warming_up: bool,
    /// How often its memory was cleared since the last batch.
    clears: u32,
}

/// Of the tokens that the last step of a request checked, so many stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptTokens {
    pub(crate) request: u32,
    pub(crate) tokens: u64,
}

impl Sequences {
    /// How many requests there were.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether nothing happened in a context but a trial, as llama.cpp makes it in each.
    pub(crate) fn was_only_tried(&self, id: u32) -> bool {
        let is_it =
            |it: &ContextState| it.clears > 0 && it.batches == 1 && it.tokens <= WARM_UP_TOKENS;
        self.only_tried.contains(&id) || self.contexts.get(&id).is_some_and(is_it)
    }

    /// A context is freed of which nobody asks any more, as while a program runs; whether nothing happened
    /// in it but a trial.
    pub(crate) fn forget(&mut self, id: u32) -> bool {
        self.only_tried.remove(&id)
    }

    /// Takes the next batch; they come by start, and changes in between. Before the first batch of a
    /// context, or since its last one, others may be missing.
    pub(crate) fn take(&mut self, batch: &Batch, is_after_gap: bool) -> Turn {
        let context = self.contexts.entry(batch.context).or_default();
        let clears = std::mem::take(&mut context.clears);
        let is_after_clear = clears > 0 || context.restarts(batch);
        // Once when the context was made, and once more before each of several repetitions.
        let is_untried = context.batches == 0 && clears > 1;
        context.batches += 1;
        context.tokens += batch.tokens.map_or(0, u64::from);
        let is_warm_up = context.is_warming_up;
        let outputs_unsaid = batch.outputs.is_none();
        let mut parts = Vec::with_capacity(batch.sequences.len());
        let mut taken = Vec::new();
        for entry in &batch.sequences {
            let sequence = match batch.is_from_positions {
                true => context.sequence_at(entry, &taken),
                false => u32::try_from(entry.sequence).ok(),
            };
            let Some(sequence) = sequence else { continue };
            taken.push(sequence);
            let progress = context.sequences.entry(sequence).or_default();
            // Where no call was seen, a sequence may have gone back to an older position unseen.
            let is_known = !batch.is_from_positions;
            let seen = progress::Seen { outputs_unsaid, is_known, is_after_gap };
            parts.push(progress.go_on(entry, seen, &mut self.requests));
        }
        Turn { parts, is_warm_up, is_after_clear, is_untried }
    }

    /// What became known of steps before it.
    pub(crate) fn change(&mut self, change: &ContextChange) -> Vec<KeptTokens> {
        let Some(id) = change.context else {
            // A trial is one context's; which one, the trial itself tells.
            let is_trial = matches!(
                change.what,
                ContextChangeKind::WarmUp | ContextChangeKind::WarmedUp | ContextChangeKind::Freed
            );
            let all = self.contexts.values_mut().filter(|_| !is_trial);
            return all.flat_map(|context| context.change(change.what)).collect();
        };
        if change.what == ContextChangeKind::Freed {
            self.only_tried.extend(Some(id).filter(|&id| self.was_only_tried(id)));
            self.contexts.remove(&id);
            return Vec::new();
        }
        // Maybe nothing was computed in it yet.
        self.contexts.entry(id).or_default().change(change.what)
    }
}

impl ContextState {
    /// Where calls are not seen, nothing says that the memory was cleared. A program that computes one
    /// sequence at a time has done it if that begins again.
    fn restarts(&self, batch: &Batch) -> bool {
        let is_first = |entry: &BatchSequence| entry.positions.is_some_and(|it| it.0 == 0);
        batch.is_from_positions
            && !self.sequences.is_empty()
            && matches!(&batch.sequences[..], [entry] if is_first(entry))
    }

    /// The sequence that goes on at a position, or a new one. Only the latest are kept, so that a program
    /// that runs for long does not gather them.
    fn sequence_at(&mut self, entry: &BatchSequence, taken: &[u32]) -> Option<u32> {
        const MOST: usize = 256;
        let first = u64::from(entry.positions?.0);
        let is_it =
            |(id, progress): &(&u32, &Progress)| progress.next == first && !taken.contains(id);
        let goes_on = self.sequences.iter().filter(is_it).map(|(id, _)| *id).max();
        if goes_on.is_some() {
            return goes_on;
        }
        let new = self.sequences.keys().max().map_or(0, |id| id + 1);
        if self.sequences.len() >= MOST {
            self.sequences.retain(|id, _| *id + MOST as u32 / 2 > new);
        }
        Some(new)
    }

    /// What a sequence generates goes on behind its last token, which may be among those that move.
    fn move_last(
        &mut self,
        sequence: Option<u32>,
        (first, last): (u32, Option<u32>),
        to: impl Fn(u64) -> u64,
    ) {
        let is_meant = |id: u32| sequence.is_none_or(|wanted| wanted == id);
        for (_, progress) in self.sequences.iter_mut().filter(|(id, _)| is_meant(**id)) {
            let Some(at) = progress.next.checked_sub(1) else { continue };
            if at >= u64::from(first) && last.is_none_or(|last| u64::from(last) > at) {
                progress.next = to(at) + 1;
            }
        }
    }

    fn change(&mut self, what: ContextChangeKind) -> Vec<KeptTokens> {
        let is_meant = |wanted: Option<u32>, id: u32| wanted.is_none_or(|wanted| wanted == id);
        match what {
            ContextChangeKind::Cleared => {
                self.sequences.clear();
                self.clears += 1;
            }
            ContextChangeKind::Removed { sequence, first, last } => {
                sequence.map(|id| self.sequences.entry(id).or_default());
                let meant = self.sequences.iter_mut().filter(|(id, _)| is_meant(sequence, **id));
                let (first, last) = (first.into(), last.map(u64::from));
                let kept = meant.filter_map(|(_, it)| it.remove(first, last, sequence.is_some()));
                return kept.collect();
            }
            ContextChangeKind::Kept { sequence } => self.sequences.retain(|id, _| *id == sequence),
            ContextChangeKind::Shifted { sequence, first, last, by } => {
                self.move_last(sequence, (first, last), |at| at.saturating_add_signed(by.into()));
            }
            ContextChangeKind::Divided { sequence, first, last, by } => {
                self.move_last(sequence, (first, last), |at| at / u64::from(by.max(1)));
            }
            // A program that keeps the first of several sequences of drafts copies it to itself.
            ContextChangeKind::Copied { sequence, to } if sequence == to => {}
            ContextChangeKind::Copied { sequence, to } => {
                let next = self.sequences.get(&sequence).map_or(0, |progress| progress.next);
                self.sequences.insert(to, Progress::at(next));
            }
            ContextChangeKind::WarmUp => self.is_warming_up = true,
            ContextChangeKind::WarmedUp => self.is_warming_up = false,
            ContextChangeKind::Freed | ContextChangeKind::EmbeddingsRead { .. } => {}
        }
        Vec::new()
    }
}
