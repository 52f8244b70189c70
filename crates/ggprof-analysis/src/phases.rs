//! Phases: steps of the same kind, one after the other, and how fast each went.
//!
//! Where the program's batches are known, a phase is a prompt of one request (or of several that were
//! computed together), or the generation of the same number of sequences. It ends where another
//! request's prompt comes in between, where the memory was cleared, where the program did nothing for
//! long, and at gaps in the recording. Where they are not known, kinds are guessed from shapes.
//!
//! Of a part of a recording, phases are those of all of it, without what lies outside.

mod walk;

use crate::gaps::Gaps;
use crate::percentiles;
use crate::requests::{Request, requests};
use crate::step::{Step, Stream};
use crate::steps::steps;
use ggprof_trace::{GraphRun, GraphRunId, Process, ProcessIndex, Trace};
use hashbrown::HashMap;
use walk::{Guessed, Walk};

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
    /// A smaller model drafts what another one checks.
    Draft,
}

impl PhaseKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Prompt => "prompt",
            Self::Generation => "generation",
            Self::Mixed => "mixed",
            Self::Encoding => "encoding",
            Self::Draft => "draft",
            Self::Graph => "graph",
        }
    }
}

/// Consecutive steps of one stream that do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    pub kind: PhaseKind,
    /// Kind and tokens are guessed from shapes.
    pub is_guess: bool,
    pub stream: Stream,
    /// Whose it is, in a trace that was made of several recordings.
    pub process: Option<ProcessIndex>,
    pub steps: u64,
    pub runs: u64,
    /// Without those that were drafted and turned out wrong.
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
        let is_counted =
            !matches!(self.kind, PhaseKind::WarmUp | PhaseKind::Draft | PhaseKind::Graph);
        (is_counted && self.tokens > 0 && seconds > 0.0).then(|| self.tokens as f64 / seconds)
    }

    /// The context of libllama whose speed this is.
    pub fn context(&self) -> Option<u32> {
        match self.stream {
            Stream::Context(id) if self.kind != PhaseKind::WarmUp => Some(id),
            _ => None,
        }
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
            PhaseKind::Draft => format!("draft{tokens}"),
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

    /// What a process was doing at a time; for what belongs to no graph run.
    pub(crate) fn kind_at(&self, process: Option<ProcessIndex>, ns: u64) -> Option<PhaseKind> {
        let begun = self.phases.partition_point(|phase| phase.start_ns <= ns);
        let is_it = |phase: &&Phase| phase.process == process && ns < phase.end_ns;
        self.phases[..begun].iter().rev().find(is_it).map(|phase| phase.kind)
    }

    /// The tokens of a process's phases of a kind.
    pub(crate) fn tokens_of(&self, process: Option<ProcessIndex>, kind: PhaseKind) -> u64 {
        let phases = self.phases.iter().filter(|it| it.process == process && it.kind == kind);
        phases.fold(0, |sum: u64, phase| sum.saturating_add(phase.tokens))
    }

    /// Repetitions together, in the order of the first of each. Those of one context: another one may be of
    /// another model, or compute in another way.
    pub fn groups(&self) -> Vec<PhaseGroup> {
        let places =
            self.places_by(|phase| (phase.process, phase.kind, phase.label(), phase.context()));
        places.iter().map(|places| self.group_at(places)).collect()
    }

    /// What is called the same together, in whichever contexts it was.
    pub fn label_groups(&self) -> Vec<PhaseGroup> {
        self.group_places().iter().map(|places| self.group_at(places)).collect()
    }

    /// Those of a process and a kind together, in the order of the first of each.
    pub fn kind_groups(&self) -> Vec<PhaseGroup> {
        self.kind_places().iter().map(|places| self.group_at(places)).collect()
    }

    /// One by one, by start.
    pub fn each(&self) -> Vec<PhaseGroup> {
        self.phases.iter().map(|phase| group(&[phase])).collect()
    }

    fn group_at(&self, places: &[u32]) -> PhaseGroup {
        let phases: Vec<&Phase> =
            places.iter().map(|&place| &self.phases[place as usize]).collect();
        group(&phases)
    }

    /// The places of the phases that are called the same.
    pub fn group_places(&self) -> Vec<Vec<u32>> {
        self.places_by(|phase| (phase.process, phase.kind, phase.label()))
    }

    /// The places of the phases of each process and kind.
    pub fn kind_places(&self) -> Vec<Vec<u32>> {
        self.places_by(|phase| (phase.process, phase.kind))
    }

    /// The process of a phase, where there are phases of several.
    pub fn owner<'t>(&self, trace: &'t Trace, phase: &Phase) -> Option<&'t Process> {
        let is_one = self.phases.iter().all(|other| other.process == phase.process);
        let process = phase.process.filter(|_| !is_one)?;
        trace.processes.get(usize::from(process.0))
    }

    /// A phase's label, with its process where there are phases of several.
    pub fn label_among(&self, trace: &Trace, phase: &Phase) -> String {
        match self.owner(trace, phase) {
            Some(process) => format!("{} of {}", phase.label(), process.label()),
            None => phase.label(),
        }
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

    /// Graph runs whose tokens are known by their positions only.
    pub fn runs_by_positions(&self, trace: &Trace) -> u64 {
        let is_it = |(run, phase): &(&GraphRun, &u32)| {
            let batch = run.batch.and_then(|batch| trace.batches.get(batch.0 as usize));
            batch.is_some_and(|batch| batch.is_from_positions)
                && !self.phases[**phase as usize].is_guess
        };
        trace.graph_runs.iter().zip(&self.phase_of_run).filter(is_it).count() as u64
    }

    /// Batches that were taken for a trial although the program did not say so.
    pub fn guessed_trials(&self) -> u64 {
        self.steps.iter().filter(|step| step.is_guessed_trial).count() as u64
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
        sum.end_ns = sum.end_ns.saturating_add(phase.wall_ns());
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
    percentiles::median_and_p95(&mut sorted.to_vec())
}

pub fn phases(trace: &Trace) -> Phases {
    let found = steps(trace);
    let mut steps = found.steps;
    let requests = requests(trace, &steps, found.requests);
    let (gaps, of_recording) = (Gaps::of(trace), Gaps::of_recording(trace));
    let mut walk = Walk::new(trace.graph_runs.len());
    for step in &steps {
        // What was left out of steps that are not known is not there to go on from.
        let gaps = if step.parts.is_empty() { &gaps } else { &of_recording };
        walk.take(step, gaps.of_process(step.process));
    }
    let (phases, phase_of_run) = walk.finish(&gaps, &of_recording);
    steps.retain(Step::is_inside);
    let mut tokens_of_run = vec![None; trace.graph_runs.len()];
    for step in &steps {
        share_tokens(step, &mut tokens_of_run);
    }
    let Guessed { mut first_token_ns, mut between_tokens_ns } = walk.guessed;
    for request in requests.iter().filter(|request| !request.is_warm_up) {
        first_token_ns.extend(request.first_token_ns.filter(|_| request.is_first_token_inside));
        let inside = request.waits.iter().filter(|wait| wait.is_inside);
        between_tokens_ns.extend(inside.map(|wait| wait.duration_ns()));
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

#[cfg(test)]
mod tests;
