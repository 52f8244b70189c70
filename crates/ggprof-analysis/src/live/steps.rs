//! Steps of a program while it runs: from the begins and ends of batches to steps that are over.
//! [`steps`](crate::steps) does the same for whole recordings; what batches mean is decided in
//! [`sequences`](crate::sequences) for both.

use super::done::{Done, DoneStep};
use super::kinds::Kinds;
use super::requests::Requests;
use super::trials::Trials;
use super::{Counters, LiveWait};
use crate::drafts::{Evidence, follows};
use crate::sequences::{Sequences, Turn};
use crate::step::{Role, StepKind, StepPart, Stream};
use crate::steps::{goes_on, has_result_of_each, kind_of};
use ggprof_trace::formats::spool::News;
use ggprof_trace::{Batch, BatchFunction, ContextChange, ContextChangeKind, Trace};
use hashbrown::{HashMap, HashSet};

#[derive(Debug, Default)]
pub(super) struct LiveSteps {
    sequences: Sequences,
    open: HashMap<u32, LiveStep>,
    trials: Trials,
    pub(super) kinds: Kinds,
    /// Which contexts draft for others.
    drafts: Evidence,
    /// A step that has ended, and when; the smaller model may read its batch next, before the program
    /// goes on.
    unread: Option<(LiveStep, u64)>,
    /// By the call that reads it.
    being_read: HashMap<u32, LiveStep>,
    pub(super) requests: Requests,
    pub(super) done: Done,
}

#[derive(Debug, Clone)]
pub(super) struct LiveStep {
    pub(super) context: u32,
    start_ns: u64,
    pub(super) tokens: u64,
    /// Tokens that are read, and that sequences are further than before.
    prompt: u64,
    generated: u64,
    pub(super) parts: Vec<StepPart>,
    is_counted: bool,
    pub(super) gives_tokens: bool,
}

/// What is being computed.
#[derive(Debug, Default)]
pub(super) struct BeingComputed {
    pub(super) requests: HashSet<u32>,
    pub(super) contexts: HashSet<u32>,
}

impl LiveSteps {
    /// Begins and ends of steps in the order of time; the longest wait of a sequence.
    pub(super) fn take(
        &mut self,
        descriptions: &Trace,
        news: &News,
        now: &mut Counters,
    ) -> LiveWait {
        self.kinds.note_embeddings(descriptions, news);
        let mut changes = news.changes.iter().peekable();
        let mut ended = news.ended.clone();
        ended.sort_unstable_by_key(|(_, end_ns)| *end_ns);
        let mut ended = ended.into_iter().peekable();
        let mut longest = LiveWait::default();
        for batch in &news.begun {
            while let Some((call, end_ns)) = ended.next_if(|(_, end_ns)| *end_ns <= batch.start_ns)
            {
                longest = longest.max(self.end(call, end_ns, now));
            }
            while let Some(change) = changes.next_if(|change| change.at_ns <= batch.start_ns) {
                longest = longest.max(self.change(change, now));
            }
            longest = longest.max(self.begin(batch, news.standing.is_partial, now));
        }
        if news.begun.is_empty() {
            longest = longest.max(self.nobody_reads(now));
        }
        let longest = changes.fold(longest, |longest, it| longest.max(self.change(it, now)));
        ended.fold(longest, |longest, (call, end)| longest.max(self.end(call, end, now)))
    }

    /// The longest time that a sequence had waited for a step that is over by that.
    fn change(&mut self, change: &ContextChange, now: &mut Counters) -> LiveWait {
        self.sequences.change(change);
        let freed = change.context.filter(|_| change.what == ContextChangeKind::Freed);
        let Some(context) = freed else { return LiveWait::default() };
        let was_trial = self.sequences.forget(context);
        self.drafts.forget(Stream::Context(context));
        let step = self.trials.forget(context).filter(|_| !was_trial);
        let longest =
            step.map_or(LiveWait::default(), |(step, end_ns)| self.account(step, end_ns, now));
        self.requests.end_of(context);
        longest
    }

    /// The same for a step that nobody reads.
    fn begin(&mut self, batch: &Batch, is_partial: bool, now: &mut Counters) -> LiveWait {
        now.batches += 1;
        let context = batch.context;
        let is_known = self.trials.know(context);
        let turn = self.sequences.take(batch, is_partial && !is_known);
        let mut longest = LiveWait::default();
        if let Some((step, end_ns)) = self.trials.conclude(context, &turn) {
            longest = self.account(step, end_ns, now);
        }
        self.requests.begin_step(context);
        let drafts = self.is_drafting(context, &turn.parts);
        let step = self.step(batch, turn, drafts);
        // A context computes one batch at a time: of an older one the end was not seen.
        self.open.retain(|_, step| step.context != context);
        let read = self.unread.take_if(|(unread, _)| drafts && follows(&step.parts, &unread.parts));
        self.being_read.extend(read.map(|(read, _)| (batch.call, read)));
        self.open.insert(batch.call, step);
        longest.max(self.nobody_reads(now))
    }

    fn step(&mut self, batch: &Batch, turn: Turn, drafts: bool) -> LiveStep {
        let tokens = batch.tokens.map_or(0, u64::from);
        let encodes = batch.function == BatchFunction::Encode;
        let kind = match encodes {
            true => StepKind::Encoding,
            false if turn.parts.is_empty() && has_result_of_each(batch) => StepKind::Generation,
            false => kind_of(&turn.parts, batch.tokens.map(u64::from)),
        };
        self.kinds.insert(batch.call, kind);
        let mut generated = if kind == StepKind::Generation { tokens } else { 0 };
        if !turn.parts.is_empty() {
            let named = batch.sequences.iter().filter(|entry| entry.sequence >= 0);
            let with_parts = named.zip(&turn.parts).filter(|_| !drafts);
            let go_on = with_parts.map(|(entry, part)| {
                self.requests.go_on((batch.context, entry.sequence), part, batch.start_ns)
            });
            generated = go_on.sum();
        }
        let checked = turn.parts.iter().filter(|part| part.is_generated());
        let checked: u64 = checked.map(|part| part.tokens).sum();
        let made = if turn.parts.is_empty() { generated } else { checked };
        LiveStep {
            context: batch.context,
            start_ns: batch.start_ns,
            tokens,
            prompt: if encodes { tokens } else { tokens.saturating_sub(made) },
            generated: if encodes { 0 } else { generated },
            is_counted: !turn.is_warm_up && !drafts,
            gives_tokens: !encodes,
            parts: turn.parts,
        }
    }

    /// Whether a context drafts for another. That is known from the second time on.
    fn is_drafting(&mut self, context: u32, parts: &[StepPart]) -> bool {
        self.drafts.take(Stream::Context(context), parts);
        let drafts = self.drafts.drafting().contains_key(&Stream::Context(context));
        if drafts {
            self.requests.drop_of(context);
        }
        drafts
    }

    /// The last step is over as it is.
    fn nobody_reads(&mut self, now: &mut Counters) -> LiveWait {
        let unread = self.unread.take();
        unread.map_or(LiveWait::default(), |(step, end_ns)| self.account(step, end_ns, now))
    }

    /// The longest time that one of its sequences had waited.
    fn end(&mut self, call: u32, end_ns: u64, now: &mut Counters) -> LiveWait {
        if let Some(step) = self.being_read.remove(&call) {
            self.open.remove(&call);
            return self.account(step, end_ns, now);
        }
        let step = self.open.remove(&call).filter(|step| step.is_counted);
        let Some(mut step) = step else { return LiveWait::default() };
        if self.kinds.embeds(call) && !goes_on(&step.parts) {
            self.kinds.insert(call, StepKind::Encoding);
            (step.prompt, step.generated, step.gives_tokens) = (step.tokens, 0, false);
        }
        let Some(step) = self.trials.end(step, end_ns) else { return LiveWait::default() };
        let context = Stream::Context(step.context);
        if self.drafts.drafting().values().any(|target| *target == context) {
            let longest = self.nobody_reads(now);
            self.unread = Some((step, end_ns));
            return longest;
        }
        self.account(step, end_ns, now)
    }

    fn account(&mut self, step: LiveStep, end_ns: u64, now: &mut Counters) -> LiveWait {
        let longest = self.requests.account(&step, end_ns, now);
        let LiveStep { start_ns, prompt, generated, .. } = step;
        now.prompt_tokens += prompt;
        now.generated_tokens += generated;
        self.done.push(DoneStep { start_ns, end_ns, prompt, generated });
        longest
    }

    /// Lets go of what is too old, and tells what nothing can change any more.
    pub(super) fn forget(&mut self, now_ns: u64, has_ended: bool, now: &mut Counters) {
        self.requests.conclude(now_ns, &self.computed(), has_ended, now);
        let waiting = self.unread.iter().map(|(step, _)| step).chain(self.trials.steps());
        let steps = self.open.values().chain(self.being_read.values()).chain(waiting);
        let kept = steps.flat_map(|step| &step.parts).map(|part| part.request).collect();
        self.requests.forget(now_ns, &kept);
        self.done.forget(now_ns);
        self.kinds.forget();
    }

    pub(super) fn computed(&self) -> BeingComputed {
        let mut computed = BeingComputed::default();
        for step in self.open.values().chain(self.being_read.values()) {
            computed.contexts.insert(step.context);
            computed.requests.extend(step.parts.iter().map(|part| part.request));
        }
        computed
    }

    /// The longest time that a sequence has been waiting for a token that is being computed.
    pub(super) fn waiting(&self, now_ns: u64) -> LiveWait {
        let parts = self.open.values().flat_map(|step| &step.parts);
        let generated = parts.filter(|part| part.role == Role::Generation);
        let waits = generated.filter_map(|part| self.requests.waiting(part.request, now_ns));
        waits.max().unwrap_or_default()
    }

    /// The oldest batch that is being computed: when it began, and its tokens.
    pub(super) fn under_way(&self) -> Option<(u64, u64)> {
        self.open.values().map(|step| (step.start_ns, step.tokens)).min()
    }

    pub(super) fn begun(&self) -> impl Iterator<Item = u64> {
        self.open.values().map(|step| step.start_ns)
    }
}
