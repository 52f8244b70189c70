//! What a program has done since it is watched, as numbers that only grow.

use ggprof_trace::Dropped;
use std::collections::BTreeMap;

/// More than any machine has; others are counted together.
const MOST_BACKENDS: usize = 64;

#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Calls of libllama.
    pub batches: u64,
    pub graph_runs: u64,
    pub prompt_tokens: u64,
    pub generated_tokens: u64,
    pub first_token: Histogram<{ FIRST_TOKEN.len() }>,
    pub between_tokens: Histogram<{ BETWEEN_TOKENS.len() }>,
    pub backends: BTreeMap<String, OfBackend>,
    pub dropped: Vec<(Dropped, u64)>,
    /// Blocks of a recording of limited size that were used again before they were looked at.
    pub missed_blocks: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfBackend {
    pub busy_ns: u64,
    pub copying_ns: u64,
    pub copied_bytes: u64,
}

/// Upper bounds in seconds, as OpenTelemetry's conventions for generative AI advise.
const FIRST_TOKEN: [f64; 16] =
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const BETWEEN_TOKENS: [f64; 13] =
    [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// How many values lie below each of some bounds, and above all.
#[derive(Debug, Clone)]
pub struct Histogram<const N: usize> {
    pub bounds: [f64; N],
    /// Of those up to each bound that are above the one before.
    pub counts: [u64; N],
    pub count: u64,
    pub sum_ns: u64,
}

impl Default for Histogram<{ FIRST_TOKEN.len() }> {
    fn default() -> Self {
        Self { bounds: FIRST_TOKEN, counts: [0; FIRST_TOKEN.len()], count: 0, sum_ns: 0 }
    }
}

impl Default for Histogram<{ BETWEEN_TOKENS.len() }> {
    fn default() -> Self {
        Self { bounds: BETWEEN_TOKENS, counts: [0; BETWEEN_TOKENS.len()], count: 0, sum_ns: 0 }
    }
}

impl<const N: usize> Histogram<N> {
    pub(super) fn add(&mut self, ns: u64) {
        let seconds = ns as f64 / 1e9;
        if let Some(at) = self.bounds.iter().position(|&bound| seconds <= bound) {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.sum_ns += ns;
    }

    fn add_all(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

impl Counters {
    pub(super) fn of_backend(&mut self, name: &str) -> &mut OfBackend {
        let is_room = self.backends.len() < MOST_BACKENDS || self.backends.contains_key(name);
        let name = if is_room { name } else { "others" };
        self.backends.entry(name.to_owned()).or_default()
    }

    /// Adds what another process of the program did.
    pub fn add_all(&mut self, other: &Counters) {
        self.batches += other.batches;
        self.graph_runs += other.graph_runs;
        self.prompt_tokens += other.prompt_tokens;
        self.generated_tokens += other.generated_tokens;
        self.missed_blocks += other.missed_blocks;
        self.first_token.add_all(&other.first_token);
        self.between_tokens.add_all(&other.between_tokens);
        for (name, more) in &other.backends {
            let sum = self.of_backend(name);
            sum.busy_ns += more.busy_ns;
            sum.copying_ns += more.copying_ns;
            sum.copied_bytes += more.copied_bytes;
        }
        for &(dropped, count) in &other.dropped {
            match self.dropped.iter_mut().find(|(known, _)| *known == dropped) {
                Some((_, sum)) => *sum += count,
                None => self.dropped.push((dropped, count)),
            }
        }
    }
}
