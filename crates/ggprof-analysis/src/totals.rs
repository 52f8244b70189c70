//! Adds events up by any key: how often, how long, how evenly, and how much work.

mod sum;

use crate::attention::Attended;
use crate::estimates::{CopyTimes, Estimate, estimates_by};
use crate::gaps::recorded_ns;
use crate::node_sums::{NodeSums, OfNode};
use crate::percentiles::Times;
use crate::work::{Work, work_of};
use ggprof_trace::{BackendIndex, Event, EventId, EventKind, NodeId, Trace};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::hash::Hash;
use sum::GroupSum;

/// What a group of events comes to. Shares are fractions of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    pub count: u64,
    /// Measured time, and that of calls if there is nothing else.
    pub total_ns: u128,
    /// What is estimated beyond it; `None` if nothing is.
    pub estimate: Option<Estimate>,
    /// Time of calls that only started copies, which is the host's and no part of `total_ns`.
    pub call_ns: u128,
    /// Nothing but such calls was timed.
    pub only_calls: bool,
    pub min_ns: u64,
    pub max_ns: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    /// Output sizes of ops, sizes of copies: what ggml's profiler calls bytes.
    pub output_bytes: u128,
    /// Read and written by ops, moved by copies; `None` if it is unknown for one of them.
    pub moved_bytes: Option<u128>,
    /// The part of it that was moved in `total_ns`.
    pub timed_bytes: Option<u128>,
    /// `None` if it is unknown for one of the ops.
    pub flops: Option<u128>,
    /// Operations and bytes by the shapes of all tensors, if attention has less to do than these
    /// say because parts of them are hidden by a mask.
    pub padded: Option<(u128, u128)>,
    /// Some of the times are those of calls that only start the work, so that no rate can be
    /// told from them.
    pub host_calls: bool,
    /// Working and waiting at barriers, summed over threads, of the calls with thread data.
    pub thread_busy_ns: u128,
    pub thread_wait_ns: u128,
    /// The longest call; the last one if several are equally long. Where all is estimated, the longest
    /// sample.
    pub longest: EventId,
    /// How many of the calls count for `total_ns`.
    pub timed: u64,
    /// Of the recording's wall time. More than one where calls overlap.
    pub share_of_wall: f64,
    /// Of the sum of all times.
    pub share_of_sum: f64,
}

impl Totals {
    /// Measured and estimated time.
    pub fn time_ns(&self) -> f64 {
        let estimated_ns = self.estimate.map_or(0.0, |estimate| estimate.ns);
        (self.measured_ns() + estimated_ns).max(0.0)
    }

    /// Measured time, without calls that only started the work.
    pub fn measured_ns(&self) -> f64 {
        if self.only_calls { 0.0 } else { self.total_ns as f64 }
    }

    /// Whether anything is known of the time that the work took.
    pub fn is_timed(&self) -> bool {
        !self.only_calls || self.estimate.is_some()
    }

    /// Calls that were seen, and those that an estimate adds.
    pub fn calls(&self) -> u64 {
        self.count + self.estimate.map_or(0, |estimate| estimate.calls.round() as u64)
    }

    /// Of all calls whose time is measured or estimated; of calls that started copies, if there is
    /// nothing else.
    pub fn avg_ns(&self) -> f64 {
        let measured = if self.only_calls { 0.0 } else { self.timed as f64 };
        let known = measured + self.estimate.map_or(0.0, |estimate| estimate.covers);
        match known > 0.0 {
            true => self.time_ns() / known,
            false => self.total_ns as f64 / self.timed.max(1) as f64,
        }
    }

    /// Bytes read and written per nanosecond, which is GB/s.
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        rate(self.timed_bytes?, self.total_ns).filter(|_| !self.host_calls)
    }

    /// Output bytes per nanosecond: the figure ggml's profiler prints as bandwidth.
    pub fn output_gigabytes_per_second(&self) -> Option<f64> {
        rate(self.output_bytes, self.total_ns)
    }

    pub fn gigaflops_per_second(&self) -> Option<f64> {
        rate(self.flops?, self.total_ns).filter(|_| !self.host_calls)
    }

    /// How much of the threads' time was waiting for other threads.
    pub fn wait_share(&self) -> Option<f64> {
        let all = self.thread_busy_ns + self.thread_wait_ns;
        (all > 0).then(|| self.thread_wait_ns as f64 / all as f64)
    }

    /// How much of what the shapes say is attended to.
    pub fn attended_share(&self) -> Option<f64> {
        Some(self.flops? as f64 / self.padded?.0 as f64)
    }

    /// Operations per byte moved.
    pub fn arithmetic_intensity(&self) -> Option<f64> {
        rate(self.flops?, self.moved_bytes?)
    }
}

fn rate(amount: u128, per: u128) -> Option<f64> {
    (amount > 0 && per > 0).then(|| amount as f64 / per as f64)
}

/// Groups the events by `key_of` (events without a key are left out) and adds each group
/// up, estimates included. Longest time first; groups of equal length in the order they first
/// appear.
pub fn totals_by<K: Hash + Eq + Clone>(
    trace: &Trace,
    mut key_of: impl FnMut(&Event) -> Option<K>,
) -> Vec<(K, Totals)> {
    let mut groups = Groups::new(trace);
    let mut group_of_event = Vec::with_capacity(trace.events.len());
    for event in trace.events.iter() {
        let group = key_of(&event).map(|key| groups.number(key, &event));
        let timed = group.filter(|&group| groups.add(trace, &event, group));
        group_of_event.push(timed.unwrap_or(NO_GROUP));
    }
    let mut times = groups.times();
    let charges = group_of_event.into_iter().zip(trace.events.charges());
    charges.filter(|(group, _)| *group != NO_GROUP).for_each(|(group, ns)| times.put(group, ns));
    groups.finish(trace, times.percentiles(), key_of)
}

/// The same where the key depends on nothing but the node, the backend and whether it is a copy: it
/// is asked for once for each of these.
pub fn totals_by_node<K: Hash + Eq + Clone>(
    trace: &Trace,
    sums: &NodeSums,
    key_of: impl FnMut(&Event) -> Option<K>,
) -> Vec<(K, Totals)> {
    by_node(trace, sums, key_of, true)
}

/// The same without percentiles.
pub(crate) fn sums_by_node<K: Hash + Eq + Clone>(
    trace: &Trace,
    sums: &NodeSums,
    key_of: impl FnMut(&Event) -> Option<K>,
) -> Vec<(K, Totals)> {
    by_node(trace, sums, key_of, false)
}

fn by_node<K: Hash + Eq + Clone>(
    trace: &Trace,
    sums: &NodeSums,
    mut key_of: impl FnMut(&Event) -> Option<K>,
    with_percentiles: bool,
) -> Vec<(K, Totals)> {
    let mut groups = Groups::new(trace);
    let mut group_of = GroupOfNode::default();
    for of_node in sums.iter() {
        let first = trace.events.get(of_node.sum.first);
        let group = key_of(&first).map(|key| groups.number(key, &first));
        if let Some(group) = group {
            groups.add_node(&of_node, group);
            group_of.set(trace, (of_node.backend, EventKind::Op), of_node.node, group);
        }
    }
    for event in trace.events.copies() {
        let group = key_of(&event).map(|key| groups.number(key, &event));
        if let Some(group) = group {
            groups.add(trace, &event, group);
            group_of.set(trace, (event.backend, EventKind::Copy), event.node, group);
        }
    }
    let percentiles = match with_percentiles {
        true => {
            let mut times = groups.times();
            group_of.charges(trace, &groups.copies, |group, ns| times.put(group, ns));
            times.percentiles()
        }
        false => vec![(0, 0); groups.sums.len()],
    };
    groups.finish(trace, percentiles, key_of)
}

/// The group of each node, by backend and kind.
#[derive(Default)]
struct GroupOfNode {
    tables: HashMap<(BackendIndex, EventKind), Vec<u32>>,
}

impl GroupOfNode {
    fn set(&mut self, trace: &Trace, of: (BackendIndex, EventKind), node: NodeId, group: u32) {
        let table = self.tables.entry(of).or_insert_with(|| vec![NO_GROUP; trace.nodes.len()]);
        table[node.0 as usize] = group;
    }

    /// Hands over all times that count, each with its group.
    fn charges(&self, trace: &Trace, copies: &CopyTimes, mut each: impl FnMut(u32, u64)) {
        for (stretch, events) in trace.events.stretches() {
            let Some(group_of) = self.tables.get(&(stretch.backend, stretch.kind)) else {
                continue;
            };
            let groups = trace.events.nodes_of(events.clone()).iter().map(|it| it.0 as usize);
            let charges = trace.events.charges_of(events.clone());
            let all = groups.map(|node| group_of[node]).zip(charges);
            let in_groups = events.zip(all).filter(|(_, (group, _))| *group != NO_GROUP);
            match stretch.kind {
                EventKind::Op => in_groups.for_each(|(_, (group, ns))| each(group, ns)),
                EventKind::Copy => in_groups
                    .filter(|(at, _)| !copies.is_untimed(trace, &trace.events.get(EventId(*at))))
                    .for_each(|(_, (group, ns))| each(group, ns)),
            }
        }
    }
}

/// Groups of events while they grow.
struct Groups<K> {
    sums: Vec<(K, GroupSum)>,
    lookup: HashMap<K, u32>,
    work: Vec<Work>,
    attended: Attended,
    copies: CopyTimes,
}

impl<K: Hash + Eq + Clone> Groups<K> {
    fn new(trace: &Trace) -> Self {
        Self {
            sums: Vec::new(),
            lookup: HashMap::new(),
            work: node_work(trace),
            attended: Attended::of(trace),
            copies: CopyTimes::of(trace),
        }
    }

    /// The number of a group, which may begin with this event.
    fn number(&mut self, key: K, event: &Event) -> u32 {
        let number = *self.lookup.entry(key).or_insert_with_key(|key| {
            self.sums.push((key.clone(), GroupSum::new(event)));
            self.sums.len() as u32 - 1
        });
        let sum = &mut self.sums[number as usize].1;
        sum.first = sum.first.min(event.id);
        number
    }

    /// Room for the times that count.
    fn times(&self) -> Times {
        let longest_ns = self.sums.iter().map(|(_, sum)| sum.max_ns).max().unwrap_or(0);
        Times::new(self.sums.iter().map(|(_, sum)| sum.timed), longest_ns)
    }

    /// Adds an event to a group; whether its time counts.
    #[inline]
    fn add(&mut self, trace: &Trace, event: &Event, group: u32) -> bool {
        let sum = &mut self.sums[group as usize].1;
        let padded = &self.work[event.node.0 as usize];
        let attended = match self.attended.varies(event.node) {
            true => self.attended.work(trace, event),
            false => None,
        };
        let moved = sum.add(event, attended.as_ref().unwrap_or(padded), padded);
        if self.copies.is_untimed(trace, event) {
            sum.calls.push(event.charged_ns);
            return false;
        }
        sum.add_time(event, moved);
        if let Some(threads) = trace.events.threads(event.id) {
            sum.thread_busy_ns += u128::from(threads.busy_sum_ns);
            sum.thread_wait_ns += u128::from(threads.wait_sum_ns);
        }
        true
    }

    /// Adds all ops of a node to a group.
    fn add_node(&mut self, of_node: &OfNode<'_>, group: u32) {
        let work = &self.work[of_node.node.0 as usize];
        self.sums[group as usize].1.add_ops(of_node, work);
    }

    fn finish(
        mut self,
        trace: &Trace,
        percentiles: Vec<(u64, u64)>,
        key_of: impl FnMut(&Event) -> Option<K>,
    ) -> Vec<(K, Totals)> {
        let estimates = estimates_by(trace, key_of);
        let scale = Scale::of(trace, &self.copies);
        let mut groups: Vec<_> = self.sums.drain(..).zip(percentiles).collect();
        // What was measured elsewhere only.
        for (key, estimate) in estimates.iter().filter(|(key, _)| !self.lookup.contains_key(*key)) {
            let example = estimate.example.map(|event| trace.event(event));
            groups.extend(example.map(|it| ((key.clone(), GroupSum::of_estimate(&it)), (0, 0))));
        }
        groups.sort_by_key(|((_, sum), _)| sum.first);
        let mut rows: Vec<(K, Totals)> = groups
            .into_iter()
            .map(|((key, sum), percentiles)| {
                let estimate = estimates.get(&key).copied();
                (key, sum.finish(percentiles, estimate, &scale))
            })
            .collect();
        rows.sort_by_key(|(_, totals)| Reverse(totals.time_ns() as u128));
        rows
    }
}

const NO_GROUP: u32 = u32::MAX;

/// The work of each node, by the shapes of its tensors.
fn node_work(trace: &Trace) -> Vec<Work> {
    let signatures = trace.nodes.signatures().map(|(_, signature)| work_of(trace, signature));
    let signatures: Vec<Work> = signatures.collect();
    let of_node = |id| signatures[trace.node(id).signature.0 as usize];
    trace.nodes.ids().map(of_node).collect()
}

/// What shares are fractions of.
struct Scale {
    wall_ns: u64,
    sum_ns: u128,
}

impl Scale {
    fn of(trace: &Trace, copies: &CopyTimes) -> Self {
        Self {
            wall_ns: recorded_ns(trace),
            sum_ns: trace.events.charges().map(u128::from).sum::<u128>()
                - trace
                    .events
                    .copies()
                    .filter(|event| copies.is_untimed(trace, event))
                    .map(|event| u128::from(event.charged_ns))
                    .sum::<u128>(),
        }
    }
}

#[cfg(test)]
mod tests;
