//! The life of each sequence: when its prompt began, how much of it was there already, when its first
//! token came, and what kept every token waiting.

use crate::gaps::{Gap, gaps, within};
use crate::sequences::Role;
use crate::steps::{Part, Step, StepKind};
use ggprof_trace::Trace;
use std::cmp::Reverse;

/// One prompt and what was generated from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// In the order of the requests' first steps in the whole recording, from 0.
    pub number: u32,
    /// Where the first of its prompt began to be computed. How long it had been waiting before, no
    /// recording of the computing tells.
    pub start_ns: u64,
    /// When the last of its tokens was there.
    pub end_ns: u64,
    pub is_warm_up: bool,
    /// Tokens of the prompt that were computed.
    pub prompt_tokens: u64,
    /// Tokens in front of them that were there already.
    pub reused_tokens: u64,
    /// Batches that its prompt came in.
    pub chunks: u64,
    /// From the start until its first result was there.
    pub first_token_ns: Option<u64>,
    /// Results with one to go on with, the first one included.
    pub generated: u64,
    /// From each of its tokens to the next.
    pub waits: Vec<Wait>,
}

impl Request {
    /// Of what was generated after the first token.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let waited_ns: u64 = self.waits.iter().map(Wait::duration_ns).sum();
        let generated = self.generated.saturating_sub(1);
        (generated > 0 && waited_ns > 0).then(|| generated as f64 * 1e9 / waited_ns as f64)
    }
}

/// The time between two tokens of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When the token before was there.
    pub start_ns: u64,
    pub end_ns: u64,
    pub cause: Cause,
    /// How long the cause took of it.
    pub cause_ns: u64,
}

impl Wait {
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// What took the largest part of a wait.
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
    /// Nothing was computed.
    Nobody,
    /// It was not recorded.
    Unrecorded,
}

/// The longest waits of any sequence, each with the number of its request.
pub fn longest_waits(requests: &[Request], most: usize) -> Vec<(u32, Wait)> {
    let of_request = |request: &Request| {
        let number = request.number;
        request.waits.iter().map(|wait| (number, *wait)).collect::<Vec<_>>()
    };
    let mut waits: Vec<(u32, Wait)> = requests.iter().flat_map(of_request).collect();
    waits.sort_by_key(|(_, wait)| Reverse(wait.duration_ns()));
    waits.truncate(most);
    waits
}

/// All requests, by the order of their first steps.
pub(crate) fn requests(trace: &Trace, steps: &[Step], count: u32) -> Vec<Request> {
    let gaps = gaps(trace);
    let mut builders: Vec<Option<Builder>> = vec![None; count as usize];
    for (at, step) in steps.iter().enumerate() {
        for part in &step.parts {
            let builder = &mut builders[part.request as usize];
            let builder = builder.get_or_insert_with(|| Builder::new(step, part.first));
            builder.is_warm_up |= step.is_warm_up;
            match part.role {
                Role::Prompt => {
                    builder.request.prompt_tokens += part.tokens;
                    builder.request.chunks += 1;
                }
                Role::Generation => {
                    let before = builder.last_step;
                    let wait = wait(steps, before, at, part.request, &gaps);
                    builder.request.waits.push(wait);
                }
            }
            builder.finish_step(step, at, part);
        }
    }
    let finished = builders.into_iter().enumerate();
    finished.filter_map(|(number, it)| it.map(|it| it.finish(number as u32))).collect()
}

#[derive(Debug, Clone)]
struct Builder {
    request: Request,
    last_step: usize,
    /// The position of its prompt's last token, or of the token it went on with last.
    position: u64,
    is_warm_up: bool,
}

impl Builder {
    fn new(step: &Step, first: u64) -> Self {
        let request = Request {
            number: 0,
            start_ns: step.start_ns,
            end_ns: step.end_ns,
            is_warm_up: false,
            prompt_tokens: 0,
            reused_tokens: first,
            chunks: 0,
            first_token_ns: None,
            generated: 0,
            waits: Vec::new(),
        };
        Self { request, last_step: 0, position: 0, is_warm_up: false }
    }

    fn finish_step(&mut self, step: &Step, at: usize, part: &Part) {
        let request = &mut self.request;
        request.end_ns = request.end_ns.max(step.end_ns);
        self.last_step = at;
        let has_result = part.outputs > 0 && step.kind != StepKind::Encoding;
        match part.role {
            Role::Prompt => {
                self.position = part.first + part.tokens.saturating_sub(1);
                request.generated = u64::from(has_result);
            }
            Role::Generation => {
                // Where a smaller model guessed right, the sequence goes on several tokens later.
                let ahead = part.first.checked_sub(self.position).filter(|&tokens| tokens > 0);
                request.generated += ahead.unwrap_or(1);
                self.position = part.first;
            }
        }
        if has_result {
            let since_start = step.end_ns - request.start_ns;
            request.first_token_ns = request.first_token_ns.or(Some(since_start));
        }
    }

    fn finish(self, number: u32) -> Request {
        Request { number, is_warm_up: self.is_warm_up, ..self.request }
    }
}

/// What happened from the end of one of a request's steps to the end of the next.
fn wait(steps: &[Step], before: usize, at: usize, request: u32, gaps: &[Gap]) -> Wait {
    let (start_ns, end_ns) = (steps[before].end_ns, steps[at].end_ns.max(steps[before].end_ns));
    let inside = |step: &Step| {
        let (start, end) = (step.start_ns.max(start_ns), step.end_ns.min(end_ns));
        end.saturating_sub(start)
    };
    let own = &steps[at];
    let mut causes: Vec<(Cause, u64)> = Vec::new();
    let mut add = |cause: Cause, ns: u64| match causes.iter_mut().find(|(it, _)| *it == cause) {
        Some((_, sum)) => *sum += ns,
        None => causes.push((cause, ns)),
    };
    let prompt_of_other = |step: &Step| {
        let others = step.parts.iter().filter(|part| part.request != request);
        others.filter(|part| part.role == Role::Prompt).max_by_key(|part| part.tokens).copied()
    };
    match prompt_of_other(own) {
        Some(part) => add(Cause::SharedWithPrompt { request: part.request }, inside(own)),
        None => add(Cause::OwnStep, inside(own)),
    }
    // Steps of other contexts may lie before; those that began earlier have ended, too.
    for step in steps[..at].iter().rev().take_while(|step| step.start_ns >= start_ns) {
        match prompt_of_other(step) {
            Some(part) => add(Cause::OtherPrompt { request: part.request }, inside(step)),
            None => add(Cause::OtherGeneration, inside(step)),
        }
    }
    let unrecorded = within(gaps, start_ns, end_ns);
    add(Cause::Unrecorded, unrecorded);
    let computed: u64 = causes.iter().map(|(_, ns)| ns).sum();
    causes.push((Cause::Nobody, (end_ns - start_ns).saturating_sub(computed)));
    let (cause, cause_ns) =
        causes.into_iter().max_by_key(|(_, ns)| *ns).unwrap_or((Cause::Nobody, 0));
    Wait { start_ns, end_ns, cause, cause_ns }
}
