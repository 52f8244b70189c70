//! Phases: steps of the same kind, one after the other, and how fast each went.
//!
//! Where the program's batches are known, a phase is a prompt of one request (or of several that were
//! computed together), or the generation of the same number of sequences. It ends where another
//! request's prompt comes in between, where the memory was cleared, and at gaps in the recording.
//! Where they are not known, kinds are guessed from shapes, and a phase ends as well where the
//! program did nothing for long.

use crate::gaps::{Gap, gaps, within};
use crate::requests::{Request, requests};
use crate::steps::{Step, StepKind, Stream, steps};
use crate::totals::percentile;
use ggprof_trace::{GraphRunId, Trace};
use hashbrown::HashMap;

/// Where nothing but shapes is known, a program that computes nothing for so long, and for so many
/// times as long as it computed, is waiting for something.
const IDLE_NS: u64 = 100_000_000;
const IDLE_TIMES: u64 = 10;

/// From here on the depth is part of a phase's name.
const DEEP: u64 = 512;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// A trial run before the first prompt.
    WarmUp,
    Prompt,
    Generation,
    /// Generation and prompts in the same batches.
    Mixed,
    /// Embeddings, or the encoder of a model.
    Encoding,
    /// Graphs without tokens.
    Graph,
}

/// Consecutive steps of one stream that do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    pub kind: PhaseKind,
    /// Kind and tokens are guessed from shapes.
    pub is_guess: bool,
    pub stream: Stream,
    pub steps: u64,
    pub runs: u64,
    pub tokens: u64,
    /// Sequences that are generated at once; 1 for prompts.
    pub sequences: u64,
    /// Tokens of the sequence that were there before; `None` with several sequences.
    pub depth: Option<u64>,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Of that, in gaps of the recording.
    pub unrecorded_ns: u64,
}

impl Phase {
    /// From its start to its end, without what was not recorded.
    pub fn wall_ns(&self) -> u64 {
        (self.end_ns - self.start_ns).saturating_sub(self.unrecorded_ns)
    }

    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.wall_ns() as f64 / 1e9;
        let is_counted = !matches!(self.kind, PhaseKind::WarmUp | PhaseKind::Graph);
        (is_counted && self.tokens > 0 && seconds > 0.0).then(|| self.tokens as f64 / seconds)
    }

    /// llama-bench's words: `pp512`, `tg128`, `tg128 @ d4096`; `tg128x4` for four sequences at once.
    pub fn label(&self) -> String {
        let tokens = self.tokens;
        let name = match self.kind {
            PhaseKind::WarmUp => return "warm-up".to_owned(),
            PhaseKind::Graph => return "graphs".to_owned(),
            PhaseKind::Prompt => format!("pp{tokens}"),
            PhaseKind::Mixed => format!("mixed{tokens}"),
            PhaseKind::Encoding => format!("enc{tokens}"),
            PhaseKind::Generation if self.sequences > 1 => {
                format!("tg{}x{}", tokens / self.sequences, self.sequences)
            }
            PhaseKind::Generation => format!("tg{tokens}"),
        };
        match self.depth.filter(|&depth| depth >= DEEP) {
            Some(depth) => format!("{name} @ d{depth}"),
            None => name,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phases {
    /// By start.
    pub phases: Vec<Phase>,
    /// Which phase each graph run belongs to, as a position in `phases`.
    pub phase_of_run: Vec<u32>,
    /// How many tokens each graph run took in; `None` where its shapes do not tell.
    pub tokens_of_run: Vec<Option<u64>>,
    /// What the phases are made of, by start.
    pub steps: Vec<Step>,
    /// By start; empty where sequences are not known.
    pub requests: Vec<Request>,
    /// From the start of each prompt that was followed by generation to its end, where its
    /// first token is known. Sorted.
    pub first_token_ns: Vec<u64>,
    /// From the end of one generated token of a sequence to the end of the next. Sorted.
    pub between_tokens_ns: Vec<u64>,
}

/// Phases that are the same but for when they were: repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseGroup {
    pub first_label: String,
    /// The first of them, with the sums of all.
    pub sum: Phase,
    pub count: u64,
    /// Mean and standard deviation of the speeds.
    pub tokens_per_second: Option<(f64, f64)>,
}

impl Phases {
    /// How many phases there are of a kind, and what they come to.
    pub fn sum(&self, kind: PhaseKind) -> Option<PhaseGroup> {
        let of_kind: Vec<&Phase> = self.phases.iter().filter(|it| it.kind == kind).collect();
        (!of_kind.is_empty()).then(|| group(&of_kind))
    }

    /// Repetitions together, in the order of the first of each.
    pub fn groups(&self) -> Vec<PhaseGroup> {
        let phases = |places: &Vec<u32>| -> Vec<&Phase> {
            places.iter().map(|&place| &self.phases[place as usize]).collect()
        };
        self.group_places().iter().map(|places| group(&phases(places))).collect()
    }

    /// The places of the phases that are repetitions of each other.
    pub fn group_places(&self) -> Vec<Vec<u32>> {
        self.places_by(|phase| (phase.kind, phase.label()))
    }

    /// The places of the phases of each kind.
    pub fn kind_places(&self) -> Vec<Vec<u32>> {
        self.places_by(|phase| phase.kind)
    }

    fn places_by<K: std::hash::Hash + Eq>(&self, key: impl Fn(&Phase) -> K) -> Vec<Vec<u32>> {
        let mut known: HashMap<K, usize> = HashMap::new();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for (place, phase) in self.phases.iter().enumerate() {
            let group = *known.entry(key(phase)).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(place as u32);
        }
        groups
    }

    pub fn kind_of_run(&self, run: Option<GraphRunId>) -> PhaseKind {
        let phase = run.and_then(|run| self.phase_of_run.get(run.0 as usize));
        phase.map_or(PhaseKind::Graph, |&phase| self.phases[phase as usize].kind)
    }

    /// Graph runs whose kind and tokens are guessed from shapes.
    pub fn guessed_runs(&self) -> u64 {
        let guessed = self.phases.iter().filter(|it| it.is_guess && it.kind != PhaseKind::Graph);
        guessed.map(|phase| phase.runs).sum()
    }

    /// Whether what is known of any graph run is no guess.
    pub fn are_known_in_part(&self) -> bool {
        self.phases.iter().any(|phase| !phase.is_guess)
    }
}

/// At least one.
fn group(phases: &[&Phase]) -> PhaseGroup {
    let (first_label, mut sum) = (phases[0].label(), phases[0].clone());
    for phase in &phases[1..] {
        sum.runs += phase.runs;
        sum.steps += phase.steps;
        sum.tokens += phase.tokens;
        sum.sequences = sum.sequences.max(phase.sequences);
        sum.is_guess |= phase.is_guess;
        sum.end_ns += phase.wall_ns();
    }
    sum.end_ns -= sum.unrecorded_ns;
    sum.unrecorded_ns = 0;
    let speeds: Vec<f64> = phases.iter().filter_map(|it| it.tokens_per_second()).collect();
    let count = phases.len() as u64;
    PhaseGroup { first_label, sum, count, tokens_per_second: mean_and_deviation(&speeds) }
}

/// Mean and sample standard deviation; 0 of one.
pub(crate) fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, (squares / (count - 1.0).max(1.0)).sqrt()))
}

/// The value below which half (95 %) of sorted values lie.
pub fn median_and_p95(sorted: &[u64]) -> (u64, u64) {
    let mut values = sorted.to_vec();
    (percentile(&mut values, 50), percentile(&mut values, 95))
}

pub fn phases(trace: &Trace) -> Phases {
    let found = steps(trace);
    let steps = found.steps;
    let gaps = gaps(trace);
    let mut walk = Walk { phase_of_run: vec![0; trace.graph_runs.len()], ..Walk::default() };
    for step in &steps {
        walk.take(step, &gaps);
    }
    let mut tokens_of_run = vec![None; trace.graph_runs.len()];
    for step in &steps {
        share_tokens(step, &mut tokens_of_run);
    }
    let requests = requests(trace, &steps, found.requests);
    let Walk { phases, phase_of_run, mut first_token_ns, mut between_tokens_ns, .. } = walk;
    for request in requests.iter().filter(|request| !request.is_warm_up) {
        first_token_ns.extend(request.first_token_ns);
        between_tokens_ns.extend(request.waits.iter().map(|wait| wait.duration_ns()));
    }
    first_token_ns.sort_unstable();
    between_tokens_ns.sort_unstable();
    Phases {
        phases,
        phase_of_run,
        tokens_of_run,
        steps,
        requests,
        first_token_ns,
        between_tokens_ns,
    }
}

/// A batch may be computed in several graph runs: all but the last are equally large.
fn share_tokens(step: &Step, tokens_of_run: &mut [Option<u64>]) {
    let (Some(tokens), count) = (step.tokens, step.runs.len() as u64) else { return };
    let each = tokens.div_ceil(count.max(1));
    let mut left = tokens;
    for &run in &step.runs {
        let these = each.min(left);
        tokens_of_run[run as usize] = Some(these);
        left -= these;
    }
}

/// Joins steps into phases, one after the other.
#[derive(Default)]
struct Walk {
    phases: Vec<Phase>,
    phase_of_run: Vec<u32>,
    /// The last phase of each stream, and what is needed to go on with it.
    open: HashMap<Stream, Open>,
    /// When the last step of any stream ended, and of which.
    latest: Option<(u64, Stream)>,
    first_token_ns: Vec<u64>,
    between_tokens_ns: Vec<u64>,
}

#[derive(Clone)]
struct Open {
    phase: usize,
    /// The requests that take part.
    requests: Vec<u32>,
    last_start_ns: u64,
    last_end_ns: u64,
}

impl Walk {
    fn take(&mut self, step: &Step, gaps: &[Gap]) {
        let kind = match step.kind {
            _ if step.is_warm_up => PhaseKind::WarmUp,
            StepKind::Prompt => PhaseKind::Prompt,
            StepKind::Generation => PhaseKind::Generation,
            StepKind::Mixed => PhaseKind::Mixed,
            StepKind::Encoding => PhaseKind::Encoding,
            StepKind::Graph => PhaseKind::Graph,
        };
        let sequences = if kind == PhaseKind::Generation { step.generating() } else { 1 };
        let open = self.open.get(&step.stream).cloned();
        self.note_guessed_latencies(step, kind, open.as_ref());
        let goes_on = open.as_ref().filter(|open| {
            let phase = &self.phases[open.phase];
            phase.kind == kind && phase.sequences == sequences && self.continues(open, step, gaps)
        });
        let place = match goes_on.map(|open| open.phase) {
            Some(place) => place,
            None => {
                self.phases.push(begin(step, kind, sequences));
                self.phases.len() - 1
            }
        };
        let phase = &mut self.phases[place];
        phase.steps += 1;
        phase.runs += step.runs.len() as u64;
        phase.tokens += step.tokens.unwrap_or(0);
        phase.end_ns = phase.end_ns.max(step.end_ns);
        phase.unrecorded_ns = within(gaps, phase.start_ns, phase.end_ns);
        step.runs.iter().for_each(|&run| self.phase_of_run[run as usize] = place as u32);
        let open = Open {
            phase: place,
            requests: step.parts.iter().map(|part| part.request).collect(),
            last_start_ns: step.start_ns,
            last_end_ns: step.end_ns,
        };
        self.open.insert(step.stream, open);
        if self.latest.is_none_or(|(end_ns, _)| step.end_ns >= end_ns) {
            self.latest = Some((step.end_ns, step.stream));
        }
    }

    /// Whether a step goes on with what its stream did last.
    fn continues(&self, open: &Open, step: &Step, gaps: &[Gap]) -> bool {
        let is_same = |request: &u32| step.parts.iter().any(|part| part.request == *request);
        let idle_ns = step.start_ns.saturating_sub(open.last_end_ns);
        let work_ns = (open.last_end_ns - open.last_start_ns).max(step.end_ns - step.start_ns);
        let is_idle = idle_ns >= IDLE_NS && idle_ns >= IDLE_TIMES.saturating_mul(work_ns);
        let is_known = !step.parts.is_empty() && !open.requests.is_empty();
        let is_same_work = if is_known { open.requests.iter().any(is_same) } else { !is_idle };
        let is_interrupted = self.latest.is_some_and(|(end_ns, stream)| {
            // Another stream had its turn. Those that compute at the same time do not end each
            // other's phases.
            stream != step.stream
                && end_ns > open.last_end_ns
                && end_ns <= step.start_ns
                && !is_known
        });
        is_same_work
            && !is_interrupted
            && !step.is_after_clear
            && within(gaps, open.last_end_ns, step.start_ns) == 0
    }

    /// Without sequences, a prompt and what comes after it are taken for one request.
    fn note_guessed_latencies(&mut self, step: &Step, kind: PhaseKind, open: Option<&Open>) {
        let Some(open) = open.filter(|_| step.is_guess && kind == PhaseKind::Generation) else {
            return;
        };
        let before = &self.phases[open.phase];
        if before.kind == PhaseKind::Prompt {
            self.first_token_ns.push(before.wall_ns());
        }
        if matches!(before.kind, PhaseKind::Prompt | PhaseKind::Generation) {
            self.between_tokens_ns.push(step.end_ns.saturating_sub(before.end_ns));
        }
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
        steps: 0,
        runs: 0,
        tokens: 0,
        sequences,
        depth,
        start_ns: step.start_ns,
        end_ns: step.end_ns,
        unrecorded_ns: 0,
    }
}

#[cfg(test)]
mod tests;
