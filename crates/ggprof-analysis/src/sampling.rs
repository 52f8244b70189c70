//! Divides the time of splits that were timed as a whole among their ops. The kernels of these
//! splits were not recorded, but those of other splits of the same kind were. Each op is taken to
//! have cost its average in those, and the variation tells how reliable that is.

use ggprof_trace::{BackendIndex, Event, GraphRunId, Measured, Signature, StringId, Tensor, Trace};
use hashbrown::HashMap;
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
    /// Ops, the one with the longest time first.
    pub ops: Vec<SampledOp>,
}

/// One op, measured where it was and estimated where not.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledOp {
    pub op: StringId,
    pub measured_ns: u128,
    pub estimated_ns: f64,
    /// Standard error of the estimate.
    pub error_ns: f64,
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
    pub fn error_ns(&self) -> f64 {
        self.ops.iter().map(|op| op.error_ns.powi(2)).sum::<f64>().sqrt()
    }
}

impl SampledOp {
    pub fn total_ns(&self) -> f64 {
        self.measured_ns as f64 + self.estimated_ns
    }
}

/// What a split computes: its backend, the output of its first op and of its last.
pub(crate) type Kind = (BackendIndex, Tensor, Tensor);

/// The samples of one kind.
#[derive(Default)]
struct Samples {
    splits: u64,
    whole: u64,
    whole_ns: f64,
    /// Sum of the op's time in each split, and of its square.
    ops: HashMap<StringId, (f64, f64)>,
}

/// One entry for each backend with splits that were timed as a whole.
pub fn sampling(trace: &Trace) -> Vec<Sampling> {
    let mut kinds: HashMap<Kind, Samples> = HashMap::new();
    let mut found: Vec<Sampling> = Vec::new();
    for event in trace.events.iter().filter(|event| is_whole(trace, event)) {
        let samples = kinds.entry(kind_of_whole(trace, &event)).or_default();
        samples.whole += 1;
        samples.whole_ns += event.duration_ns as f64;
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
    for split in sampled_splits(trace) {
        take(trace, &split, &mut kinds);
    }
    for entry in &mut found {
        entry.estimate(&kinds);
    }
    found
}

/// Runs that were timed as a whole, each with one of the same kind whose ops are known.
pub(crate) fn runs_like_sampled(trace: &Trace) -> Vec<(GraphRunId, GraphRunId)> {
    let mut whole = trace.events.iter().filter(|event| is_whole(trace, event)).peekable();
    if whole.peek().is_none() {
        return Vec::new();
    }
    let splits = sampled_splits(trace);
    let sampled: HashMap<Kind, GraphRunId> = splits
        .iter()
        .filter_map(|split| Some((kind_of_sampled(trace, split)?, split.first()?.graph_run?)))
        .collect();
    whole
        .filter_map(|event| Some((event.graph_run?, *sampled.get(&kind_of_whole(trace, &event))?)))
        .collect()
}

pub(crate) fn kind_of_whole(trace: &Trace, event: &Event) -> Kind {
    let signature = trace.signature(event.node);
    let first = signature.sources.first().map_or(Tensor::UNKNOWN, |source| source.tensor);
    (event.backend, first, signature.output)
}

pub(crate) fn kind_of_sampled(trace: &Trace, split: &[Event]) -> Option<Kind> {
    let mut outputs =
        split.iter().map(|event| trace.signature(event.node).output).filter(Tensor::is_known);
    let first = outputs.next()?;
    Some((split.first()?.backend, first, outputs.next_back().unwrap_or(first)))
}

pub(crate) fn is_whole(trace: &Trace, event: &Event) -> bool {
    event.measured == Measured::Device
        && trace.text(trace.signature(event.node).op) == Signature::WHOLE_SPLIT
}

/// The events of each split that a device computed op by op, in the order of the ops.
pub(crate) fn sampled_splits(trace: &Trace) -> Vec<Vec<Event>> {
    let mut splits: Vec<Vec<Event>> = Vec::new();
    let mut place: HashMap<_, usize> = HashMap::new();
    let by_device = |event: &Event| {
        matches!(event.measured, Measured::Device | Measured::Modelled) && event.is_op()
    };
    for event in trace.events.iter().filter(by_device) {
        let Some(run) = event.graph_run.filter(|_| !is_whole(trace, &event)) else { continue };
        let at = *place.entry((run, event.split, event.backend)).or_insert_with(|| {
            splits.push(Vec::new());
            splits.len() - 1
        });
        splits[at].push(event);
    }
    splits
}

fn take(trace: &Trace, split: &[Event], kinds: &mut HashMap<Kind, Samples>) {
    let Some(kind) = kind_of_sampled(trace, split) else { return };
    let samples = kinds.entry(kind).or_default();
    samples.splits += 1;
    let mut sums: HashMap<StringId, u64> = HashMap::new();
    for event in split {
        *sums.entry(trace.signature(event.node).op).or_default() += event.charged_ns;
    }
    for (op, ns) in sums {
        let (sum, squares) = samples.ops.entry(op).or_default();
        *sum += ns as f64;
        *squares += (ns as f64).powi(2);
    }
}

impl Sampling {
    fn of(backend: BackendIndex) -> Self {
        Self { backend, sampled: 0, whole: 0, whole_ns: 0, unlike: 0, ops: Vec::new() }
    }

    fn estimate(&mut self, kinds: &HashMap<Kind, Samples>) {
        let mut ops: HashMap<StringId, SampledOp> = HashMap::new();
        for (_, samples) in kinds.iter().filter(|((backend, ..), _)| *backend == self.backend) {
            self.sampled += samples.splits;
            if samples.splits == 0 {
                self.unlike += samples.whole;
            }
            let (n, whole) = (samples.splits as f64, samples.whole as f64);
            // Kernels take a little longer while they are traced. What is known exactly,
            // the time of the splits, is the most they can have taken.
            let all: f64 = samples.ops.values().map(|(sum, _)| sum / n * whole).sum();
            let scale = if all > samples.whole_ns { samples.whole_ns / all } else { 1.0 };
            for (&op, &(sum, squares)) in &samples.ops {
                let row = ops.entry(op).or_insert(SampledOp {
                    op,
                    measured_ns: 0,
                    estimated_ns: 0.0,
                    error_ns: 0.0,
                });
                let mean = sum / n;
                let variance = (squares / n - mean * mean).max(0.0);
                row.measured_ns += sum as u128;
                row.estimated_ns += mean * whole * scale;
                let error = (variance / n).sqrt() * whole * scale;
                row.error_ns = row.error_ns.hypot(error);
            }
        }
        self.ops = ops.into_values().collect();
        self.ops.sort_by_key(|row| (Reverse(row.total_ns() as u128), row.op));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn whole_splits_are_shared_out_like_their_samples() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..200
             op GPU GET_ROWS 0..10 run=0 measured=device f32[8,1]
             op GPU MUL_MAT 10..100 run=0 measured=device f32[32,1]
             run 200..400
             op GPU GET_ROWS 200..220 run=1 measured=device f32[8,1]
             op GPU MUL_MAT 220..330 run=1 measured=device f32[32,1]
             run 400..600
             op GPU SPLIT 400..520 run=2 measured=device f32[32,1] <- f32[8,1]
             run 600..900
             op GPU SPLIT 600..880 run=3 measured=device f32[32,1] <- f32[8,64]",
        );
        let [gpu] = &sampling(&trace)[..] else { panic!() };
        assert_eq!((gpu.sampled, gpu.whole, gpu.whole_ns, gpu.unlike), (2, 2, 400, 1));
        let rows: Vec<_> = gpu
            .ops
            .iter()
            .map(|row| (trace.text(row.op), row.measured_ns, row.estimated_ns))
            .collect();
        assert_eq!(rows, [("MUL_MAT", 200, 100.0), ("GET_ROWS", 30, 15.0)]);
        assert!((gpu.ops[0].error_ns - 50_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_recording_of_everything_needs_no_estimate() {
        let trace = text_fixture::parse("backend 0 GPU gpu\nop GPU MUL_MAT 0..100 measured=device");
        assert_eq!(sampling(&trace), []);
    }
}
