//! Time that was not measured op by op, divided by what was.
//!
//! A split of a device that was timed as a whole is divided among the ops that other splits of its
//! kind have, each by its mean in those. A copy of which only the call was timed, which tells nothing
//! of the device, is taken to be as long as copies of its kind that the device timed. How the samples
//! vary tells how far an estimate can be trusted.

use crate::sampling::{self, Kind, kind_of_sampled, kind_of_whole, sampled_splits};
use ggprof_trace::{BackendIndex, Event, EventKind, GraphRunId, Measured, StringId, Trace};
use hashbrown::HashMap;
use std::hash::Hash;

/// What is estimated beyond what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Below zero for the splits whose time was given to their ops.
    pub ns: f64,
    /// Its standard error, by the variance of the samples; a single sample has none.
    pub error_ns: Option<f64>,
    /// How many calls there were, in addition to those that were measured.
    pub calls: f64,
}

/// For each key what the events that have it are estimated to have taken where they were not
/// measured. A key may depend on an event's graph run: it is asked for as if the sampled events had
/// happened in the runs that were not sampled.
pub fn estimates_by<K: Hash + Eq + Clone>(
    trace: &Trace,
    mut key_of: impl FnMut(&Event) -> Option<K>,
) -> HashMap<K, Estimate> {
    let mut sums = Sums::default();
    whole_splits(trace, &mut key_of, &mut sums);
    copies(trace, &mut key_of, &mut sums);
    sums.finish()
}

/// Which copies a device timed, and how long they took.
#[derive(Debug, Default)]
pub struct CopyTimes {
    kinds: HashMap<CopyKind, Samples>,
}

/// Copies of about one size in one direction take about the same time: the size is known by the
/// number of its bits.
type CopyKind = (BackendIndex, StringId, u32);

impl CopyTimes {
    pub fn of(trace: &Trace) -> Self {
        let mut kinds: HashMap<CopyKind, Samples> = HashMap::new();
        let timed = |event: &Event| event.measured == Measured::Device;
        for event in trace.events.copies().filter(timed) {
            kinds.entry(kind_of_copy(trace, &event)).or_default().add(event.charged_ns as f64);
        }
        Self { kinds }
    }

    /// Whether only a call is known of a copy. A call that waits for the copy has it in its time,
    /// but where the device times such copies itself, it takes much less than the call.
    pub fn is_untimed(&self, event: &Event) -> bool {
        let device_times_others = || self.kinds.keys().any(|kind| kind.0 == event.backend);
        event.kind == EventKind::Copy
            && match event.measured {
                Measured::HostCall => true,
                Measured::Host => device_times_others(),
                _ => false,
            }
    }

    /// How long a device takes for a copy like this one, if it timed others.
    pub fn mean_ns(&self, trace: &Trace, event: &Event) -> Option<f64> {
        self.samples(kind_of_copy(trace, event)).map(Samples::mean)
    }

    /// Copies of the same size, or else of the next smaller or larger one.
    fn samples(&self, (backend, op, bits): CopyKind) -> Option<&Samples> {
        let sizes = [Some(bits), bits.checked_sub(1), bits.checked_add(1)];
        sizes.into_iter().flatten().find_map(|bits| self.kinds.get(&(backend, op, bits)))
    }
}

fn kind_of_copy(trace: &Trace, event: &Event) -> CopyKind {
    let bits = u64::BITS - event.bytes.leading_zeros();
    (event.backend, trace.signature(event.node).op, bits)
}

/// Values that were measured, as far as mean and error need them.
#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Samples {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// The variance of the mean; `None` for a single sample.
    fn variance_of_mean(&self) -> Option<f64> {
        let more = self.count - 1.0;
        let squares = (self.squares - self.sum * self.mean()).max(0.0);
        (more > 0.0).then(|| squares / more / self.count)
    }
}

/// Estimates while they are added up.
struct Sums<K>(HashMap<K, Sum>);

struct Sum {
    ns: f64,
    calls: f64,
    /// `None` if it is unknown for one of the parts.
    variance: Option<f64>,
}

impl<K> Default for Sums<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Sums<K> {
    fn add(&mut self, key: K, ns: f64, calls: f64, variance: Option<f64>) {
        let none = Sum { ns: 0.0, calls: 0.0, variance: Some(0.0) };
        let sum = self.0.entry(key).or_insert(none);
        sum.ns += ns;
        sum.calls += calls;
        sum.variance = sum.variance.zip(variance).map(|(one, other)| one + other);
    }

    fn finish(self) -> HashMap<K, Estimate> {
        // What was taken from a group and given back to it is exact.
        let counts = self.0.into_iter().filter(|(_, sum)| sum.ns.abs() >= 0.5);
        let finish = |(key, sum): (K, Sum)| {
            // Whole nanoseconds do not depend on the order in which parts were added.
            let error_ns = sum.variance.filter(|_| sum.ns > 0.0).map(|it| it.sqrt().round());
            (key, Estimate { ns: sum.ns.round(), error_ns, calls: sum.calls })
        };
        counts.map(finish).collect()
    }
}

/// Whole splits of one kind that have one key.
struct Class {
    run: Option<GraphRunId>,
    count: f64,
    whole_ns: f64,
}

fn whole_splits<K: Hash + Eq + Clone>(
    trace: &Trace,
    key_of: &mut impl FnMut(&Event) -> Option<K>,
    sums: &mut Sums<K>,
) {
    let mut classes: HashMap<(Kind, Option<K>), Class> = HashMap::new();
    for event in sampling::whole_splits(trace) {
        let none = Class { run: event.graph_run, count: 0.0, whole_ns: 0.0 };
        let key = (kind_of_whole(trace, &event), key_of(&event));
        let class = classes.entry(key).or_insert(none);
        class.count += 1.0;
        class.whole_ns += event.duration_ns as f64;
    }
    if classes.is_empty() {
        return;
    }
    let mut samples: HashMap<Kind, Vec<Vec<Event>>> = HashMap::new();
    for split in sampled_splits(trace) {
        if let Some(kind) = kind_of_sampled(trace, &split) {
            samples.entry(kind).or_default().push(split);
        }
    }
    for ((kind, key), class) in classes {
        let Some(splits) = samples.get(&kind) else { continue };
        let shared_ns = class.share_out(splits, key_of, sums);
        if let Some(key) = key {
            sums.add(key, -shared_ns, 0.0, Some(0.0));
        }
    }
}

impl Class {
    /// Divides the time of the class among the ops of its samples; how much of it.
    fn share_out<K: Hash + Eq + Clone>(
        &self,
        splits: &[Vec<Event>],
        key_of: &mut impl FnMut(&Event) -> Option<K>,
        sums: &mut Sums<K>,
    ) -> f64 {
        let mut keys: HashMap<K, (Samples, f64)> = HashMap::new();
        let mut all_ns = 0.0;
        for split in splits {
            let mut in_split: HashMap<K, f64> = HashMap::new();
            for event in split {
                all_ns += event.charged_ns as f64;
                if let Some(key) = key_of(&Event { graph_run: self.run, ..*event }) {
                    keys.entry(key.clone()).or_default().1 += 1.0;
                    *in_split.entry(key).or_default() += event.charged_ns as f64;
                }
            }
            for (key, ns) in in_split {
                keys.entry(key).or_default().0.add(ns);
            }
        }
        // Kernels take a little longer while they are traced. What is known exactly, the time of
        // the splits, is the most they can have taken.
        let n = splits.len() as f64;
        let all_ns = all_ns / n * self.count;
        let scale = if all_ns > self.whole_ns { self.whole_ns / all_ns } else { 1.0 };
        for (key, (mut samples, calls)) in keys {
            // Splits without it are samples of nothing.
            samples.count = n;
            let factor = self.count * scale;
            let variance = samples.variance_of_mean().map(|variance| variance * factor * factor);
            sums.add(key, samples.mean() * factor, calls / n * self.count, variance);
        }
        all_ns * scale
    }
}

fn copies<K: Hash + Eq + Clone>(
    trace: &Trace,
    key_of: &mut impl FnMut(&Event) -> Option<K>,
    sums: &mut Sums<K>,
) {
    let times = CopyTimes::of(trace);
    if times.kinds.is_empty() {
        return;
    }
    // Copies of one kind have the same error: it adds up over the kind, not over single copies.
    let mut counts: HashMap<(K, CopyKind), f64> = HashMap::new();
    for event in trace.events.copies().filter(|event| times.is_untimed(event)) {
        let kind = kind_of_copy(trace, &event);
        if let Some(key) = key_of(&event).filter(|_| times.samples(kind).is_some()) {
            *counts.entry((key, kind)).or_default() += 1.0;
        }
    }
    for ((key, kind), count) in counts {
        let Some(samples) = times.samples(kind) else { continue };
        let variance = samples.variance_of_mean().map(|variance| variance * count * count);
        // They are counted already, as calls that were seen.
        sums.add(key, samples.mean() * count, 0.0, variance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    const SAMPLED: &str = "
        backend 0 GPU gpu
        run 0..200
        op GPU GET_ROWS 0..10 run=0 measured=device f32[8,1]
        op GPU MUL_MAT 10..100 run=0 measured=device f32[32,1]
        run 200..400
        op GPU GET_ROWS 200..220 run=1 measured=device f32[8,1]
        op GPU MUL_MAT 220..330 run=1 measured=device f32[32,1]
        run 400..600
        op GPU SPLIT 400..550 run=2 measured=device f32[32,1] <- f32[8,1]
        run 600..900
        op GPU SPLIT 600..750 run=3 measured=device f32[32,1] <- f32[8,1]";

    fn by_op(text: &str) -> Vec<(String, f64, Option<f64>, f64)> {
        let trace = text_fixture::parse(text);
        let estimates = estimates_by(&trace, |event| Some(trace.op_name(event.node)));
        let mut rows: Vec<_> = estimates
            .into_iter()
            .map(|(op, it)| (op.to_owned(), it.ns, it.error_ns, it.calls))
            .collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        rows
    }

    #[test]
    fn splits_give_their_time_to_ops_by_the_mean_of_the_samples() {
        let expected = [
            ("GET_ROWS".to_owned(), 30.0, Some(10.0), 2.0),
            ("MUL_MAT".to_owned(), 200.0, Some(20.0), 2.0),
            ("SPLIT".to_owned(), -230.0, None, 0.0),
        ];
        assert_eq!(by_op(SAMPLED), expected);
    }

    #[test]
    fn what_stays_in_a_group_is_exact() {
        let trace = text_fixture::parse(SAMPLED);
        assert_eq!(estimates_by(&trace, |event| Some(event.backend)), HashMap::new());
    }

    #[test]
    fn keys_are_those_of_the_runs_that_were_not_sampled() {
        let trace = text_fixture::parse(SAMPLED);
        let mul_mat = |event: &Event| trace.op_name(event.node) == "MUL_MAT";
        let estimates = estimates_by(&trace, |event| event.graph_run.filter(|_| mul_mat(event)));
        // Without a key of their own the whole splits are one class.
        assert_eq!(estimates.len(), 1);
        let by_run = estimates_by(&trace, |event| Some((event.graph_run, mul_mat(event))));
        assert_eq!(by_run[&(Some(GraphRunId(3)), true)].ns, 100.0);
    }

    #[test]
    fn one_sample_has_no_error_and_whole_splits_no_more_time_than_they_took() {
        let found = by_op(
            "backend 0 GPU gpu
             run 0..200
             op GPU ADD 0..80 run=0 measured=device f32[8,1]
             op GPU MUL 80..100 run=0 measured=device f32[32,1]
             run 400..600
             op GPU SPLIT 400..450 run=1 measured=device f32[32,1] <- f32[8,1]",
        );
        let told: Vec<_> = found.iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(told, [(40.0, None), (10.0, None), (-50.0, None)]);
    }

    #[test]
    fn copies_are_as_long_as_those_that_the_device_timed() {
        let found = by_op(
            "backend 0 GPU gpu
             copy GPU H2D 0..10 64 measured=device
             copy GPU H2D 20..32 64 measured=device
             copy GPU H2D 100..900 64 measured=host_call
             copy GPU H2D 1000..1900 80 measured=host
             copy GPU H2D 2000..2900 4096 measured=host_call",
        );
        assert_eq!(found, [("copy_H2D".to_owned(), 22.0, Some(2.0), 0.0)]);
    }
}
