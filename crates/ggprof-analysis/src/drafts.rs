//! Contexts in which a smaller model drafts what another one checks. Their steps are no requests: they
//! are for the request that is checked.
//!
//! Positions prove it: a batch that checks drafts from a position on comes right after steps of another
//! context that ended among these positions, time and again. Where that was seen only once, or the drafts
//! come from the text itself, no context is taken for a drafting one.
//!
//! Newer programs have the smaller model read each batch of the other one before they look at the
//! results: only then are these tokens there.

use crate::step::{Role, Step, StepKind, StepPart, Stream};
use hashbrown::HashMap;

/// Once may be by chance.
const LEAST_CHECKS: u64 = 2;

/// Finds the steps that draft.
pub(crate) fn mark(steps: &mut [Step]) {
    let mut evidence = Evidence::default();
    for step in steps.iter() {
        evidence.take(step.stream, &step.parts);
    }
    let drafting = evidence.drafting();
    if !drafting.is_empty() {
        mark_followers(steps, &drafting);
        attribute(steps, &drafting);
    }
}

/// Steps in which a smaller model reads what the other one has just computed.
fn mark_followers(steps: &mut [Step], drafting: &HashMap<Stream, Stream>) {
    let mut last: HashMap<Stream, usize> = HashMap::new();
    for at in 0..steps.len() {
        let stream = steps[at].stream;
        let Some(target) = drafting.get(&stream) else {
            last.insert(stream, at);
            continue;
        };
        let Some(followed) = last.remove(target) else { continue };
        let is_work = !steps[followed].is_warm_up;
        if is_work && follows(&steps[at].parts, &steps[followed].parts) {
            steps[followed].ready_ns = steps[followed].ready_ns.max(steps[at].end_ns);
            steps[at].parts = steps[followed].parts.clone();
            (steps[at].kind, steps[at].is_draft) = (StepKind::Prompt, true);
        }
    }
}

/// Whether a batch is the one before once more. Programs that read it later, when they draft, want no
/// results of it; of several sequences, the last one may have the only result.
pub(crate) fn follows(parts: &[StepPart], before: &[StepPart]) -> bool {
    let is_same = |(part, before): (&StepPart, &StepPart)| {
        (part.first, part.tokens) == (before.first, before.tokens)
    };
    let has_result = parts.iter().any(|part| part.outputs > 0);
    has_result && parts.len() == before.len() && parts.iter().zip(before).all(is_same)
}

/// Which contexts did what others checked.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    steps: u64,
    /// Of each context: its last step, and the positions at which its sequences were then.
    last: HashMap<Stream, (u64, Vec<u64>)>,
    checks: HashMap<Stream, u64>,
    /// How often one context ended where another one checked.
    drafted: HashMap<(Stream, Stream), u64>,
}

impl Evidence {
    pub(crate) fn take(&mut self, stream: Stream, parts: &[StepPart]) {
        self.steps += 1;
        let before = self.last.get(&stream).map_or(0, |(step, _)| *step);
        let is_check = |part: &&StepPart| part.role == Role::Generation && part.tokens > 1;
        for check in parts.iter().filter(is_check) {
            *self.checks.entry(stream).or_default() += 1;
            let checked = check.first..check.first + check.tokens;
            for (other, (step, positions)) in &self.last {
                let is_there = positions.iter().any(|position| checked.contains(position));
                if *other != stream && *step > before && is_there {
                    *self.drafted.entry((*other, stream)).or_default() += 1;
                }
            }
        }
        let ends = parts.iter().map(|part| (part.first + part.tokens).saturating_sub(1));
        self.last.insert(stream, (self.steps, ends.collect()));
    }

    /// A context is freed.
    pub(crate) fn forget(&mut self, stream: Stream) {
        self.last.remove(&stream);
        self.checks.remove(&stream);
        self.drafted.retain(|&(of, checks), _| of != stream && checks != stream);
    }

    /// Each context that drafts, and for which other one.
    pub(crate) fn drafting(&self) -> HashMap<Stream, Stream> {
        let is_sure = |(of, drafted): &(&(Stream, Stream), &u64)| {
            let checks = self.checks.get(&of.1).copied().unwrap_or(0);
            **drafted >= LEAST_CHECKS && **drafted * 2 >= checks
        };
        self.drafted.iter().filter(is_sure).map(|(of, _)| *of).collect()
    }
}

/// Gives each step that drafts to the request that is checked next.
fn attribute(steps: &mut [Step], drafting: &HashMap<Stream, Stream>) {
    let mut next: HashMap<Stream, Vec<StepPart>> = HashMap::new();
    for step in steps.iter_mut().rev() {
        let Some(target) = drafting.get(&step.stream) else {
            next.insert(step.stream, step.parts.clone());
            continue;
        };
        let Some(checked) = next.get(target).filter(|_| !step.is_draft) else { continue };
        step.is_draft = true;
        for part in &mut step.parts {
            let distance = |other: &&StepPart| other.first.abs_diff(part.first + part.tokens);
            let Some(nearest) = checked.iter().min_by_key(distance) else { continue };
            part.request = nearest.request;
        }
    }
    // What was drafted last may not have been checked.
    let mut last: HashMap<Stream, u32> = HashMap::new();
    for step in steps.iter_mut() {
        let target = drafting.get(&step.stream).filter(|_| !step.is_draft);
        if let Some(&request) = target.and_then(|target| last.get(target)) {
            step.is_draft = true;
            step.parts.iter_mut().for_each(|part| part.request = request);
        }
        last.extend(step.parts.first().map(|part| (step.stream, part.request)));
    }
}
