//! Joins steps into phases, one after the other.

use super::{Phase, PhaseKind};
use crate::gaps::{Gaps, within};
use crate::step::{Role, Step, StepKind, StepPart, Stream};
use ggprof_trace::{Gap, ProcessIndex};
use hashbrown::HashMap;

/// A program that computes nothing for so long, and for so many times as long as it computed, is waiting
/// for something. Where only shapes are known, nothing else tells one prompt from the next.
const IDLE_NS: u64 = 100_000_000;
const IDLE_TIMES: u64 = 10;
const IDLE_TIMES_OF_GUESSED_PROMPT: u64 = 1;

#[derive(Default)]
pub(super) struct Walk {
    slots: Vec<PhaseSlot>,
    /// Which of them each graph run belongs to.
    slot_of_run: Vec<u32>,
    /// The last of each stream, and what is needed to go on with it.
    open: HashMap<Stream, Open>,
    /// When the last step of any stream of a process ended, and of which.
    latest: HashMap<Option<ProcessIndex>, (u64, Stream)>,
    /// By request: since when tokens are drafted that its next step will check.
    drafting: HashMap<u32, u64>,
    pub(super) guessed: Guessed,
}

/// Latencies where no requests are known.
#[derive(Default)]
pub(super) struct Guessed {
    pub(super) first_token_ns: Vec<u64>,
    pub(super) between_tokens_ns: Vec<u64>,
}

/// A phase of all that was recorded.
struct PhaseSlot {
    kind: PhaseKind,
    sequences: u64,
    /// What of it is in the part that was asked about.
    inside: Option<Phase>,
    /// Something of it is not.
    is_cut: bool,
}

#[derive(Clone)]
struct Open {
    slot: usize,
    /// The requests that take part.
    requests: Vec<u32>,
    last_start_ns: u64,
    last_end_ns: u64,
}

impl Walk {
    pub(super) fn new(runs: usize) -> Self {
        Self { slot_of_run: vec![0; runs], ..Self::default() }
    }

    pub(super) fn take(&mut self, step: &Step, gaps: &[Gap]) {
        let kind = match step.kind {
            _ if step.is_warm_up => PhaseKind::WarmUp,
            _ if step.is_draft => PhaseKind::Draft,
            StepKind::Prompt => PhaseKind::Prompt,
            StepKind::Generation => PhaseKind::Generation,
            StepKind::Mixed => PhaseKind::Mixed,
            StepKind::Encoding => PhaseKind::Encoding,
            StepKind::Graph => PhaseKind::Graph,
        };
        let sequences = if kind == PhaseKind::Generation { step.generating() } else { 1 };
        let open = self.open.get(&step.stream).cloned();
        self.note_guessed_latencies(step, kind, open.as_ref(), gaps);
        let goes_on = open.as_ref().filter(|open| {
            let slot = &self.slots[open.slot];
            slot.kind == kind && slot.sequences == sequences && self.continues(open, step, gaps)
        });
        let place = match goes_on.map(|open| open.slot) {
            Some(place) => place,
            None => {
                self.slots.push(PhaseSlot { kind, sequences, inside: None, is_cut: false });
                self.slots.len() - 1
            }
        };
        let start_ns = self.drafted_since(step).unwrap_or(step.start_ns);
        self.slots[place].take(step, start_ns, gaps);
        step.runs.iter().for_each(|&run| self.slot_of_run[run as usize] = place as u32);
        let open = Open {
            slot: place,
            requests: step.parts.iter().map(|part| part.request).collect(),
            last_start_ns: step.start_ns,
            last_end_ns: step.ready_ns,
        };
        self.open.insert(step.stream, open);
        let latest = self.latest.entry(step.process).or_insert((0, step.stream));
        if step.end_ns >= latest.0 {
            *latest = (step.end_ns, step.stream);
        }
    }

    /// When the drafts were begun that a step checks: they are on the way to its tokens.
    fn drafted_since(&mut self, step: &Step) -> Option<u64> {
        if step.is_draft {
            let is_drafting = step.kind == StepKind::Generation && step.is_inside();
            for part in step.parts.iter().filter(|_| is_drafting) {
                self.drafting.entry(part.request).or_insert(step.start_ns);
            }
            return None;
        }
        let since = step.parts.iter().filter_map(|part| self.drafting.remove(&part.request));
        since.min().filter(|_| step.kind == StepKind::Generation)
    }

    /// Whether a step goes on with what its stream did last.
    fn continues(&self, open: &Open, step: &Step, gaps: &[Gap]) -> bool {
        let is_same = |request: &u32| step.parts.iter().any(|part| part.request == *request);
        let is_known = !step.parts.is_empty() && !open.requests.is_empty();
        // What others compute meanwhile is no idle time of the program.
        let latest = self.latest.get(&step.process).copied();
        let latest_ns = latest.map_or(0, |(end_ns, _)| end_ns);
        let since_ns = if is_known { open.last_end_ns.max(latest_ns) } else { open.last_end_ns };
        let idle_ns = step.start_ns.saturating_sub(since_ns);
        let work_ns = (open.last_end_ns - open.last_start_ns).max(step.end_ns - step.start_ns);
        let is_prompt = self.slots[open.slot].kind == PhaseKind::Prompt;
        let times = if is_prompt && !is_known { IDLE_TIMES_OF_GUESSED_PROMPT } else { IDLE_TIMES };
        let is_idle = idle_ns >= IDLE_NS && idle_ns >= times.saturating_mul(work_ns);
        // Sequences may take turns with their tokens, each in batches of its own.
        let goes_on = |part: &StepPart| part.role == Role::Generation && !part.began_before;
        let takes_turns =
            self.slots[open.slot].kind == PhaseKind::Generation && step.parts.iter().all(goes_on);
        let is_same_work = !is_known || takes_turns || open.requests.iter().any(is_same);
        let is_interrupted = latest.is_some_and(|(end_ns, stream)| {
            // Another stream had its turn. Those that compute at the same time do not end each
            // other's phases.
            stream != step.stream
                && end_ns > open.last_end_ns
                && end_ns <= step.start_ns
                && !is_known
        });
        is_same_work
            && !is_idle
            && !is_interrupted
            && !step.is_after_clear
            && within(gaps, open.last_end_ns, step.start_ns) == 0
    }

    /// Without sequences, a prompt and what comes after it are taken for one request.
    fn note_guessed_latencies(
        &mut self,
        step: &Step,
        kind: PhaseKind,
        open: Option<&Open>,
        gaps: &[Gap],
    ) {
        let Some(open) = open.filter(|_| step.is_guess && kind == PhaseKind::Generation) else {
            return;
        };
        let Some(before) = &self.slots[open.slot].inside else { return };
        if within(gaps, before.end_ns, step.start_ns) > 0 {
            return;
        }
        if before.kind == PhaseKind::Prompt {
            self.guessed.first_token_ns.push(before.wall_ns());
        }
        if matches!(before.kind, PhaseKind::Prompt | PhaseKind::Generation) {
            self.guessed.between_tokens_ns.push(step.end_ns.saturating_sub(before.end_ns));
        }
    }

    /// The phases by start, and which of them each graph run belongs to.
    pub(super) fn finish(&mut self, gaps: &Gaps, of_recording: &Gaps) -> (Vec<Phase>, Vec<u32>) {
        let mut phases: Vec<(usize, Phase)> = Vec::new();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let Some(mut phase) = slot.inside.take() else { continue };
            let gaps = if slot.is_cut { gaps } else { of_recording };
            let gaps = gaps.of_process(phase.process);
            phase.unrecorded_ns = within(gaps, phase.start_ns, phase.end_ns);
            phases.push((place, phase));
        }
        phases.sort_by_key(|(_, phase)| phase.start_ns);
        let mut place_of_slot = vec![0; self.slots.len()];
        for (place, (slot, _)) in (0_u32..).zip(&phases) {
            place_of_slot[*slot] = place;
        }
        let of_runs = self.slot_of_run.iter();
        let phase_of_run =
            of_runs.map(|&slot| place_of_slot.get(slot as usize).copied().unwrap_or(0)).collect();
        (phases.into_iter().map(|(_, phase)| phase).collect(), phase_of_run)
    }
}

impl PhaseSlot {
    fn take(&mut self, step: &Step, start_ns: u64, gaps: &[Gap]) {
        if !step.is_inside() {
            self.is_cut = true;
            return;
        }
        let (kind, sequences) = (self.kind, self.sequences);
        let phase =
            self.inside.get_or_insert_with(|| Phase { start_ns, ..begin(step, kind, sequences) });
        phase.steps += 1;
        phase.runs += step.runs.len() as u64;
        phase.tokens += step.kept_tokens();
        phase.end_ns = phase.end_ns.max(step.ready_ns);
        phase.unrecorded_ns = within(gaps, phase.start_ns, phase.end_ns);
    }
}

fn begin(step: &Step, kind: PhaseKind, sequences: u64) -> Phase {
    let depth = match step.parts[..] {
        [part] => Some(part.first),
        _ => None,
    };
    Phase {
        kind,
        is_guess: step.is_guess,
        stream: step.stream,
        process: step.process,
        steps: 0,
        runs: 0,
        tokens: 0,
        sequences,
        depth,
        start_ns: step.start_ns,
        end_ns: step.ready_ns,
        unrecorded_ns: 0,
    }
}
