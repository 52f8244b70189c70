//! A program while it runs: from what is new at each look to what it does now, and what it has done
//! since it is watched.

use crate::drafts::{Evidence, follows};
use crate::percentiles::median_and_p95;
use crate::sequences::{Role, Sequences, Turn};
use crate::steps::{Part, StepKind, Stream, goes_on, is_embedding, kind_of};
use crate::warm_up::WARM_UP_TOKENS;
use crate::work::work_of;
use ggprof_trace::formats::spool::{News, Standing};
use ggprof_trace::{
    BackendIndex, Batch, BatchFunction, ContextChangeKind, NodeId, Quantity, Trace,
};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

mod busy;
mod counters;

use busy::Busy;
pub use counters::{Counters, Histogram, OfBackend};

const SECOND_NS: u64 = 1_000_000_000;
/// What percentiles are of.
const WINDOW_NS: u64 = 60 * SECOND_NS;
/// A request of which nothing was computed for so long is not under way any more.
const OVER_AFTER_NS: u64 = 2 * SECOND_NS;

/// Follows a program from look to look.
#[derive(Debug, Default)]
pub struct Watch {
    sequences: Sequences,
    open: HashMap<u32, LiveStep>,
    /// Contexts that were seen.
    contexts: Vec<u32>,
    /// By context: a step that may turn out to be a trial, because trials alone came before it, and when
    /// it ended. `None` once there were others.
    first: HashMap<u32, Option<(LiveStep, u64)>>,
    /// Kinds of batches whose ops may still come.
    kinds: HashMap<u32, StepKind>,
    /// Whether the last op of a batch so far is an embedding.
    embeds: HashMap<u32, bool>,
    /// Which contexts draft for others.
    drafts: Evidence,
    /// A step that has ended, and when; the smaller model may read its batch next, before the program
    /// goes on.
    unread: Option<(LiveStep, u64)>,
    /// By the call that reads it.
    being_read: HashMap<u32, LiveStep>,
    requests: HashMap<u32, Request>,
    /// Of each sequence of a context.
    request_of: HashMap<(u32, i32), u32>,
    /// The last minute's: when, and how long.
    first_tokens: VecDeque<(u64, u64)>,
    between_tokens: VecDeque<(u64, u64)>,
    /// Steps that ended in the last minute.
    done: VecDeque<Done>,
    /// By the number of a node: its name, and what one call reads and writes.
    rows: Vec<Option<(u32, Option<u64>)>>,
    names: Vec<String>,
    busy: Busy,
    last_run_end_ns: Option<u64>,
    last_look_ns: Option<u64>,
    counters: Counters,
}

#[derive(Debug, Clone)]
struct LiveStep {
    context: u32,
    start_ns: u64,
    tokens: u64,
    /// Tokens that are read, and that sequences are further than before.
    prompt: u64,
    generated: u64,
    parts: Vec<Part>,
    is_counted: bool,
    gives_tokens: bool,
}

#[derive(Debug, Clone, Copy)]
struct Done {
    start_ns: u64,
    end_ns: u64,
    prompt: u64,
    generated: u64,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    context: u32,
    start_ns: u64,
    last_ns: u64,
    has_token: bool,
    /// Its sequence is another request's.
    is_over: bool,
    /// Its prompt was seen.
    is_whole: bool,
    next: u64,
    /// The position of its prompt's last token, or of the token it went on with last.
    position: u64,
}

/// Calls of an op.
#[derive(Debug, Default, Clone)]
struct Sum {
    count: u64,
    total_ns: u64,
    bytes: u64,
    /// Calls of which the bytes are not known.
    unknown: u64,
}

impl Sum {
    fn add(&mut self, duration_ns: u64, bytes: Option<u64>) {
        self.count += 1;
        self.total_ns += duration_ns;
        self.unknown += u64::from(bytes.is_none());
        self.bytes += bytes.unwrap_or(0);
    }
}

/// What a program does: the time between two looks, about a second, unless something else is said. The
/// first one is of the last minute, or of as much of it as there is, and its ops of all that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub standing: Standing,
    pub now_ns: u64,
    pub interval_ns: u64,
    /// Whether batches of libllama are seen; otherwise tokens are not known.
    pub knows_tokens: bool,
    /// Tokens a second of the steps that ended; where one took longer than the interval, over that.
    pub prompt_speed: f64,
    pub generation_speed: f64,
    pub runs: u64,
    /// The longest of them, or of what is under way.
    pub longest_run_ns: u64,
    /// When that one began.
    pub longest_run_start_ns: Option<u64>,
    pub requests: u64,
    /// Mean over the steps that ended.
    pub batch_tokens: Option<f64>,
    /// Tokens of the oldest batch that is being computed, and for how long.
    pub under_way: Option<(u64, u64)>,
    /// Tokens of the longest sequence under way.
    pub depth: Option<u64>,
    /// Median and 95th percentile of the last minute.
    pub first_token_ns: Option<(u64, u64)>,
    pub between_tokens_ns: Option<(u64, u64)>,
    /// The longest time that a sequence waited for its next token; where sequences are not known,
    /// that lay between two graph runs.
    pub longest_gap_ns: u64,
    pub backends: Vec<BackendNow>,
    /// Longest first.
    pub ops: Vec<OpNow>,
    pub copied_bytes: u64,
    /// What the machine's sensors said last; whoever reads them adds it.
    pub readings: Vec<Reading>,
}

/// What a sensor of the machine said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub quantity: Quantity,
    /// The system's number of the device.
    pub device: u32,
    pub name: String,
    pub value: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BackendNow {
    pub name: String,
    /// Shares of the interval; not known where only the starts of work are.
    pub busy: Option<f64>,
    pub copying: f64,
    pub idle: Idle,
}

/// What went on while a backend neither computed nor copied, in shares of the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Idle {
    /// Another backend worked.
    pub elsewhere: f64,
    /// None did, in a graph run or a call of libllama: graphs are built, scheduled and launched.
    pub between_ops: f64,
    /// The program did something else, or nothing.
    pub outside: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OpNow {
    pub name: String,
    pub backend: String,
    pub kind: StepKind,
    pub count: u64,
    pub total_ns: u64,
    /// Bytes that were read and written, as far as that follows from the shapes.
    pub bytes: Option<u64>,
}

impl OpNow {
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        self.bytes.filter(|_| self.total_ns > 0).map(|bytes| bytes as f64 / self.total_ns as f64)
    }
}

/// From when on the first look is: that of the first thing that was seen, if it is not long ago.
fn seen_since(news: &News, now_ns: u64) -> u64 {
    let runs = news.runs.first().map(|(start_ns, _)| *start_ns);
    let batches = news.begun.first().map(|batch| batch.start_ns);
    let first = [runs, news.run_since_ns, batches].into_iter().flatten().min();
    let before = |ns: u64| now_ns.saturating_sub(ns);
    first.map_or(before(SECOND_NS), |first| first.max(before(WINDOW_NS)))
}

impl Watch {
    /// What was done since the first look.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes what is new at `now_ns` of the same clock; what the program does now.
    pub fn take(&mut self, descriptions: &Trace, news: News, now_ns: u64) -> Frame {
        let is_first = self.last_look_ns.is_none();
        let before_ns = self.last_look_ns.unwrap_or_else(|| seen_since(&news, now_ns));
        let interval_ns = now_ns.saturating_sub(before_ns).max(1);
        self.last_look_ns = Some(now_ns);
        self.note_embeddings(descriptions, &news);
        let longest_gap_ns = self.steps(&news);
        let run_gap_ns = self.gap_between_runs(&news);
        self.forget(now_ns);
        let ops = self.ops(descriptions, &news);
        let inside = self.inside(&news, now_ns);
        let window = (before_ns.min(now_ns), now_ns);
        let backends = self.busy.take(descriptions, &news, &inside, window, &mut self.counters);
        let knows_tokens = self.counters.batches > 0;
        let since = |done: &&Done| done.end_ns > before_ns;
        let recent: Vec<Done> = self.done.iter().filter(since).copied().collect();
        let tokens: u64 = recent.iter().map(|step| step.prompt + step.generated).sum();
        let is_of_it = |end_ns: u64| !is_first || end_ns > before_ns;
        let ended = news.runs.iter().copied().filter(|(_, end)| is_of_it(*end));
        let copies = news.copies.iter().filter(|copy| is_of_it(copy.end_ns));
        let under_way = news.run_since_ns.map(|since| (since, now_ns));
        let runs = ended.clone().chain(under_way);
        let longest = runs.map(|(start, end)| (end.saturating_sub(start), start)).max();
        self.counters.missed_blocks = news.standing.missed_blocks;
        self.counters.graph_runs = news.standing.graph_runs;
        self.counters.dropped.clone_from(&news.standing.dropped);
        Frame {
            now_ns,
            interval_ns,
            knows_tokens,
            prompt_speed: speed(&recent, |step| step.prompt, now_ns, interval_ns),
            generation_speed: speed(&recent, |step| step.generated, now_ns, interval_ns),
            runs: ended.count() as u64,
            longest_run_ns: longest.map_or(0, |(ns, _)| ns),
            longest_run_start_ns: longest.map(|(_, start_ns)| start_ns),
            requests: self.requests_under_way(now_ns),
            batch_tokens: (!recent.is_empty()).then(|| tokens as f64 / recent.len() as f64),
            under_way: self.under_way(now_ns),
            depth: self.depth(now_ns),
            first_token_ns: percentiles(&self.first_tokens),
            between_tokens_ns: percentiles(&self.between_tokens),
            longest_gap_ns: if knows_tokens { longest_gap_ns } else { run_gap_ns },
            backends,
            ops,
            copied_bytes: copies.map(|copy| copy.bytes).sum(),
            readings: Vec::new(),
            standing: news.standing,
        }
    }

    /// When graphs ran and libllama was called.
    fn inside(&self, news: &News, now_ns: u64) -> Vec<(u64, u64)> {
        let steps = self.done.iter().map(|step| (step.start_ns, step.end_ns));
        let open = self.open.values().map(|step| (step.start_ns, now_ns));
        let run = news.run_since_ns.map(|since_ns| (since_ns, now_ns));
        let mut inside: Vec<(u64, u64)> =
            news.runs.iter().copied().chain(run).chain(steps).chain(open).collect();
        inside.sort_unstable();
        inside
    }

    /// Tokens a second that were generated in the last so many nanoseconds; `None` unless something
    /// was, from the begin to the end of that time.
    pub fn generation_over(&self, span_ns: u64, now_ns: u64) -> Option<f64> {
        let from_ns = now_ns.saturating_sub(span_ns);
        let generating = || self.done.iter().filter(|step| step.generated > 0);
        let began =
            generating().any(|step| step.end_ns <= from_ns && step.end_ns + span_ns > from_ns);
        let goes_on = self.requests_under_way(now_ns) > 0;
        let tokens: u64 =
            generating().filter(|step| step.end_ns > from_ns).map(|step| step.generated).sum();
        (began && goes_on).then(|| tokens as f64 * 1e9 / span_ns as f64)
    }

    /// Begins and ends of steps in the order of time; the longest wait of a sequence.
    fn steps(&mut self, news: &News) -> u64 {
        let mut changes = news.changes.iter().peekable();
        let mut ended = news.ended.clone();
        ended.sort_unstable_by_key(|(_, end_ns)| *end_ns);
        let mut ended = ended.into_iter().peekable();
        let mut longest_ns = 0;
        for batch in &news.begun {
            while let Some((call, end_ns)) = ended.next_if(|(_, end_ns)| *end_ns <= batch.start_ns)
            {
                longest_ns = longest_ns.max(self.end_step(call, end_ns));
            }
            while let Some(change) = changes.next_if(|change| change.at_ns <= batch.start_ns) {
                self.sequences.change(change);
            }
            longest_ns = longest_ns.max(self.begin_step(batch, news.standing.is_partial));
        }
        if news.begun.is_empty() {
            longest_ns = longest_ns.max(self.nobody_reads());
        }
        changes.for_each(|change| drop(self.sequences.change(change)));
        ended.fold(longest_ns, |longest, (call, end_ns)| longest.max(self.end_step(call, end_ns)))
    }

    /// What a batch gives is told by its ops, which may come before its end is known, and by what the
    /// program looks at then.
    fn note_embeddings(&mut self, descriptions: &Trace, news: &News) {
        for together in news.ops.chunk_by(|a, b| a.call == b.call) {
            let Some(last) = together.last() else { continue };
            let name = descriptions.tensor_name(last.node);
            self.embeds.insert(last.call, name.is_some_and(is_embedding));
        }
        for change in &news.changes {
            if let ContextChangeKind::EmbeddingsRead { call } = change.what {
                self.embeds.insert(call, true);
            }
        }
    }

    /// The longest time that a sequence had waited for a step that nobody reads.
    fn begin_step(&mut self, batch: &Batch, is_partial: bool) -> u64 {
        self.counters.batches += 1;
        let is_known = self.contexts.contains(&batch.context);
        if !is_known {
            self.contexts.push(batch.context);
        }
        let turn = self.sequences.take(batch, is_partial && !is_known);
        self.conclude_first(batch.context, &turn);
        let tokens = batch.tokens.map_or(0, u64::from);
        let encodes = batch.function == BatchFunction::Encode;
        let kind = match encodes {
            true => StepKind::Encoding,
            false => kind_of(&turn.parts, batch.tokens.map(u64::from)),
        };
        let drafts = self.drafts(batch.context, &turn.parts);
        let mut generated = if kind == StepKind::Generation { tokens } else { 0 };
        if !turn.parts.is_empty() {
            let named = batch.sequences.iter().filter(|entry| entry.sequence >= 0);
            let with_parts = named.zip(&turn.parts).filter(|_| !drafts);
            generated = with_parts
                .map(|(entry, part)| {
                    self.go_on((batch.context, entry.sequence), part, batch.start_ns)
                })
                .sum();
        }
        let checked = turn.parts.iter().filter(|part| part.is_generated());
        let checked: u64 = checked.map(|part| part.tokens).sum();
        let prompt = match turn.parts.is_empty() {
            true => tokens.saturating_sub(generated),
            false => tokens.saturating_sub(checked),
        };
        self.kinds.insert(batch.call, kind);
        // A context computes one batch at a time: of an older one the end was not seen.
        self.open.retain(|_, step| step.context != batch.context);
        let step = LiveStep {
            context: batch.context,
            start_ns: batch.start_ns,
            tokens,
            prompt: if encodes { tokens } else { prompt },
            generated: if encodes { 0 } else { generated },
            parts: turn.parts,
            is_counted: !turn.is_warm_up && !drafts,
            gives_tokens: !encodes,
        };
        let read = self.unread.take_if(|(unread, _)| drafts && follows(&step.parts, &unread.parts));
        self.being_read.extend(read.map(|(read, _)| (batch.call, read)));
        self.open.insert(batch.call, step);
        self.nobody_reads()
    }

    /// The memory is cleared behind a trial.
    fn conclude_first(&mut self, context: u32, turn: &Turn) {
        if turn.is_untried {
            self.first.insert(context, None);
        }
        let first = self.first.get_mut(&context).and_then(Option::take);
        match first {
            // What follows may be another one.
            Some(_) if turn.is_after_clear => _ = self.first.remove(&context),
            Some((step, end_ns)) => _ = self.account(step, end_ns),
            None => {}
        }
    }

    /// The last step is over as it is.
    fn nobody_reads(&mut self) -> u64 {
        self.unread.take().map_or(0, |(step, end_ns)| self.account(step, end_ns))
    }

    /// Whether a context drafts for another. That is known from the second time on.
    fn drafts(&mut self, context: u32, parts: &[Part]) -> bool {
        self.drafts.take(Stream::Context(context), parts);
        let drafts = self.drafts.drafting().contains_key(&Stream::Context(context));
        if drafts {
            self.request_of.retain(|(of, _), _| *of != context);
            self.requests.retain(|_, request| request.context != context);
        }
        drafts
    }

    /// A sequence is computed, of the same request as before or of another. How many tokens it is
    /// further: where a smaller model guessed right, several.
    fn go_on(&mut self, sequence: (u32, i32), part: &Part, start_ns: u64) -> u64 {
        let before = self.request_of.insert(sequence, part.request);
        if let Some(before) = before.filter(|before| *before != part.request)
            && let Some(request) = self.requests.get_mut(&before)
        {
            request.is_over = true;
        }
        let request = self.requests.entry(part.request).or_insert(Request {
            context: sequence.0,
            start_ns,
            last_ns: start_ns,
            has_token: false,
            is_over: false,
            is_whole: !part.began_before,
            next: 0,
            position: part.first.saturating_sub(1),
        });
        request.next = part.first + part.tokens;
        let ahead = part.first.saturating_sub(request.position).max(1);
        let last = part.first + part.tokens.saturating_sub(1);
        request.position = if part.role == Role::Generation { part.first } else { last };
        match part.role {
            Role::Generation => ahead,
            Role::Prompt => u64::from(part.is_generated()),
        }
    }

    /// The longest time that one of its sequences had waited.
    fn end_step(&mut self, call: u32, end_ns: u64) -> u64 {
        if let Some(step) = self.being_read.remove(&call) {
            self.open.remove(&call);
            return self.account(step, end_ns);
        }
        let embeds = self.embeds.remove(&call).unwrap_or(false);
        let step = self.open.remove(&call).filter(|step| step.is_counted);
        let Some(mut step) = step else { return 0 };
        if embeds && !goes_on(&step.parts) {
            self.kinds.insert(call, StepKind::Encoding);
            (step.prompt, step.generated, step.gives_tokens) = (step.tokens, 0, false);
        }
        let is_first = !self.first.contains_key(&step.context);
        if is_first && step.tokens <= WARM_UP_TOKENS {
            self.first.insert(step.context, Some((step, end_ns)));
            return 0;
        }
        self.first.insert(step.context, None);
        let context = Stream::Context(step.context);
        if self.drafts.drafting().values().any(|target| *target == context) {
            let longest_ns = self.nobody_reads();
            self.unread = Some((step, end_ns));
            return longest_ns;
        }
        self.account(step, end_ns)
    }

    fn account(&mut self, step: LiveStep, end_ns: u64) -> u64 {
        let mut longest_ns = 0;
        for part in step.parts.iter().filter(|part| part.outputs > 0 && step.gives_tokens) {
            let Some(request) = self.requests.get_mut(&part.request) else { continue };
            if request.has_token && part.role == Role::Generation {
                let waited_ns = end_ns.saturating_sub(request.last_ns);
                longest_ns = longest_ns.max(waited_ns);
                self.between_tokens.push_back((end_ns, waited_ns));
                self.counters.between_tokens.add(waited_ns);
            } else if !request.has_token && request.is_whole {
                let waited_ns = end_ns.saturating_sub(request.start_ns);
                self.first_tokens.push_back((end_ns, waited_ns));
                self.counters.first_token.add(waited_ns);
            }
            request.has_token = true;
        }
        for part in &step.parts {
            if let Some(request) = self.requests.get_mut(&part.request) {
                request.last_ns = end_ns;
            }
        }
        let LiveStep { start_ns, prompt, generated, .. } = step;
        self.counters.prompt_tokens += prompt;
        self.counters.generated_tokens += generated;
        self.done.push_back(Done { start_ns, end_ns, prompt, generated });
        longest_ns
    }

    fn gap_between_runs(&mut self, news: &News) -> u64 {
        let mut longest_ns = 0;
        for (start_ns, end_ns) in &news.runs {
            let last_ns = self.last_run_end_ns.unwrap_or(*start_ns);
            longest_ns = longest_ns.max(start_ns.saturating_sub(last_ns));
            self.last_run_end_ns = Some(last_ns.max(*end_ns));
        }
        longest_ns
    }

    fn forget(&mut self, now_ns: u64) {
        let from_ns = now_ns.saturating_sub(WINDOW_NS);
        for values in [&mut self.first_tokens, &mut self.between_tokens] {
            values.retain(|(at_ns, _)| *at_ns >= from_ns);
        }
        self.done.retain(|step| step.end_ns >= from_ns);
        self.requests.retain(|_, request| request.last_ns >= from_ns);
        let oldest = self.kinds.keys().max().map_or(0, |newest| newest.saturating_sub(10_000));
        self.kinds.retain(|call, _| *call >= oldest);
        self.embeds.retain(|call, _| *call >= oldest);
    }

    fn is_under_way(&self, number: u32, request: &Request, now_ns: u64) -> bool {
        let in_batch =
            self.open.values().any(|step| step.parts.iter().any(|part| part.request == number));
        in_batch || (!request.is_over && request.last_ns + OVER_AFTER_NS > now_ns)
    }

    fn requests_under_way(&self, now_ns: u64) -> u64 {
        let all = self.requests.iter();
        all.filter(|(number, request)| self.is_under_way(**number, request, now_ns)).count() as u64
    }

    fn depth(&self, now_ns: u64) -> Option<u64> {
        let all = self.requests.iter();
        let under_way =
            all.filter(|(number, request)| self.is_under_way(**number, request, now_ns));
        under_way.map(|(_, request)| request.next).max()
    }

    fn under_way(&self, now_ns: u64) -> Option<(u64, u64)> {
        let oldest = self.open.values().min_by_key(|step| step.start_ns)?;
        Some((oldest.tokens, now_ns.saturating_sub(oldest.start_ns)))
    }

    /// Sums by op, backend and kind of step.
    fn ops(&mut self, descriptions: &Trace, news: &News) -> Vec<OpNow> {
        if news.is_renumbered {
            self.rows.clear();
        }
        let mut sums: HashMap<(BackendIndex, StepKind), Vec<Sum>> = HashMap::new();
        // Ops of one call and backend come one after the other.
        for together in news.ops.chunk_by(|a, b| (a.call, a.backend) == (b.call, b.backend)) {
            let kind = self.kinds.get(&together[0].call).copied().unwrap_or(StepKind::Graph);
            let sums = sums.entry((together[0].backend, kind)).or_default();
            for op in together {
                let (row, bytes) = self.row(descriptions, op.node);
                sums.resize(sums.len().max(self.names.len()), Sum::default());
                sums[row as usize].add(op.duration_ns, bytes);
            }
        }
        let rows = sums.into_iter().flat_map(|(key, sums)| {
            sums.into_iter().enumerate().map(move |(row, sum)| (key, row, sum))
        });
        let mut ops: Vec<OpNow> = rows
            .filter(|(_, _, sum)| sum.count > 0)
            .map(|((backend, kind), row, sum)| OpNow {
                name: self.names[row].clone(),
                backend: descriptions.backend(backend).name.clone(),
                kind,
                count: sum.count,
                total_ns: sum.total_ns,
                bytes: (sum.unknown == 0).then_some(sum.bytes),
            })
            .collect();
        ops.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        ops
    }

    /// Which name an op has, and what one call of it reads and writes.
    fn row(&mut self, descriptions: &Trace, node: NodeId) -> (u32, Option<u64>) {
        if let Some(Some(row)) = self.rows.get(node.0 as usize) {
            return *row;
        }
        let signature = descriptions.signature(node);
        let extra = signature.extra.or(signature.sub_op_name);
        let name = descriptions.text(extra.unwrap_or(signature.op));
        let known = self.names.iter().position(|known| known == name);
        let row = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        let row = (row as u32, work_of(descriptions, signature).bytes_moved());
        self.rows.resize(self.rows.len().max(node.0 as usize + 1), None);
        self.rows[node.0 as usize] = Some(row);
        row
    }
}

fn speed(steps: &[Done], tokens: impl Fn(&Done) -> u64, now_ns: u64, interval_ns: u64) -> f64 {
    let counted = || steps.iter().filter(|step| tokens(step) > 0);
    let sum: u64 = counted().map(&tokens).sum();
    let since_ns = counted().map(|step| step.start_ns).min().unwrap_or(now_ns);
    let span_ns = interval_ns.max(now_ns.saturating_sub(since_ns));
    sum as f64 * 1e9 / span_ns as f64
}

fn percentiles(values: &VecDeque<(u64, u64)>) -> Option<(u64, u64)> {
    let mut values: Vec<u64> = values.iter().map(|(_, ns)| *ns).collect();
    (!values.is_empty()).then(|| median_and_p95(&mut values))
}

#[cfg(test)]
mod tests;
