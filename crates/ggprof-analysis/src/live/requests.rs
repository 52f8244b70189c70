//! Requests while they are computed: their first tokens, what lies between the others, and how many of
//! them are under way. [`requests`](crate::requests) has the same of whole recordings, where it is known
//! what comes after.

use super::first_token::First;
use super::steps::{BeingComputed, LiveStep};
use super::{Counters, LiveWait, WINDOW_NS};
use crate::percentiles::median_and_p95;
use crate::step::{Role, StepPart};
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;

/// When nothing was computed for so long, nothing is under way any more.
const OVER_AFTER_NS: u64 = 2_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Requests {
    known: HashMap<u32, LiveRequest>,
    /// Of each sequence of a context.
    of_sequence: HashMap<(u32, i32), u32>,
    contexts: HashMap<u32, ContextSteps>,
    /// The last minute's: when, and how long.
    first_tokens: VecDeque<(u64, u64)>,
    pub(super) between_tokens: VecDeque<(u64, u64)>,
}

#[derive(Debug, Default)]
struct ContextSteps {
    steps: u64,
    /// One of its sequences has generated twice since this step.
    generated_twice_since: u64,
    last_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct LiveRequest {
    context: u32,
    start_ns: u64,
    last_ns: u64,
    first: First,
    /// Several results of its prompt were asked for: maybe they are what is wanted, and no token.
    wants_results: bool,
    /// Its sequence is another request's.
    is_over: bool,
    next: u64,
    /// The position of its prompt's last token, or of the token it went on with last.
    position: u64,
    /// The last step of its context that it was part of, and the last that it generated in.
    step: u64,
    generated_in: Option<u64>,
}

impl Requests {
    /// A sequence is computed, of the same request as before or of another. How many tokens it is
    /// further: where a smaller model guessed right, several.
    pub(super) fn go_on(&mut self, sequence: (u32, i32), part: &StepPart, start_ns: u64) -> u64 {
        let before = self.of_sequence.insert(sequence, part.request);
        if let Some(before) = before.filter(|before| *before != part.request)
            && let Some(request) = self.known.get_mut(&before)
        {
            request.is_over = true;
        }
        let context = self.contexts.entry(sequence.0).or_default();
        let request = self.known.entry(part.request).or_insert(LiveRequest {
            context: sequence.0,
            start_ns,
            last_ns: start_ns,
            first: First::Nothing { is_whole: !part.began_before },
            wants_results: false,
            is_over: false,
            next: 0,
            position: part.first.saturating_sub(1),
            step: 0,
            generated_in: None,
        });
        request.next = part.first + part.tokens;
        request.step = context.steps;
        let ahead = part.first.saturating_sub(request.position).max(1);
        let last = part.first + part.tokens.saturating_sub(1);
        request.position = if part.role == Role::Generation { part.first } else { last };
        match part.role {
            Role::Generation => {
                let before = request.generated_in.replace(context.steps);
                let twice = before.unwrap_or(0).max(context.generated_twice_since);
                context.generated_twice_since = twice;
                ahead
            }
            Role::Prompt => u64::from(part.is_generated()),
        }
    }

    /// The next step of a context begins.
    pub(super) fn begin_step(&mut self, context: u32) {
        self.contexts.entry(context).or_default().steps += 1;
    }

    /// A step is over; the longest that one of its sequences had waited.
    pub(super) fn account(
        &mut self,
        step: &LiveStep,
        end_ns: u64,
        counters: &mut Counters,
    ) -> LiveWait {
        let mut longest = LiveWait::default();
        for part in &step.parts {
            let Some(request) = self.known.get_mut(&part.request) else { continue };
            let (mut first, mut wait) = (None, None);
            if part.role == Role::Generation {
                first = request.first.tell();
            }
            if part.outputs > 0 && step.gives_tokens {
                match part.role {
                    Role::Generation if request.first.is_there() => {
                        wait = Some(request.wait_until(end_ns));
                    }
                    _ => request.first.comes(end_ns, request.start_ns),
                }
                request.wants_results |= part.role == Role::Prompt && part.outputs > 1;
            }
            if part.role == Role::Generation {
                first = first.or(request.first.tell());
            }
            request.last_ns = end_ns;
            longest = longest.max(wait.unwrap_or_default());
            if let Some(LiveWait { ns, .. }) = wait {
                self.between_tokens.push_back((end_ns, ns));
                counters.between_tokens.add(ns);
            }
            add_first(&mut self.first_tokens, counters, first);
        }
        let context = self.contexts.entry(step.context).or_default();
        context.last_ns = context.last_ns.max(end_ns);
        longest
    }

    /// First tokens that are what they seem: no more of the prompt comes.
    pub(super) fn conclude(
        &mut self,
        now_ns: u64,
        computed: &BeingComputed,
        has_ended: bool,
        counters: &mut Counters,
    ) {
        for (number, request) in &mut self.known {
            let is_silent = request.last_ns + OVER_AFTER_NS <= now_ns;
            let is_last = request.is_over || is_silent && !computed.requests.contains(number);
            if (is_last || has_ended) && !request.wants_results {
                add_first(&mut self.first_tokens, counters, request.first.tell());
            }
        }
    }

    /// What a context computes is no request of its own.
    pub(super) fn drop_of(&mut self, context: u32) {
        self.of_sequence.retain(|(of, _), _| *of != context);
        self.known.retain(|_, request| request.context != context);
        self.contexts.remove(&context);
    }

    /// A context is freed.
    pub(super) fn end_of(&mut self, context: u32) {
        self.of_sequence.retain(|(of, _), _| *of != context);
        let of_it = self.known.values_mut().filter(|request| request.context == context);
        of_it.for_each(|request| request.is_over = true);
        self.contexts.remove(&context);
    }

    /// Nothing is recorded: how long any of them waits from now on is not known.
    pub(super) fn interrupt(&mut self, now_ns: u64, counters: &mut Counters) {
        self.conclude(now_ns, &BeingComputed::default(), true, counters);
        for request in self.known.values_mut() {
            request.first = First::Nothing { is_whole: false };
        }
    }

    /// Forgets what is older than a minute, but for requests of which something may still come.
    pub(super) fn forget(&mut self, now_ns: u64, kept: &HashSet<u32>) {
        let from_ns = now_ns.saturating_sub(WINDOW_NS);
        for values in [&mut self.first_tokens, &mut self.between_tokens] {
            values.retain(|(at_ns, _)| *at_ns >= from_ns);
        }
        self.known.retain(|number, it| it.last_ns >= from_ns || kept.contains(number));
        let known = &self.known;
        self.of_sequence.retain(|_, request| known.contains_key(request));
    }

    /// How many are under way, and how long the longest of them is.
    pub(super) fn under_way(&self, now_ns: u64, computed: &BeingComputed) -> (u64, Option<u64>) {
        let goes_on = |(number, request): &(&u32, &LiveRequest)| {
            computed.requests.contains(*number) || self.goes_on(request, now_ns, computed)
        };
        let under_way = || self.known.iter().filter(goes_on);
        (under_way().count() as u64, under_way().map(|(_, request)| request.next).max())
    }

    /// Nothing says that a request is complete. But sequences of a context take turns, so one that others
    /// have passed has ended.
    fn goes_on(&self, request: &LiveRequest, now_ns: u64, computed: &BeingComputed) -> bool {
        let Some(context) = self.contexts.get(&request.context) else { return false };
        let is_passed = context.generated_twice_since > request.step;
        // One that generates waits while the prompt of another is computed.
        let generates = request.generated_in.is_some();
        let waits = generates && computed.contexts.contains(&request.context);
        let last_ns = if generates { context.last_ns } else { request.last_ns };
        !request.is_over && !is_passed && (waits || last_ns + OVER_AFTER_NS > now_ns)
    }

    /// How long a request has been waiting for its next token.
    pub(super) fn waiting(&self, request: u32, now_ns: u64) -> Option<LiveWait> {
        let request = self.known.get(&request).filter(|request| request.first.is_there())?;
        Some(request.wait_until(now_ns))
    }

    /// Median and 95th percentile of the last minute's first tokens, and of the others.
    pub(super) fn percentiles(&self) -> [Option<(u64, u64)>; 2] {
        [&self.first_tokens, &self.between_tokens].map(|values| {
            let mut values: Vec<u64> = values.iter().map(|(_, ns)| *ns).collect();
            (!values.is_empty()).then(|| median_and_p95(&mut values))
        })
    }
}

impl LiveRequest {
    fn wait_until(&self, end_ns: u64) -> LiveWait {
        LiveWait { ns: end_ns.saturating_sub(self.last_ns), start_ns: self.last_ns }
    }
}

fn add_first(
    first_tokens: &mut VecDeque<(u64, u64)>,
    counters: &mut Counters,
    first: Option<(u64, u64)>,
) {
    if let Some((at_ns, waited_ns)) = first {
        first_tokens.push_back((at_ns, waited_ns));
        counters.first_token.add(waited_ns);
    }
}
