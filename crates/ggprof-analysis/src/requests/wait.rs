//! What happened between two tokens of a sequence. Contexts compute at the same time, so each moment
//! counts for one thing: for the sequence's own token if that is computed, then for what kept it waiting.

use crate::gaps::within;
use crate::step::{Role, Step, StepKind, StepPart};
use ggprof_trace::Gap;

/// The time between two tokens of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When the token before was there.
    pub start_ns: u64,
    pub end_ns: u64,
    pub cause: Cause,
    /// How long the cause took of it.
    pub cause_ns: u64,
    pub shares: WaitShares,
    /// The token is in the part of the recording that was asked about.
    pub is_inside: bool,
}

impl Wait {
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// What took a part of a wait; the largest one is the wait's cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Its own token was computed, with those of others or alone.
    OwnStep,
    /// Prompts of other requests were in the batch of its own token.
    SharedWithPrompt { request: u32 },
    /// The prompt of another request was computed first.
    OtherPrompt { request: u32 },
    /// Others generated.
    OtherGeneration,
    /// The program computed something of which no tokens are known, such as an image.
    OtherGraph,
    /// Nothing was computed.
    Nobody,
    /// It was not recorded.
    Unrecorded,
}

/// Nanoseconds of a wait by what happened in them. They add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitShares {
    pub own_step: u64,
    pub shared_with_prompt: u64,
    pub other_prompt: u64,
    pub other_generation: u64,
    pub other_graph: u64,
    pub nobody: u64,
    pub unrecorded: u64,
}

impl WaitShares {
    fn of(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::OwnStep => &mut self.own_step,
            Cause::SharedWithPrompt { .. } => &mut self.shared_with_prompt,
            Cause::OtherPrompt { .. } => &mut self.other_prompt,
            Cause::OtherGeneration => &mut self.other_generation,
            Cause::OtherGraph => &mut self.other_graph,
            Cause::Nobody => &mut self.nobody,
            Cause::Unrecorded => &mut self.unrecorded,
        }
    }
}

/// A step under which so many others begin and end is a damaged one; looking for longer ones takes long.
const MOST_MEANWHILE: usize = 4096;

/// All steps, and which of those that began before a moment may still have been under way.
pub(super) struct Timeline<'a> {
    steps: &'a [Step],
    /// Of each step: when the last of it and all before it was ready.
    latest_ns: Vec<u64>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(steps: &'a [Step]) -> Self {
        let latest_ns = steps.iter().scan(0, |latest, step| {
            *latest = step.end_ns.max(*latest);
            Some(*latest)
        });
        Self { steps, latest_ns: latest_ns.collect() }
    }

    /// From the end of one of a request's steps to the end of its next one.
    pub(super) fn wait(&self, before: usize, at: usize, request: u32, gaps: &[Gap]) -> Wait {
        let own = &self.steps[at];
        let start_ns = self.steps[before].ready_ns;
        let end_ns = own.ready_ns.max(start_ns);
        let meanwhile = before.saturating_sub(MOST_MEANWHILE)..at;
        let earlier = meanwhile.rev().take_while(|&it| self.latest_ns[it] > start_ns);
        let others = earlier.map(|it| &self.steps[it]).filter(|step| step.process == own.process);
        let causes = others.map(|step| (cause_of(step, request), step.start_ns, step.end_ns));
        let own = (cause_of_own(own, request), own.start_ns, own.ready_ns);
        let is_there = |(_, from, to): &(Cause, u64, u64)| *from < end_ns && *to > start_ns;
        let mut causes: Vec<_> = causes.chain([own]).filter(is_there).collect();
        causes.sort_by_key(|(cause, from, _)| (rank(*cause), *from));
        let mut free = vec![(start_ns, end_ns)];
        let mut found: Vec<(Cause, u64)> = Vec::new();
        for (cause, from, to) in causes {
            let ns = take(&mut free, from, to);
            match found.iter_mut().find(|(other, _)| *other == cause) {
                Some((_, sum)) => *sum += ns,
                None => found.push((cause, ns)),
            }
        }
        let unrecorded: u64 = free.iter().map(|&(from, to)| within(gaps, from, to)).sum();
        let left: u64 = free.iter().map(|(from, to)| to - from).sum();
        found.push((Cause::Unrecorded, unrecorded));
        found.push((Cause::Nobody, left - unrecorded));
        let mut shares = WaitShares::default();
        found.iter().for_each(|&(cause, ns)| *shares.of(cause) += ns);
        let largest = found.into_iter().max_by_key(|(_, ns)| *ns);
        let (cause, cause_ns) = largest.unwrap_or((Cause::Nobody, 0));
        let is_inside = self.steps[at].is_inside();
        Wait { start_ns, end_ns, cause, cause_ns, shares, is_inside }
    }
}

/// Takes a span out of those that are free; how much of it was.
fn take(free: &mut Vec<(u64, u64)>, from: u64, to: u64) -> u64 {
    let mut left = Vec::with_capacity(free.len() + 1);
    let mut taken = 0;
    for &(start, end) in free.iter() {
        let (first, last) = (from.clamp(start, end), to.clamp(start, end));
        taken += last.saturating_sub(first);
        let rest = [(start, first), (last.max(first), end)];
        left.extend(rest.into_iter().filter(|(start, end)| start < end));
    }
    *free = left;
    taken
}

/// Of what happens at the same time, the first one counts.
fn rank(cause: Cause) -> u8 {
    match cause {
        Cause::OwnStep | Cause::SharedWithPrompt { .. } => 0,
        Cause::OtherPrompt { .. } => 1,
        Cause::OtherGeneration => 2,
        _ => 3,
    }
}

fn cause_of_own(step: &Step, request: u32) -> Cause {
    match prompt_of_other(step, request) {
        Some(part) => Cause::SharedWithPrompt { request: part.request },
        None => Cause::OwnStep,
    }
}

fn cause_of(step: &Step, request: u32) -> Cause {
    // Its drafts are on the way to its own token.
    if step.is_draft && step.parts.iter().any(|part| part.request == request) {
        return Cause::OwnStep;
    }
    match prompt_of_other(step, request) {
        Some(part) => Cause::OtherPrompt { request: part.request },
        None if step.parts.is_empty() && step.kind != StepKind::Generation => Cause::OtherGraph,
        None => Cause::OtherGeneration,
    }
}

fn prompt_of_other(step: &Step, request: u32) -> Option<&StepPart> {
    let others = step.parts.iter().filter(|part| part.request != request);
    others.filter(|part| part.role == Role::Prompt).max_by_key(|part| part.tokens)
}
