//! Tells prompt processing from generation, and how fast each went.
//!
//! The number of tokens in a graph run is the number of columns that its matrix products
//! multiply the weights with. One token is generation. Several tokens are a prompt, unless
//! the last product, which makes the output, gives one for each of them: then every token
//! is the newest of a sequence of its own, as when a server answers several requests.
//!
//! Where no product was seen, because only the calls are known that start a device's work, the
//! rows tell that are looked up for the tokens: llama.cpp leaves that to the CPU.

use crate::done::done;
use crate::sampling::runs_like_sampled;
use crate::totals::percentile;
use ggprof_trace::{GraphRun, GraphRunId, Signature, Tensor, Trace};
use hashbrown::HashMap;

/// Larger batches with an output for every token come from measuring perplexity or making
/// embeddings, not from this many requests at once.
const MOST_SEQUENCES: u64 = 64;

/// llama.cpp tries a new context with two tokens before the real prompt comes.
const WARM_UP_TOKENS: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseKind {
    /// A trial run before the first prompt.
    WarmUp,
    Prompt,
    Generation,
    /// Graphs whose shapes do not tell.
    Unknown,
}

/// Consecutive graph runs of one scheduler that do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    pub kind: PhaseKind,
    pub scheduler: u32,
    pub runs: u64,
    pub tokens: u64,
    /// Sequences that are generated at once; 1 for prompts.
    pub sequences: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Phase {
    pub fn wall_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.wall_ns() as f64 / 1e9;
        (self.tokens > 0 && seconds > 0.0).then(|| self.tokens as f64 / seconds)
    }

    /// llama-bench's words: `pp512`, `tg128`; `tg128x4` for four sequences at once.
    pub fn label(&self) -> String {
        match self.kind {
            PhaseKind::WarmUp => "warm-up".to_owned(),
            PhaseKind::Prompt => format!("pp{}", self.tokens),
            PhaseKind::Generation if self.sequences > 1 => {
                format!("tg{}x{}", self.tokens / self.sequences, self.sequences)
            }
            PhaseKind::Generation => format!("tg{}", self.tokens),
            PhaseKind::Unknown => "graphs".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Phases {
    /// By start.
    pub phases: Vec<Phase>,
    /// Which phase each graph run belongs to, as a position in `phases`.
    pub phase_of_run: Vec<u32>,
    /// How many tokens each graph run took in; `None` where its shapes do not tell.
    pub tokens_of_run: Vec<Option<u64>>,
    /// From the start of each prompt that was followed by generation to its end, where its
    /// first token is known. Sorted.
    pub first_token_ns: Vec<u64>,
    /// From the end of one generated token to the end of the next. Sorted.
    pub between_tokens_ns: Vec<u64>,
}

impl Phases {
    /// How many phases there are of a kind, and what they come to.
    pub fn sum(&self, kind: PhaseKind) -> (usize, Phase) {
        let mut sum =
            Phase { kind, scheduler: 0, runs: 0, tokens: 0, sequences: 1, start_ns: 0, end_ns: 0 };
        let phases = self.phases.iter().filter(|phase| phase.kind == kind);
        let count = phases.clone().count();
        for phase in phases {
            sum.runs += phase.runs;
            sum.tokens += phase.tokens;
            sum.sequences = sum.sequences.max(phase.sequences);
            sum.end_ns += phase.wall_ns();
        }
        (count, sum)
    }

    pub fn kind_of_run(&self, run: Option<GraphRunId>) -> PhaseKind {
        let phase = run.and_then(|run| self.phase_of_run.get(run.0 as usize));
        phase.map_or(PhaseKind::Unknown, |&phase| self.phases[phase as usize].kind)
    }
}

/// The value below which half (95 %) of sorted values lie.
pub fn median_and_p95(sorted: &[u64]) -> (u64, u64) {
    let mut values = sorted.to_vec();
    (percentile(&mut values, 50), percentile(&mut values, 95))
}

pub fn phases(trace: &Trace) -> Phases {
    let batches = batches(trace);
    let done = done(trace);
    let mut order: Vec<usize> = (0..trace.graph_runs.len()).collect();
    order.sort_by_key(|&at| trace.graph_runs[at].start_ns);
    let previous = previous_of_scheduler(trace, &order);
    let mut next = vec![None; order.len()];
    for (place, previous) in previous.iter().enumerate() {
        if let Some(previous) = previous {
            next[*previous] = Some(place);
        }
    }
    let mut walk = Walk { phase_of_run: vec![0; order.len()], ..Walk::default() };
    for (place, &at) in order.iter().enumerate() {
        let next = next[place].map(|next| kind(&batches[order[next]]));
        let kind = match kind(&batches[at]) {
            PhaseKind::Prompt
                if previous[place].is_none()
                    && batches[at].tokens <= Some(WARM_UP_TOKENS)
                    && next == Some(PhaseKind::Prompt) =>
            {
                PhaseKind::WarmUp
            }
            kind => kind,
        };
        let before = previous[place].map(|place| order[place]);
        let goes_on =
            previous[place].is_some_and(|previous| !others_between(trace, &order, previous, place));
        let run = GraphRun { end_ns: done[at], ..trace.graph_runs[at] };
        walk.step(at, &run, kind, &batches[at], before, goes_on);
    }
    walk.finish(batches.iter().map(|batch| batch.tokens).collect())
}

/// For each place in `order` the place of the same scheduler's run before.
fn previous_of_scheduler(trace: &Trace, order: &[usize]) -> Vec<Option<usize>> {
    let mut last = HashMap::new();
    let place_of =
        |(place, &at): (usize, &usize)| last.insert(trace.graph_runs[at].scheduler, place);
    order.iter().enumerate().map(place_of).collect()
}

/// Whether the scheduler paused for another one: then what it did before is a phase of its
/// own. Schedulers that compute at the same time do not end each other's phases.
fn others_between(trace: &Trace, order: &[usize], previous: usize, place: usize) -> bool {
    let (before, after) = (&trace.graph_runs[order[previous]], &trace.graph_runs[order[place]]);
    order[previous + 1..place].iter().any(|&other| {
        let other = &trace.graph_runs[other];
        other.start_ns >= before.end_ns && other.end_ns <= after.start_ns
    })
}

/// How many tokens a graph run took in and gave out.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    tokens: Option<u64>,
    outputs: Option<u64>,
}

fn kind(batch: &Batch) -> PhaseKind {
    match batch.tokens {
        None => PhaseKind::Unknown,
        Some(1) => PhaseKind::Generation,
        Some(tokens) if batch.outputs == Some(tokens) && tokens <= MOST_SEQUENCES => {
            PhaseKind::Generation
        }
        Some(_) => PhaseKind::Prompt,
    }
}

fn batches(trace: &Trace) -> Vec<Batch> {
    let columns: Vec<Option<u64>> =
        trace.nodes.signatures().map(|(_, signature)| columns(trace, signature)).collect();
    // Per run: how often each number of columns occurs, and the product that starts last.
    let mut counts: Vec<Vec<(u64, u32)>> = vec![Vec::new(); trace.graph_runs.len()];
    let mut last: Vec<(u64, Option<u64>)> = vec![(0, None); trace.graph_runs.len()];
    for event in trace.events.iter().filter(|event| event.is_op()) {
        let signature = trace.node(event.node).signature;
        let (Some(run), Some(columns)) = (event.graph_run, columns[signature.0 as usize]) else {
            continue;
        };
        let run = run.0 as usize;
        match counts[run].iter_mut().find(|(value, _)| *value == columns) {
            Some((_, count)) => *count += 1,
            None => counts[run].push((columns, 1)),
        }
        if event.start_ns >= last[run].0 {
            last[run] = (event.start_ns, Some(columns));
        }
    }
    let most = |counts: &Vec<(u64, u32)>| {
        counts.iter().max_by_key(|(value, count)| (*count, *value)).map(|(value, _)| *value)
    };
    let mut batches: Vec<Batch> = counts
        .iter()
        .zip(last)
        .map(|(counts, (_, outputs))| Batch { tokens: most(counts), outputs })
        .collect();
    // A run that was timed as a whole does what others of its kind do.
    for (run, like) in runs_like_sampled(trace) {
        if batches[run.0 as usize].tokens.is_none() {
            batches[run.0 as usize] = batches[like.0 as usize];
        }
    }
    for (batch, looked_up) in batches.iter_mut().zip(looked_up(trace)) {
        let out_of_sight = looked_up.outputs.is_some();
        if batch.tokens.is_none() && out_of_sight {
            *batch = looked_up;
        }
    }
    batches
}

/// What each run looks up first, and what its last split on a device gives out.
fn looked_up(trace: &Trace) -> Vec<Batch> {
    let mut batches = vec![Batch::default(); trace.graph_runs.len()];
    for event in trace.events.iter().filter(|event| event.is_op()) {
        let Some(run) = event.graph_run else { continue };
        let batch = &mut batches[run.0 as usize];
        let signature = trace.signature(event.node);
        match (trace.text(signature.op), &*signature.sources) {
            ("GET_ROWS", [table, rows]) if is_flat(&table.tensor) && is_list(&rows.tensor) => {
                batch.tokens = batch.tokens.or(Some(rows.tensor.ne[0] as u64));
            }
            (Signature::WHOLE_SPLIT, _) if is_flat(&signature.output) => {
                batch.outputs = Some(signature.output.ne[1] as u64);
            }
            _ => {}
        }
    }
    batches
}

fn is_list(tensor: &Tensor) -> bool {
    is_flat(tensor) && tensor.ne[1] == 1
}

fn is_flat(tensor: &Tensor) -> bool {
    let ne = &tensor.ne;
    ne[0] > 0 && ne[1] > 0 && ne[2] <= 1 && ne[3] <= 1
}

/// Columns that a product of weights with activations has; `None` for other ops.
fn columns(trace: &Trace, signature: &Signature) -> Option<u64> {
    let [weights, activations, ..] = &*signature.sources else { return None };
    let product = trace.text(signature.op) == "MUL_MAT";
    (product && is_flat(&weights.tensor) && is_flat(&activations.tensor))
        .then_some(activations.tensor.ne[1] as u64)
}

/// Joins runs into phases, one after the other.
#[derive(Default)]
struct Walk {
    phases: Vec<Phase>,
    phase_of_run: Vec<u32>,
    first_token_ns: Vec<u64>,
    between_tokens_ns: Vec<u64>,
}

impl Walk {
    /// Takes the next run, which ends when it is done. `before` is the run that its scheduler
    /// did before; `goes_on` says that nothing else was done in between.
    fn step(
        &mut self,
        at: usize,
        run: &GraphRun,
        kind: PhaseKind,
        batch: &Batch,
        before: Option<usize>,
        goes_on: bool,
    ) {
        let tokens = batch.tokens.unwrap_or(0);
        let sequences = if kind == PhaseKind::Generation { tokens } else { 1 };
        let before = before.map(|before| self.phase_of_run[before] as usize);
        if let Some(phase) = before.map(|before| &self.phases[before])
            && kind == PhaseKind::Generation
        {
            if phase.kind == PhaseKind::Prompt {
                self.first_token_ns.push(phase.wall_ns());
            }
            if matches!(phase.kind, PhaseKind::Prompt | PhaseKind::Generation) {
                self.between_tokens_ns.push(run.end_ns.saturating_sub(phase.end_ns));
            }
        }
        let same = |phase: &Phase| phase.kind == kind && phase.sequences == sequences;
        let place = match before.filter(|&before| goes_on && same(&self.phases[before])) {
            Some(before) => {
                let phase = &mut self.phases[before];
                phase.runs += 1;
                phase.tokens += tokens;
                phase.end_ns = phase.end_ns.max(run.end_ns);
                before
            }
            None => {
                self.phases.push(Phase {
                    kind,
                    scheduler: run.scheduler,
                    runs: 1,
                    tokens,
                    sequences,
                    start_ns: run.start_ns,
                    end_ns: run.end_ns,
                });
                self.phases.len() - 1
            }
        };
        self.phase_of_run[at] = place as u32;
    }

    /// Phases began in the order of their first runs, and so stand in order already.
    fn finish(mut self, tokens_of_run: Vec<Option<u64>>) -> Phases {
        self.first_token_ns.sort_unstable();
        self.between_tokens_ns.sort_unstable();
        Phases {
            phases: self.phases,
            phase_of_run: self.phase_of_run,
            tokens_of_run,
            first_token_ns: self.first_token_ns,
            between_tokens_ns: self.between_tokens_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use ggprof_trace::text_fixture;
    use std::fmt::Write;

    /// One graph run per `(tokens, outputs)`, each 10 ns long with 1 ns before the next.
    fn check(runs: &[(u64, u64)], expected: Expect) {
        let mut fixture = "backend 0 CPU cpu\n".to_owned();
        for (at, (tokens, outputs)) in runs.iter().enumerate() {
            let start = at * 11;
            let (middle, end) = (start + 5, start + 10);
            writeln!(fixture, "run {start}..{end}").unwrap();
            for name in ["Qcur-0", "Kcur-0"] {
                writeln!(
                    fixture,
                    "op CPU MUL_MAT {start}..{middle} {name} run={at} f32[8,{tokens}] <- f32[8,8] f32[8,{tokens}]"
                )
                .unwrap();
            }
            writeln!(
                fixture,
                "op CPU MUL_MAT {middle}..{end} result_output run={at} f32[99,{outputs}] <- f32[8,99] f32[8,{outputs}]"
            )
            .unwrap();
        }
        let found = phases(&text_fixture::parse(&fixture));
        let mut text = String::new();
        for phase in &found.phases {
            let Phase { runs, start_ns, end_ns, .. } = phase;
            writeln!(text, "{} in {runs} runs, {start_ns}..{end_ns}", phase.label()).unwrap();
        }
        write!(text, "first {:?} between {:?}", found.first_token_ns, found.between_tokens_ns)
            .unwrap();
        expected.assert_eq(&text);
    }

    #[test]
    fn where_products_are_out_of_sight_lookups_tell() {
        let mut fixture = "backend 0 GPU gpu\nbackend 1 CPU cpu\n".to_owned();
        for (run, tokens) in [7, 1, 1].into_iter().enumerate() {
            let start = run * 100;
            let [looked_up, started, waited] = [start + 4, start + 6, start + 90];
            write!(
                fixture,
                "run {start}..{started}
                 op CPU GET_ROWS {start}..{looked_up} embd run={run} f32[8,{tokens}] <- q4_0[8,99] i32[{tokens}]
                 op GPU SPLIT {looked_up}..{started} measured=host_call run={run} f32[99,1] <- f32[8,{tokens}]
                 wait {started}..{waited} run={run}
                "
            )
            .unwrap();
        }
        let found = phases(&text_fixture::parse(&fixture));
        let phases: Vec<_> = found.phases.iter().map(|it| (it.label(), it.wall_ns())).collect();
        assert_eq!(phases, [("pp7".to_owned(), 90), ("tg2".to_owned(), 190)]);
        assert_eq!(found.between_tokens_ns, [100, 100]);
    }

    #[test]
    fn lookups_alone_are_no_prompt() {
        let fixture = "backend 0 CPU cpu\nrun 0..9
                       op CPU GET_ROWS 0..4 embd run=0 f32[8,7] <- q4_0[8,99] i32[7]";
        let found = phases(&text_fixture::parse(fixture));
        assert_eq!(found.phases[0].kind, PhaseKind::Unknown);
    }

    #[test]
    fn a_prompt_in_two_batches_and_three_tokens() {
        check(
            &[(512, 1), (88, 1), (1, 1), (1, 1), (1, 1)],
            expect![[r#"
                pp600 in 2 runs, 0..21
                tg3 in 3 runs, 22..54
                first [21] between [11, 11, 11]"#]],
        );
    }

    #[test]
    fn the_trial_run_is_not_a_prompt() {
        check(
            &[(2, 1), (7, 1), (1, 1)],
            expect![[r#"
                warm-up in 1 runs, 0..10
                pp7 in 1 runs, 11..21
                tg1 in 1 runs, 22..32
                first [10] between [11]"#]],
        );
        // A prompt of two tokens that is answered at once was meant.
        check(
            &[(2, 1), (1, 1)],
            expect![[r#"
                pp2 in 1 runs, 0..10
                tg1 in 1 runs, 11..21
                first [10] between [11]"#]],
        );
    }

    #[test]
    fn an_output_for_every_token_is_several_sequences() {
        check(
            &[(4, 4), (4, 4), (4, 1), (512, 512)],
            expect![[r#"
                tg2x4 in 2 runs, 0..21
                pp516 in 2 runs, 22..43
                first [] between [11]"#]],
        );
    }

    #[test]
    fn graphs_without_products_are_unknown() {
        let trace = text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 0..4 x");
        let found = phases(&trace);
        assert_eq!(found.phases[0].kind, PhaseKind::Unknown);
        assert_eq!(found.kind_of_run(Some(GraphRunId(0))), PhaseKind::Unknown);
        assert_eq!(found.phases[0].tokens_per_second(), None);
        assert_eq!(found.tokens_of_run, [None]);
    }

    #[test]
    fn schedulers_in_turns_interrupt_each_other() {
        let run = |at: u64| format!("run {}..{}", at * 10, at * 10 + 9);
        let op = |at: u64| {
            let (start, end) = (at * 10, at * 10 + 1);
            format!("op CPU MUL_MAT {start}..{end} a run={at} f32[8,1] <- f32[8,8] f32[8,1]")
        };
        let lines: Vec<String> = (0..6).map(run).chain((0..6).map(op)).collect();
        let mut trace = text_fixture::parse(&format!("backend 0 CPU cpu\n{}", lines.join("\n")));
        for (at, scheduler) in [1, 1, 2, 2, 1, 1].into_iter().enumerate() {
            trace.graph_runs[at].scheduler = scheduler;
        }
        let found = phases(&trace);
        let spans: Vec<_> =
            found.phases.iter().map(|phase| (phase.start_ns, phase.end_ns)).collect();
        assert_eq!(spans, [(0, 19), (20, 39), (40, 59)]);
    }

    #[test]
    fn schedulers_have_phases_of_their_own() {
        let mut trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..10
             run 5..15
             op CPU MUL_MAT 0..1 a run=0 f32[8,7] <- f32[8,8] f32[8,7]
             op CPU MUL_MAT 1..2 b run=0 f32[8,7] <- f32[8,8] f32[8,7]
             op CPU MUL_MAT 2..3 c run=0 f32[8,1] <- f32[8,8] f32[8,1]
             op CPU MUL_MAT 5..6 a run=1 f32[8,1] <- f32[8,8] f32[8,1]",
        );
        trace.graph_runs[0].scheduler = 1;
        let found = phases(&trace);
        let labels: Vec<_> = found.phases.iter().map(Phase::label).collect();
        assert_eq!(labels, ["pp7", "tg1"]);
        assert_eq!(found.phase_of_run, [0, 1]);
        assert_eq!(found.tokens_of_run, [Some(7), Some(1)]);
    }
}
