//! Splits of a device that were timed as a whole, because kernels were recorded in samples only. The
//! ops of the other splits of the same kind are known; `estimates.rs` divides the time by them.

use crate::attention::{Attended, cells_of};
use crate::estimates::{Estimate, estimates_by};
use crate::split_kinds::{
    SplitKind, is_whole, kind_of_sampled, kind_of_whole, known_splits, whole_splits,
};
use ggprof_trace::{BackendIndex, Event, StringId, Trace};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;

/// The splits of one backend, those with kernels and those without.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    pub backend: BackendIndex,
    /// Splits whose kernels were recorded.
    pub sampled: u64,
    /// Splits that were timed as a whole, and their time.
    pub whole: u64,
    pub whole_ns: u128,
    /// Of those, the ones without a sample of their kind: nothing is estimated for them.
    pub unlike: u64,
    /// How far the samples that count for others reach; `None` where there is no attention in them.
    pub contexts: Option<Contexts>,
    /// Ops, the one with the longest time first.
    pub ops: Vec<SampledOp>,
}

/// Splits are of one kind whatever their context, but attention takes longer the more there is to attend
/// to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contexts {
    /// The deepest of the samples, in tokens; padded cells of the cache where positions are not known.
    pub sampled_to: u64,
    /// The deepest of the splits that were timed as a whole; `None` if that is not known.
    pub whole_to: Option<u64>,
}

/// Attention is given so many cells of the cache more at a time.
const CELLS_AT_ONCE: u64 = 256;

impl Contexts {
    /// Whether what was timed as a whole may have had more to attend to than its samples.
    pub fn are_unlike(&self) -> bool {
        let padded = |tokens: u64| tokens.div_ceil(CELLS_AT_ONCE);
        self.whole_to.is_none_or(|whole_to| padded(whole_to) > padded(self.sampled_to))
    }
}

/// One op, measured where it was and estimated where not.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledOp {
    pub op: StringId,
    pub measured_ns: u128,
    pub estimated_ns: f64,
    /// Standard error of the estimate; a single sample has none.
    pub error_ns: Option<f64>,
}

impl Sampling {
    /// The part of all splits whose ops were measured.
    pub fn sampled_share(&self) -> f64 {
        self.sampled as f64 / (self.sampled + self.whole) as f64
    }

    /// What the ops of the whole splits come to.
    pub fn estimated_ns(&self) -> f64 {
        self.ops.iter().map(|op| op.estimated_ns).sum()
    }

    /// Its standard error; errors of ops are taken to be independent.
    pub fn error_ns(&self) -> Option<f64> {
        let estimated = self.ops.iter().filter(|op| op.estimated_ns > 0.0);
        let squares = estimated.map(|op| op.error_ns.map(|error| error.powi(2)));
        squares.sum::<Option<f64>>().map(f64::sqrt)
    }
}

impl SampledOp {
    pub fn total_ns(&self) -> f64 {
        self.measured_ns as f64 + self.estimated_ns
    }
}

/// One entry for each backend with splits that were timed as a whole.
pub fn sampling(trace: &Trace) -> Vec<Sampling> {
    let mut whole: HashMap<SplitKind, u64> = HashMap::new();
    let mut found: Vec<Sampling> = Vec::new();
    for event in whole_splits(trace) {
        *whole.entry(kind_of_whole(trace, &event)).or_default() += 1;
        let known = found.iter().position(|entry| entry.backend == event.backend);
        let place = known.unwrap_or_else(|| {
            found.push(Sampling::of(event.backend));
            found.len() - 1
        });
        found[place].whole += 1;
        found[place].whole_ns += u128::from(event.duration_ns);
    }
    if found.is_empty() {
        return found;
    }
    let kinds: HashSet<SplitKind> = whole.keys().copied().collect();
    let attended = Attended::of(trace);
    let mut measured: HashMap<(BackendIndex, StringId), u128> = HashMap::new();
    for split in known_splits(trace) {
        let Some(kind) = kind_of_sampled(trace, &split) else { continue };
        whole.remove(&kind);
        let is_elsewhere = split.iter().any(|event| event.id.0 as usize >= trace.events.len());
        for event in &split {
            let op = trace.signature(event.node).op;
            let ns = if is_elsewhere { 0 } else { event.charged_ns };
            *measured.entry((event.backend, op)).or_default() += u128::from(ns);
        }
        let Some(entry) = found.iter_mut().find(|entry| entry.backend == kind.0) else { continue };
        entry.sampled += u64::from(!is_elsewhere);
        if let Some(depth) = depth_of(trace, &attended, &split).filter(|_| kinds.contains(&kind)) {
            entry.reach(depth);
        }
    }
    for event in whole_splits(trace) {
        let depth = event.graph_run.and_then(|run| attended.depth(run));
        let entry = found.iter_mut().find(|entry| entry.backend == event.backend);
        if let Some(contexts) = entry.and_then(|entry| entry.contexts.as_mut()) {
            contexts.whole_to = contexts.whole_to.max(depth);
        }
    }
    let estimates = estimates_by(trace, |event| {
        let is_counted = event.is_op() && !is_whole(trace, event);
        is_counted.then(|| (event.backend, trace.signature(event.node).op))
    });
    for entry in &mut found {
        let unlike = whole.iter().filter(|((backend, ..), _)| *backend == entry.backend);
        entry.unlike = unlike.map(|(_, count)| count).sum();
        entry.take_ops(&measured, &estimates);
    }
    found
}

impl Sampling {
    fn of(backend: BackendIndex) -> Self {
        Self {
            backend,
            sampled: 0,
            whole: 0,
            whole_ns: 0,
            unlike: 0,
            contexts: None,
            ops: Vec::new(),
        }
    }

    fn reach(&mut self, depth: u64) {
        let none = Contexts { sampled_to: depth, whole_to: None };
        let contexts = self.contexts.get_or_insert(none);
        contexts.sampled_to = contexts.sampled_to.max(depth);
    }

    fn take_ops(
        &mut self,
        measured: &HashMap<(BackendIndex, StringId), u128>,
        estimates: &HashMap<(BackendIndex, StringId), Estimate>,
    ) {
        let of_it = measured.iter().filter(|((backend, _), _)| *backend == self.backend);
        let op = |(key, &measured_ns): (&(BackendIndex, StringId), &u128)| {
            let estimate = estimates.get(key);
            SampledOp {
                op: key.1,
                measured_ns,
                estimated_ns: estimate.map_or(0.0, |estimate| estimate.ns),
                error_ns: estimate.and_then(|estimate| estimate.error_ns),
            }
        };
        self.ops = of_it.map(op).collect();
        self.ops.sort_by_key(|row| (Reverse(row.total_ns() as u128), row.op));
    }
}

/// How much there was to attend to in a split that has attention.
fn depth_of(trace: &Trace, attended: &Attended, split: &[Event]) -> Option<u64> {
    let cells = split.iter().filter_map(|event| cells_of(trace, event.node)).max()?;
    let is_here = |event: &&Event| (event.id.0 as usize) < trace.events.len();
    let run = split.first().filter(is_here).and_then(|event| event.graph_run);
    Some(run.and_then(|run| attended.depth(run)).unwrap_or(cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimates::tests::TWO_SAMPLES;
    use ggprof_trace::text_fixture;

    #[test]
    fn whole_splits_are_shared_out_like_their_samples() {
        let trace = text_fixture::parse(&format!(
            "{TWO_SAMPLES}
             run 400..600
             op GPU SPLIT 400..520 run=2 measured=device f32[32,1] <- f32[8,1]
             run 600..900
             op GPU SPLIT 600..880 run=3 measured=device f32[32,1] <- f32[8,64]"
        ));
        let [gpu] = &sampling(&trace)[..] else { panic!() };
        assert_eq!((gpu.sampled, gpu.whole, gpu.whole_ns, gpu.unlike), (2, 2, 400, 1));
        let rows: Vec<_> = gpu
            .ops
            .iter()
            .map(|row| (trace.text(row.op), row.measured_ns, row.estimated_ns))
            .collect();
        assert_eq!(rows, [("MUL_MAT", 200, 100.0), ("GET_ROWS", 30, 15.0)]);
        // Two samples of 90 and 110: their mean is off by ten.
        assert!((gpu.ops[0].error_ns.unwrap() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_recording_of_everything_needs_no_estimate() {
        let trace = text_fixture::parse("backend 0 GPU gpu\nop GPU MUL_MAT 0..100 measured=device");
        assert_eq!(sampling(&trace), []);
    }

    #[test]
    fn how_far_samples_of_attention_reach() {
        let contexts = |batches: &str| {
            let trace = text_fixture::parse(&format!(
                "backend 0 GPU gpu
                 {batches}
                 run 0..200 batch=0
                 op GPU FLASH_ATTN_EXT 0..90 a run=0 measured=device f32[8] <- f32[8,1] f16[8,256]
                 op GPU MUL_MAT 90..100 b run=0 measured=device f32[32,1]
                 run 200..400 batch=1
                 op GPU SPLIT 200..350 run=1 measured=device f32[32,1] <- f32[8]"
            ));
            sampling(&trace)[0].contexts.unwrap()
        };
        let known = |position: u64| {
            let of = |at: u64, position| {
                format!("batch {}..{} 0:{position}+1!1\n", at * 200, at * 200 + 200)
            };
            contexts(&[of(0, 9), of(1, position)].concat())
        };
        let far = known(900);
        assert_eq!((far.sampled_to, far.whole_to, far.are_unlike()), (10, Some(901), true));
        let unknown = Contexts { sampled_to: 256, whole_to: None };
        assert!(unknown.are_unlike() && !Contexts { whole_to: Some(256), ..unknown }.are_unlike());
    }
}
