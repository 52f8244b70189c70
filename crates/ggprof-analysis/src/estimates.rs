//! Time that was not measured op by op, divided by what was.
//!
//! A split of a device that was timed as a whole is divided among the ops that other splits of its
//! kind have, each by its mean in those. A copy of which only the call was timed, which tells nothing
//! of the device, is taken to be as long as copies of its kind that the device timed. How the samples
//! vary tells how far an estimate can be trusted.

mod copy_times;

use crate::split_kinds::{self, SplitKind, kind_of_sampled, kind_of_whole, known_splits};
use ggprof_trace::{Event, EventId, GraphRunId, Trace};
use hashbrown::HashMap;
use std::hash::Hash;

pub use copy_times::CopyTimes;

/// What is estimated beyond what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Below zero for the splits whose time was given to their ops.
    pub ns: f64,
    /// Its standard error, by the variance of the samples; a single sample has none.
    pub error_ns: Option<f64>,
    /// How many calls there were, in addition to those that were measured.
    pub calls: f64,
    /// For how many calls it is. Of copies the calls were seen, so they are none in addition.
    pub covers: f64,
    /// The longest of the samples; `None` of copies.
    pub example: Option<EventId>,
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

/// The same for each part that graph runs are in, and for several keys of an event at once. Keys do not
/// depend on the run; so ops are looked at once for each kind of split, however many parts there are.
pub fn estimates_in_parts<P, K, I>(
    trace: &Trace,
    mut part_of: impl FnMut(&Event) -> P,
    mut keys_of: impl FnMut(&Event) -> I,
) -> HashMap<(P, K), Estimate>
where
    P: Hash + Eq + Clone,
    K: Hash + Eq + Clone,
    I: IntoIterator<Item = K>,
{
    let mut sums = Sums::default();
    let mut classes: HashMap<(SplitKind, P), (Class, Event)> = HashMap::new();
    for event in split_kinds::whole_splits(trace) {
        let key = (kind_of_whole(trace, &event), part_of(&event));
        classes.entry(key).or_insert((Class::default(), event)).0.add(&event);
    }
    let samples = if classes.is_empty() { HashMap::new() } else { samples_by_kind(trace) };
    let means: HashMap<SplitKind, Means<K>> = samples
        .iter()
        .map(|(kind, splits)| (*kind, Means::of(splits, |event| keys_of(event))))
        .collect();
    for ((kind, part), (class, whole)) in classes {
        let Some(means) = means.get(&kind) else { continue };
        let mut add = |key, more| sums.add((part.clone(), key), more);
        let shared_ns = class.share_out(means, &mut add);
        keys_of(&whole)
            .into_iter()
            .for_each(|key| add(key, Contribution { ns: -shared_ns, ..Contribution::NOTHING }));
    }
    copies(
        trace,
        &mut |event: &Event| {
            let part = part_of(event);
            keys_of(event).into_iter().map(move |key| (part.clone(), key)).collect::<Vec<_>>()
        },
        &mut sums,
    );
    sums.finish()
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
struct Sums<K>(HashMap<K, EstimateSum>);

/// What one kind of splits or copies adds to the estimate of a key.
#[derive(Clone, Copy)]
struct Contribution {
    ns: f64,
    calls: f64,
    covers: f64,
    variance: Option<f64>,
    /// With its time.
    longest: Option<(u64, EventId)>,
}

impl Contribution {
    const NOTHING: Self =
        Self { ns: 0.0, calls: 0.0, covers: 0.0, variance: Some(0.0), longest: None };
}

#[derive(Clone, Copy)]
struct EstimateSum {
    ns: InAnyOrder,
    calls: InAnyOrder,
    covers: InAnyOrder,
    /// `None` if it is unknown for one of the parts.
    variance: Option<InAnyOrder>,
    longest: Option<(u64, EventId)>,
}

impl EstimateSum {
    const NOTHING: Self = Self {
        ns: InAnyOrder(0),
        calls: InAnyOrder(0),
        covers: InAnyOrder(0),
        variance: Some(InAnyOrder(0)),
        longest: None,
    };
}

/// A sum in units so small that it is exact: that of floating point numbers depends on their order,
/// which is another one each time for what comes out of a hash map.
#[derive(Clone, Copy)]
struct InAnyOrder(i128);

impl InAnyOrder {
    const UNITS: f64 = (1_u64 << 40) as f64;

    fn and(self, part: f64) -> Self {
        Self(self.0 + (part * Self::UNITS).round() as i128)
    }

    fn value(self) -> f64 {
        self.0 as f64 / Self::UNITS
    }
}

impl<K> Default for Sums<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Sums<K> {
    fn add(&mut self, key: K, more: Contribution) {
        let sum = self.0.entry(key).or_insert(EstimateSum::NOTHING);
        sum.ns = sum.ns.and(more.ns);
        sum.calls = sum.calls.and(more.calls);
        sum.covers = sum.covers.and(more.covers);
        sum.variance = sum.variance.zip(more.variance).map(|(all, one)| all.and(one));
        sum.longest = sum.longest.max(more.longest);
    }

    fn finish(self) -> HashMap<K, Estimate> {
        // What was taken from a group and given back to it is exact.
        let counts = self.0.into_iter().filter(|(_, sum)| sum.ns.value().abs() >= 0.5);
        let finish = |(key, sum): (K, EstimateSum)| {
            let [ns, calls, covers] = [sum.ns, sum.calls, sum.covers].map(InAnyOrder::value);
            let variance = sum.variance.filter(|_| ns > 0.0);
            let error_ns = variance.map(|variance| variance.value().sqrt().round());
            let example = sum.longest.map(|(_, event)| event);
            (key, Estimate { ns: ns.round(), error_ns, calls, covers, example })
        };
        counts.map(finish).collect()
    }
}

/// What the splits of one kind have of one key.
#[derive(Default)]
struct OfKey {
    /// Its time in each split.
    samples: Samples,
    calls: f64,
    longest: Option<(u64, EventId)>,
}

/// What the splits of one kind that were sampled have of each key.
struct Means<K> {
    of_key: HashMap<K, OfKey>,
    /// The time of all their ops.
    all_ns: f64,
    splits: f64,
}

impl<K: Hash + Eq + Clone> Means<K> {
    fn of<I: IntoIterator<Item = K>>(
        splits: &[Vec<Event>],
        mut keys_of: impl FnMut(&Event) -> I,
    ) -> Self {
        let mut means = Self { of_key: HashMap::new(), all_ns: 0.0, splits: splits.len() as f64 };
        for split in splits {
            let mut in_split: HashMap<K, f64> = HashMap::new();
            for event in split {
                means.all_ns += event.charged_ns as f64;
                for key in keys_of(event) {
                    let of_key = means.of_key.entry(key.clone()).or_default();
                    of_key.calls += 1.0;
                    of_key.longest = of_key.longest.max(Some((event.charged_ns, event.id)));
                    *in_split.entry(key).or_default() += event.charged_ns as f64;
                }
            }
            for (key, ns) in in_split {
                means.of_key.entry(key).or_default().samples.add(ns);
            }
        }
        // Splits without it are samples of nothing.
        means.of_key.values_mut().for_each(|of_key| of_key.samples.count = means.splits);
        means
    }
}

/// Whole splits of one kind that have one key.
#[derive(Default)]
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
    let mut classes: HashMap<(SplitKind, Option<K>), Class> = HashMap::new();
    for event in split_kinds::whole_splits(trace) {
        let key = (kind_of_whole(trace, &event), key_of(&event));
        let none = Class { run: event.graph_run, ..Class::default() };
        classes.entry(key).or_insert(none).add(&event);
    }
    if classes.is_empty() {
        return;
    }
    let samples = samples_by_kind(trace);
    for ((kind, key), class) in classes {
        let Some(splits) = samples.get(&kind) else { continue };
        let in_run = |event: &Event| key_of(&Event { graph_run: class.run, ..*event });
        let means = Means::of(splits, in_run);
        let shared_ns = class.share_out(&means, &mut |key, more| sums.add(key, more));
        if let Some(key) = key {
            sums.add(key, Contribution { ns: -shared_ns, ..Contribution::NOTHING });
        }
    }
}

fn samples_by_kind(trace: &Trace) -> HashMap<SplitKind, Vec<Vec<Event>>> {
    let mut samples: HashMap<SplitKind, Vec<Vec<Event>>> = HashMap::new();
    for split in known_splits(trace) {
        if let Some(kind) = kind_of_sampled(trace, &split) {
            samples.entry(kind).or_default().push(split);
        }
    }
    samples
}

impl Class {
    fn add(&mut self, whole: &Event) {
        self.count += 1.0;
        self.whole_ns += whole.duration_ns as f64;
    }

    /// Divides the time of the class among the ops of its samples; how much of it.
    fn share_out<K: Clone>(&self, means: &Means<K>, add: &mut impl FnMut(K, Contribution)) -> f64 {
        // Kernels take a little longer while they are traced. What is known exactly, the time of
        // the splits, is the most they can have taken.
        let n = means.splits;
        let all_ns = means.all_ns / n * self.count;
        let scale = if all_ns > self.whole_ns { self.whole_ns / all_ns } else { 1.0 };
        for (key, OfKey { samples, calls, longest }) in &means.of_key {
            let factor = self.count * scale;
            let variance = samples.variance_of_mean().map(|variance| variance * factor * factor);
            let calls = calls / n * self.count;
            let ns = samples.mean() * factor;
            let part = Contribution { ns, calls, covers: calls, variance, longest: *longest };
            add(key.clone(), part);
        }
        all_ns * scale
    }
}

fn copies<K: Hash + Eq + Clone, I: IntoIterator<Item = K>>(
    trace: &Trace,
    keys_of: &mut impl FnMut(&Event) -> I,
    sums: &mut Sums<K>,
) {
    let times = CopyTimes::of(trace);
    if times.kinds.is_empty() {
        return;
    }
    // Kinds share samples, so their errors add up and do not even out.
    let mut of_keys: HashMap<K, (Contribution, Option<f64>)> = HashMap::new();
    for event in trace.events.copies().filter(|event| times.is_untimed(trace, event)) {
        let Some(kind) = times.nearest(trace, &event) else { continue };
        let samples = &times.kinds[&kind];
        let error_ns = samples.variance_of_mean().map(f64::sqrt);
        for key in keys_of(&event) {
            let (part, errors_ns) =
                of_keys.entry(key).or_insert((Contribution::NOTHING, Some(0.0)));
            part.ns += samples.mean();
            // They are counted already, as calls that were seen.
            part.covers += 1.0;
            *errors_ns = errors_ns.zip(error_ns).map(|(all, one)| all + one);
        }
    }
    for (key, (part, errors_ns)) in of_keys {
        let variance = errors_ns.map(|error_ns| error_ns * error_ns);
        sums.add(key, Contribution { variance, ..part });
    }
}

#[cfg(test)]
pub(crate) mod tests;
