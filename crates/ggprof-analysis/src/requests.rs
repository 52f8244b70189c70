//! The life of each sequence: when its prompt began, how much of it was there already, when its first
//! token came, and what kept every token waiting.

mod wait;

use crate::gaps::Gaps;
use crate::step::{Role, Step, StepKind, StepPart, Stream};
use ggprof_trace::{ProcessIndex, Trace};
use std::cmp::Reverse;
use wait::Timeline;
pub use wait::{Cause, Wait, WaitShares};

/// One prompt and what was generated from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// In the order of the requests' first steps in the whole recording, from 0.
    pub number: u32,
    pub slot: Slot,
    /// Where the first of its prompt began to be computed. How long it had been waiting before, no
    /// recording of the computing tells.
    pub start_ns: u64,
    /// When the last of its tokens was there.
    pub end_ns: u64,
    pub is_warm_up: bool,
    /// Some of it was computed before what was recorded: its start, its prompt and its first token are not
    /// known.
    pub began_before: bool,
    /// All of it is in the part of the recording that was asked about. Otherwise its figures are still
    /// those of all of it.
    pub is_inside: bool,
    /// The same of its first token.
    pub is_first_token_inside: bool,
    /// Tokens of the prompt that were computed.
    pub prompt_tokens: u64,
    /// Tokens in front of them that were there already.
    pub reused_tokens: u64,
    /// Batches that its prompt came in.
    pub chunks: u64,
    /// From the start until the first token was there that followed its prompt.
    pub first_token_ns: Option<u64>,
    /// Results with one to go on with, the first one included.
    pub generated: u64,
    /// From each of its tokens to the next.
    pub waits: Vec<Wait>,
}

/// Where a request's tokens are kept: only what was there before can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    pub process: Option<ProcessIndex>,
    pub stream: Stream,
    pub sequence: i32,
}

impl Request {
    /// Of what was generated after the first token.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let waited_ns: u64 = self.waits.iter().map(Wait::duration_ns).sum();
        let generated = self.generated.saturating_sub(1);
        (generated > 0 && waited_ns > 0).then(|| generated as f64 * 1e9 / waited_ns as f64)
    }
}

/// Of fewer waits nobody can tell what is usual.
const LEAST_WAITS: usize = 4;

/// The longest waits of any sequence, each with the number of its request. One that no other request's
/// prompt is to blame for, and that is not more than twice the median of all, is nothing out of the
/// ordinary.
pub fn longest_waits(requests: &[Request], most: usize) -> Vec<(u32, Wait)> {
    let of_request = |request: &Request| {
        let number = request.number;
        let inside = request.waits.iter().filter(|wait| wait.is_inside);
        inside.map(|wait| (number, *wait)).collect::<Vec<_>>()
    };
    let mut waits: Vec<(u32, Wait)> = requests.iter().flat_map(of_request).collect();
    waits.sort_by_key(|(_, wait)| Reverse(wait.duration_ns()));
    let median_ns = waits.get(waits.len() / 2).map_or(0, |(_, wait)| wait.duration_ns());
    let are_few = waits.len() < LEAST_WAITS;
    waits.retain(|(_, wait)| {
        let is_for_prompt =
            matches!(wait.cause, Cause::OtherPrompt { .. } | Cause::SharedWithPrompt { .. });
        are_few || is_for_prompt || wait.duration_ns() > median_ns.saturating_mul(2)
    });
    waits.truncate(most);
    waits
}

/// All requests that have something in the part that was asked about, by the order of their first steps.
pub(crate) fn requests(trace: &Trace, steps: &[Step], count: u32) -> Vec<Request> {
    let (gaps, timeline) = (Gaps::of_recording(trace), Timeline::new(steps));
    let mut builders: Vec<Option<Builder>> = vec![None; count as usize];
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| !step.is_draft) {
        for part in &step.parts {
            let builder = &mut builders[part.request as usize];
            let builder = builder.get_or_insert_with(|| Builder::new(step, part));
            builder.request.is_warm_up |= step.is_warm_up;
            if let (Role::Generation, Some(before)) = (part.role, builder.last_step) {
                let gaps = gaps.of_process(step.process);
                builder.request.waits.push(timeline.wait(before, at, part.request, gaps));
            }
            builder.finish_step(step, at, part);
        }
    }
    builders.iter_mut().flatten().for_each(Builder::finish);
    let of_it = builders.into_iter().enumerate();
    let found =
        of_it.filter_map(|(number, it)| it.filter(|it| it.has_any_inside).zip(Some(number)));
    found.map(|(it, number)| Request { number: number as u32, ..it.request }).collect()
}

#[derive(Debug, Clone)]
struct Builder {
    request: Request,
    last_step: Option<usize>,
    has_any_inside: bool,
    /// Several results of its prompt were asked for.
    wants_results: bool,
}

impl Builder {
    fn new(step: &Step, part: &StepPart) -> Self {
        let request = Request {
            number: 0,
            slot: Slot { process: step.process, stream: step.stream, sequence: part.sequence },
            start_ns: step.start_ns,
            end_ns: step.ready_ns,
            is_warm_up: false,
            began_before: part.began_before,
            is_inside: true,
            is_first_token_inside: false,
            prompt_tokens: 0,
            reused_tokens: part.first,
            chunks: 0,
            first_token_ns: None,
            generated: 0,
            waits: Vec::new(),
        };
        Self { request, last_step: None, has_any_inside: false, wants_results: false }
    }

    fn finish_step(&mut self, step: &Step, at: usize, part: &StepPart) {
        let request = &mut self.request;
        request.end_ns = request.end_ns.max(step.ready_ns);
        request.is_inside &= step.is_inside();
        self.has_any_inside |= step.is_inside();
        self.last_step = Some(at);
        let has_result = part.outputs > 0 && step.kind != StepKind::Encoding;
        match part.role {
            Role::Prompt => {
                self.wants_results |= part.outputs > 1;
                request.prompt_tokens += part.kept;
                request.chunks += 1;
                request.generated = u64::from(has_result);
            }
            // Where drafts were right, there are several.
            Role::Generation => request.generated += part.kept,
        }
        // Each part of a prompt may have a result; the last one is followed by a token.
        let is_first = part.role == Role::Prompt || request.first_token_ns.is_none();
        if has_result && is_first && !request.began_before {
            request.first_token_ns = Some(step.ready_ns - request.start_ns);
            request.is_first_token_inside = step.is_inside();
        }
    }
}

impl Builder {
    /// Where several results were asked for and nothing followed, the results themselves were wanted, for
    /// embeddings of each token or for a perplexity: none of them is a token.
    fn finish(&mut self) {
        if self.wants_results && self.request.waits.is_empty() {
            self.request.generated = 0;
            self.request.first_token_ns = None;
        }
    }
}
