//! A program while it runs: from what is new at each look to what it does now, and what it has done
//! since it is watched. Whole recordings are read by other files, because they know what comes after:
//! `steps.rs`, `requests.rs`, `warm_up.rs`. What a batch means for its sequences is decided in
//! `sequences.rs` for both, and who drafts for whom in `drafts.rs`.

use ggprof_trace::Trace;
use ggprof_trace::formats::spool::News;

mod busy;
mod counters;
mod done;
mod first_token;
mod frame;
mod kinds;
mod ops;
mod requests;
mod runs;
mod steps;
mod trials;

use busy::Busy;
pub use counters::{Counters, Histogram, OfBackend};
use done::speed;
pub use frame::{BackendNow, Frame, Idle, LiveWait, OpNow, Reading};
use ops::LiveOps;
use runs::Runs;
use steps::LiveSteps;

const SECOND_NS: u64 = 1_000_000_000;
/// What percentiles are of.
const WINDOW_NS: u64 = 60 * SECOND_NS;

/// Follows a program from look to look.
#[derive(Debug, Default)]
pub struct Watch {
    steps: LiveSteps,
    runs: Runs,
    ops: LiveOps,
    busy: Busy,
    last_look_ns: Option<u64>,
    counters: Counters,
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
        let longest_gap = self.longest_gap(descriptions, &news, now_ns);
        self.steps.forget(now_ns, news.standing.has_ended, &mut self.counters);
        let ops = self.ops.take(descriptions, &news, |call| self.steps.kinds.of(call));
        let inside = self.inside(&news, now_ns);
        let window = (before_ns.min(now_ns), now_ns);
        let backends = self.busy.take(descriptions, &news, &inside, window, &mut self.counters);
        self.count(&news);
        // There is more to see at the first look than its interval. Later, what is told of belongs to the look
        // that tells of it, whenever it ended: reading takes a moment, and devices tell later.
        let is_of_it = |end_ns: u64| !is_first || end_ns > before_ns;
        let mut recent = self.steps.done.take_told();
        recent.retain(|step| is_of_it(step.end_ns));
        let tokens: u64 = recent.iter().map(|step| step.prompt + step.generated).sum();
        let ended = || news.runs.iter().copied().filter(|(_, end)| is_of_it(*end));
        let longest_run = runs::longest(ended(), &news, now_ns);
        let copies = news.copies.iter().filter(|copy| is_of_it(copy.end_ns));
        let [first_token_ns, between_tokens_ns] = self.steps.requests.percentiles();
        let (requests, depth) = self.requests_under_way(now_ns);
        let under_way = self.steps.under_way();
        Frame {
            now_ns,
            interval_ns,
            knows_tokens: self.counters.batches > 0,
            prompt_speed: speed(&recent, |step| step.prompt, now_ns, interval_ns),
            generation_speed: speed(&recent, |step| step.generated, now_ns, interval_ns),
            runs: ended().count() as u64,
            longest_run,
            requests,
            batch_tokens: (!recent.is_empty()).then(|| tokens as f64 / recent.len() as f64),
            under_way: under_way.map(|(start, tokens)| (tokens, now_ns.saturating_sub(start))),
            depth,
            first_token_ns,
            between_tokens_ns,
            longest_gap,
            backends,
            ops,
            copied_bytes: copies.map(|copy| copy.bytes).sum(),
            readings: Vec::new(),
            standing: news.standing,
        }
    }

    /// Of a sequence that waited for its next token; where sequences are not known, between two graph
    /// runs. It may go on.
    fn longest_gap(&mut self, descriptions: &Trace, news: &News, now_ns: u64) -> LiveWait {
        let of_steps = self.steps.take(descriptions, news, &mut self.counters);
        let of_runs = self.runs.longest_gap(news, now_ns);
        if !news.standing.is_recording {
            self.steps.requests.interrupt(now_ns, &mut self.counters);
        }
        match self.counters.batches > 0 {
            true if news.standing.is_going_on() => of_steps.max(self.steps.waiting(now_ns)),
            true => of_steps,
            false => of_runs,
        }
    }

    fn count(&mut self, news: &News) {
        self.counters.missed_blocks = news.standing.missed_blocks;
        self.counters.graph_runs = news.standing.graph_runs;
        self.counters.dropped.clone_from(&news.standing.dropped);
    }

    /// When graphs ran and libllama was called.
    fn inside(&self, news: &News, now_ns: u64) -> Vec<(u64, u64)> {
        let open = self.steps.begun().map(|start_ns| (start_ns, now_ns));
        let run = news.run_since_ns.map(|since_ns| (since_ns, now_ns));
        let runs = news.runs.iter().copied().chain(run);
        let mut inside: Vec<(u64, u64)> = runs.chain(self.steps.done.spans()).chain(open).collect();
        inside.sort_unstable();
        inside
    }

    /// Tokens a second that were generated in the last so many nanoseconds; `None` unless something
    /// was, from the begin to the end of that time.
    pub fn generation_over(&self, span_ns: u64, now_ns: u64) -> Option<f64> {
        let goes_on = self.requests_under_way(now_ns).0 > 0;
        let from_ns = now_ns.saturating_sub(span_ns);
        self.steps.done.generation_since(from_ns, span_ns).filter(|_| goes_on)
    }

    /// How many requests are under way, and how long the longest one is.
    fn requests_under_way(&self, now_ns: u64) -> (u64, Option<u64>) {
        self.steps.requests.under_way(now_ns, &self.steps.computed())
    }
}

#[cfg(test)]
mod tests;
