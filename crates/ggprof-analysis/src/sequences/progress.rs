//! Where a sequence stands, and what its next tokens are.
//!
//! It generates when it goes on where it was, with one token whose successor is asked for, after such a
//! result was given before; or with several of them, when what was drafted is checked. Everything else is
//! a prompt. A prompt may come in pieces that each have a result: those follow each other until the first
//! token was generated. A prompt that comes later is of a new request.
//!
//! Some models give all tokens of an image one position, and go on behind the image's longer side. Such a
//! prompt leaves positions out, or has batches at the same one.

use super::{KeptTokens, Role};
use crate::step::StepPart;
use ggprof_trace::BatchSequence;

/// More than programs draft at once, with the token that the drafts follow. Where more tokens come that
/// all have results, a program wants those results.
const MOST_CHECKED: u64 = 65;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// The position behind its last token.
    pub(super) next: u64,
    /// The position of the first token of its last step.
    first: u64,
    /// Tokens of its last step.
    tokens: u64,
    /// Of the first one of its prompt.
    chunk: u64,
    /// Its last step gave a result for its last token.
    has_output: bool,
    /// And for each of several tokens.
    has_all_outputs: bool,
    /// Its last step may have checked drafts, and nothing says yet how many were right.
    is_unchecked: bool,
    /// Its request has gone on from a result.
    has_generated: bool,
    /// Its prompt is complete.
    is_answered: bool,
    /// What comes belongs to a new request.
    is_over: bool,
    /// From there on positions were taken away that nobody was seen to fill: what is before them came from
    /// elsewhere, such as a file.
    loaded: Option<u64>,
    request: Option<u32>,
}

/// How much is known of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The program left it to libllama which outputs there are.
    pub(super) outputs_unsaid: bool,
    /// Calls are seen, not only positions.
    pub(super) is_known: bool,
    /// Other batches of the context may be missing right before it.
    pub(super) is_after_gap: bool,
}

impl Progress {
    /// One whose tokens came from elsewhere.
    pub(super) fn at(next: u64) -> Self {
        Self { next, ..Self::default() }
    }

    /// Positions were taken away. Of drafts that were checked, those go that were wrong; and programs may
    /// ask for it to be done where there is nothing to take. Anything else makes room for another prompt.
    pub(super) fn remove(
        &mut self,
        first: u64,
        last: Option<u64>,
        is_named: bool,
    ) -> Option<KeptTokens> {
        if last.is_some_and(|last| last < self.next) {
            return None;
        }
        let taken = self.next.saturating_sub(first);
        self.loaded = Some(first).filter(|&first| is_named && first > self.next);
        self.next = self.next.min(first);
        let is_check = std::mem::take(&mut self.is_unchecked) && taken < self.tokens;
        match taken {
            _ if is_check => self.has_generated = true,
            // llama-server looks after one sequence before each part of its prompt, and only the last
            // part has a result.
            0 => self.is_answered |= is_named && self.has_output,
            _ => self.is_over = true,
        }
        let kept = self.tokens.checked_sub(taken).filter(|_| is_check)?;
        self.request.map(|request| KeptTokens { request, tokens: kept })
    }

    pub(super) fn go_on(
        &mut self,
        entry: &BatchSequence,
        seen: Seen,
        requests: &mut u32,
    ) -> StepPart {
        let tokens = u64::from(entry.tokens);
        // Of a batch that asks for nothing in particular, libllama gives the last one.
        let outputs = if seen.outputs_unsaid { 1 } else { u64::from(entry.outputs) };
        let (first, last) = entry.positions.map_or_else(
            || (self.next, self.next + tokens.saturating_sub(1)),
            |(first, last)| (first.into(), last.into()),
        );
        let follows = self.request.is_some()
            && !self.is_over
            && (first == self.next || self.is_behind_image(first, seen));
        let generates = follows && self.has_output && self.is_token_or_check(tokens, outputs);
        // All parts are as large as the first but the last.
        let is_part = self.tokens == self.chunk && tokens <= self.chunk;
        let is_prompt_open =
            tokens > 1 && !self.has_generated && !self.is_answered && (is_part || !seen.is_known);
        let is_next_chunk = follows && (!self.has_output || is_prompt_open);
        let goes_on = generates || is_next_chunk;
        let began_before = !goes_on && self.began_before(first, (tokens, outputs), seen);
        let request = self.request.filter(|_| goes_on).unwrap_or_else(|| {
            *requests += 1;
            *requests - 1
        });
        let is_token = (tokens, outputs) == (1, 1);
        let generates = generates || (began_before && is_token);
        let is_all = tokens > 1 && outputs == tokens;
        *self = Progress {
            next: last + 1,
            first,
            tokens,
            chunk: if goes_on { self.chunk } else { tokens },
            has_output: outputs > 0,
            has_all_outputs: is_all,
            is_unchecked: goes_on && is_all && tokens <= MOST_CHECKED,
            has_generated: generates || (goes_on && self.has_generated),
            is_answered: false,
            is_over: false,
            loaded: None,
            request: Some(request),
        };
        let role = if generates { Role::Generation } else { Role::Prompt };
        // Of several that are checked, the first is no draft.
        let kept = if generates { tokens.min(1) } else { tokens };
        let sequence = entry.sequence;
        StepPart { request, sequence, role, first, tokens, outputs, kept, began_before }
    }

    /// Whether a prompt that has no result yet goes on with what follows an image, or with more of it.
    fn is_behind_image(&self, first: u64, seen: Seen) -> bool {
        let is_at_one_position = self.tokens > 1 && self.next == self.first + 1;
        let is_more = is_at_one_position && first == self.first;
        let is_undone = self.has_output || self.loaded.is_some();
        seen.is_known && !seen.is_after_gap && !is_undone && (first > self.next || is_more)
    }

    /// Whether tokens that follow a result are a single one, or drafts. A prompt that wants all results,
    /// as some bindings ask for, goes on in the same way until the first token was generated.
    fn is_token_or_check(&self, tokens: u64, outputs: u64) -> bool {
        let is_prompt = self.has_all_outputs && !self.has_generated;
        outputs == tokens && (tokens == 1 || (tokens <= MOST_CHECKED && !is_prompt))
    }

    /// Whether what seems to be a new request goes on with something that was not recorded: a single
    /// token behind positions that nobody filled, or anything but a beginning where batches are missing.
    fn began_before(&self, first: u64, tokens: (u64, u64), seen: Seen) -> bool {
        let is_loaded = self.loaded == Some(first);
        let is_from_nowhere = seen.is_known && tokens == (1, 1) && first > self.next && !is_loaded;
        is_from_nowhere || (seen.is_after_gap && first > 0 && !self.is_over)
    }
}
