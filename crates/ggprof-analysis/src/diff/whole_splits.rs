//! Divides the time of splits that were timed as a whole among the keys of their ops, as they were in
//! splits of the same kind whose kernels were recorded.

use super::book::Book;
use super::event_keys::EventKeys;
use super::key::Activity;
use crate::split_kinds::{
    SplitKind, is_whole, kind_of_sampled, kind_of_whole, known_splits, whole_splits,
};
use ggprof_trace::{EventId, Trace};
use hashbrown::HashMap;

pub(super) struct WholeSplits(HashMap<SplitKind, WholeSplitSamples>);

#[derive(Default)]
struct WholeSplitSamples {
    splits: u64,
    /// Time and calls of each key, in their order.
    keys: Vec<(u32, u64, u64)>,
    places: HashMap<u32, usize>,
}

impl WholeSplits {
    pub(super) fn of(trace: &Trace, keys: &EventKeys) -> Self {
        let mut kinds: HashMap<SplitKind, WholeSplitSamples> = HashMap::new();
        if whole_splits(trace).next().is_none() {
            return Self(kinds);
        }
        for split in known_splits(trace) {
            let Some(kind) = kind_of_sampled(trace, &split) else { continue };
            let samples = kinds.entry(kind).or_default();
            samples.splits += 1;
            for event in &split {
                let calls = u64::from(keys.is_call(event.id));
                samples.add(keys.of_event[event.id.0 as usize], event.charged_ns, calls);
            }
        }
        Self(kinds)
    }

    /// Enters the time of a split that was timed as a whole by its ops; false if it is not, or there is
    /// no sample of its kind. What the ops
    /// do not take lies between them. Where they would take more than there is, because kernels take
    /// a little longer while they are traced, each has its part of it.
    pub(super) fn spread(
        &self,
        trace: &Trace,
        event: EventId,
        ns: u64,
        block: u32,
        book: &mut Book,
    ) -> bool {
        let Some(samples) = self.samples(trace, event) else { return false };
        let splits = samples.splits as f64;
        let all: f64 = samples.keys.iter().map(|(_, ns, _)| *ns as f64 / splits).sum();
        let scale = (ns as f64 / all).min(1.0) / splits;
        let (mut seen, mut given) = (0.0, 0);
        for &(key, of_key, calls) in &samples.keys {
            // By running sums, so that the parts add up.
            seen += of_key as f64 * scale;
            let until = (seen.round() as u64).clamp(given, ns);
            book.spend(block, key, until - given);
            book.call(key, calls as f64 / splits);
            given = until;
        }
        book.spend_outside(block, Activity::InRun, ns - given);
        true
    }

    #[inline]
    fn samples(&self, trace: &Trace, event: EventId) -> Option<&WholeSplitSamples> {
        if self.0.is_empty() {
            return None;
        }
        let event = trace.events.get(event);
        is_whole(trace, &event).then(|| self.0.get(&kind_of_whole(trace, &event)))?
    }
}

impl WholeSplitSamples {
    fn add(&mut self, key: u32, ns: u64, calls: u64) {
        let place = *self.places.entry(key).or_insert_with(|| {
            self.keys.push((key, 0, 0));
            self.keys.len() - 1
        });
        self.keys[place].1 += ns;
        self.keys[place].2 += calls;
    }
}
