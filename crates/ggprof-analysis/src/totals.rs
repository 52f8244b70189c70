//! Adds events up by any key: how often, how long, how evenly, and how much work.

use crate::attention::Attended;
use crate::estimates::{CopyTimes, Estimate, estimates_by};
use crate::gaps::recorded_ns;
use crate::work::{Work, work_of};
use ggprof_trace::{BackendIndex, Event, EventId, EventKind, Measured, Trace};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::hash::Hash;

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
    /// The longest call; the last one if several are equally long.
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

    /// Of the calls that were measured.
    pub fn avg_ns(&self) -> f64 {
        self.total_ns as f64 / self.timed.max(1) as f64
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
    let mut groups = Groups::new(trace, true);
    for event in trace.events.iter() {
        let group = key_of(&event).map(|key| groups.number(key, &event));
        groups.add(trace, &event, group);
    }
    groups.finish(trace, key_of)
}

/// The same where the key depends on nothing but the node, the backend and whether it is a copy: it
/// is asked for once for each of these.
pub fn totals_by_node<K: Hash + Eq + Clone>(
    trace: &Trace,
    key_of: impl FnMut(&Event) -> Option<K>,
) -> Vec<(K, Totals)> {
    by_node(trace, key_of, true)
}

/// The same for who does not look at percentiles, which are left out.
pub(crate) fn sums_by_node<K: Hash + Eq + Clone>(
    trace: &Trace,
    key_of: impl FnMut(&Event) -> Option<K>,
) -> Vec<(K, Totals)> {
    by_node(trace, key_of, false)
}

fn by_node<K: Hash + Eq + Clone>(
    trace: &Trace,
    mut key_of: impl FnMut(&Event) -> Option<K>,
    with_percentiles: bool,
) -> Vec<(K, Totals)> {
    let mut groups = Groups::new(trace, with_percentiles);
    // The group of each node that was met, by backend and kind.
    let mut known: HashMap<(BackendIndex, EventKind), Vec<Option<u32>>> = HashMap::new();
    for (stretch, events) in trace.events.stretches() {
        let known = known
            .entry((stretch.backend, stretch.kind))
            .or_insert_with(|| vec![None; trace.nodes.len()]);
        for event in events.map(|at| trace.events.in_stretch(at, stretch)) {
            let place = &mut known[event.node.0 as usize];
            let group = match *place {
                Some(group) => group,
                None => {
                    let key = key_of(&event);
                    let group = key.map_or(NO_GROUP, |key| groups.number(key, &event));
                    *place = Some(group);
                    group
                }
            };
            groups.add(trace, &event, Some(group).filter(|&group| group != NO_GROUP));
        }
    }
    groups.finish(trace, key_of)
}

/// Groups of events while they grow.
struct Groups<K> {
    sums: Vec<(K, Sum)>,
    lookup: HashMap<K, u32>,
    /// The group that each event's time counts for, if percentiles are wanted.
    of_event: Option<Vec<u32>>,
    work: Vec<Work>,
    attended: Attended,
    copies: CopyTimes,
}

impl<K: Hash + Eq + Clone> Groups<K> {
    fn new(trace: &Trace, with_percentiles: bool) -> Self {
        Self {
            sums: Vec::new(),
            lookup: HashMap::new(),
            of_event: with_percentiles.then(|| Vec::with_capacity(trace.events.len())),
            work: node_work(trace),
            attended: Attended::of(trace),
            copies: CopyTimes::of(trace),
        }
    }

    /// The number of a group, which may begin with this event.
    fn number(&mut self, key: K, first: &Event) -> u32 {
        *self.lookup.entry(key).or_insert_with_key(|key| {
            self.sums.push((key.clone(), Sum::new(first)));
            self.sums.len() as u32 - 1
        })
    }

    #[inline]
    fn add(&mut self, trace: &Trace, event: &Event, group: Option<u32>) {
        let timed = group.filter(|&group| self.add_to(trace, event, group));
        if let Some(of_event) = &mut self.of_event {
            of_event.push(timed.unwrap_or(NO_GROUP));
        }
    }

    /// Adds an event to a group; whether its time counts.
    #[inline]
    fn add_to(&mut self, trace: &Trace, event: &Event, group: u32) -> bool {
        let sum = &mut self.sums[group as usize].1;
        let padded = &self.work[event.node.0 as usize];
        let attended = match self.attended.varies(event.node) {
            true => self.attended.work(trace, event),
            false => None,
        };
        let moved = sum.add(event, attended.as_ref().unwrap_or(padded), padded);
        if self.copies.is_untimed(event) {
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

    fn finish(self, trace: &Trace, key_of: impl FnMut(&Event) -> Option<K>) -> Vec<(K, Totals)> {
        let percentiles = match &self.of_event {
            Some(of_event) => percentiles(trace, &self.sums, of_event),
            None => vec![(0, 0); self.sums.len()],
        };
        let estimates = estimates_by(trace, key_of);
        let scale = Scale::of(trace, &self.copies);
        let mut rows: Vec<(K, Totals)> = self
            .sums
            .into_iter()
            .zip(percentiles)
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
                    .filter(|event| copies.is_untimed(event))
                    .map(|event| u128::from(event.charged_ns))
                    .sum::<u128>(),
        }
    }
}

/// A group while it grows.
struct Sum {
    count: u64,
    timed: u64,
    /// Times of calls that only started a copy.
    calls: Vec<u64>,
    total_ns: u128,
    min_ns: u64,
    max_ns: u64,
    output_bytes: u128,
    moved_bytes: Option<u128>,
    timed_bytes: Option<u128>,
    flops: Option<u128>,
    padded_flops: Option<u128>,
    padded_bytes: Option<u128>,
    host_calls: bool,
    thread_busy_ns: u128,
    thread_wait_ns: u128,
    longest: EventId,
}

impl Sum {
    fn new(first: &Event) -> Self {
        Self {
            count: 0,
            timed: 0,
            calls: Vec::new(),
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            output_bytes: 0,
            moved_bytes: Some(0),
            timed_bytes: Some(0),
            flops: Some(0),
            padded_flops: Some(0),
            padded_bytes: Some(0),
            host_calls: false,
            thread_busy_ns: 0,
            thread_wait_ns: 0,
            longest: first.id,
        }
    }

    /// Takes an event's work, and gives the bytes that it moved.
    fn add(&mut self, event: &Event, work: &Work, padded: &Work) -> Option<u64> {
        self.count += 1;
        if event.is_op() {
            self.padded_flops = add(self.padded_flops, padded.flops);
            self.padded_bytes = add(self.padded_bytes, padded.bytes_moved());
        }
        self.output_bytes += u128::from(event.bytes);
        let (moved, flops) = match event.kind {
            EventKind::Op => (work.bytes_moved(), work.flops),
            EventKind::Copy => (Some(event.bytes), Some(0)),
        };
        self.moved_bytes = add(self.moved_bytes, moved);
        self.flops = add(self.flops, flops);
        moved
    }

    fn add_time(&mut self, event: &Event, moved: Option<u64>) {
        self.timed += 1;
        self.timed_bytes = add(self.timed_bytes, moved);
        self.total_ns += u128::from(event.charged_ns);
        self.min_ns = self.min_ns.min(event.charged_ns);
        if event.charged_ns >= self.max_ns {
            self.max_ns = event.charged_ns;
            self.longest = event.id;
        }
        self.host_calls |= event.measured == Measured::HostCall;
    }

    /// If there is nothing else, the calls are what is told of.
    fn take_calls(&mut self, percentiles: &mut (u64, u64)) -> u128 {
        let call_ns = self.calls.iter().map(|&ns| u128::from(ns)).sum();
        if self.timed == 0 {
            self.total_ns = call_ns;
            self.host_calls = true;
            self.min_ns = self.calls.iter().copied().min().unwrap_or(0);
            self.max_ns = self.calls.iter().copied().max().unwrap_or(0);
            *percentiles = (percentile(&mut self.calls, 50), percentile(&mut self.calls, 95));
        }
        call_ns
    }

    fn finish(
        mut self,
        mut percentiles: (u64, u64),
        estimate: Option<Estimate>,
        scale: &Scale,
    ) -> Totals {
        let only_calls = self.timed == 0;
        let call_ns = self.take_calls(&mut percentiles);
        let (p50_ns, p95_ns) = percentiles;
        let mut totals = Totals {
            count: self.count,
            timed: if only_calls { self.count } else { self.timed },
            total_ns: self.total_ns,
            estimate,
            call_ns,
            only_calls,
            timed_bytes: self.timed_bytes,
            padded: self
                .padded_flops
                .zip(self.padded_bytes)
                .filter(|padded| Some(*padded) != self.flops.zip(self.moved_bytes) && padded.0 > 0),
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            p50_ns,
            p95_ns,
            output_bytes: self.output_bytes,
            moved_bytes: self.moved_bytes,
            flops: self.flops,
            host_calls: self.host_calls,
            thread_busy_ns: self.thread_busy_ns,
            thread_wait_ns: self.thread_wait_ns,
            longest: self.longest,
            share_of_wall: 0.0,
            share_of_sum: 0.0,
        };
        let share = |of: f64| if of > 0.0 { totals.time_ns() / of } else { 0.0 };
        (totals.share_of_wall, totals.share_of_sum) =
            (share(scale.wall_ns as f64), share(scale.sum_ns as f64));
        totals
    }
}

fn add(sum: Option<u128>, amount: Option<u64>) -> Option<u128> {
    Some(sum? + u128::from(amount?))
}

/// Median and 95th percentile of each group.
///
/// All durations are laid out by group in one array, which costs one number per event
/// however many groups there are; a short one, if all of them are.
fn percentiles<K>(trace: &Trace, groups: &[(K, Sum)], group_of_event: &[u32]) -> Vec<(u64, u64)> {
    let longest_ns = groups.iter().map(|(_, sum)| sum.max_ns).max().unwrap_or(0);
    match u32::try_from(longest_ns) {
        Ok(_) => percentiles_in::<u32, K>(trace, groups, group_of_event, |ns| ns as u32),
        Err(_) => percentiles_in::<u64, K>(trace, groups, group_of_event, |ns| ns),
    }
}

fn percentiles_in<T: Copy + Ord + Default + Into<u64>, K>(
    trace: &Trace,
    groups: &[(K, Sum)],
    group_of_event: &[u32],
    number: impl Fn(u64) -> T,
) -> Vec<(u64, u64)> {
    let mut next: Vec<usize> = Vec::with_capacity(groups.len());
    let mut length = 0;
    for (_, sum) in groups {
        next.push(length);
        length += sum.timed as usize;
    }
    let mut durations = vec![T::default(); length];
    for (&group, duration) in group_of_event.iter().zip(trace.events.charges()) {
        if group != NO_GROUP {
            durations[next[group as usize]] = number(duration);
            next[group as usize] += 1;
        }
    }
    let mut rest = durations.as_mut_slice();
    let mut percentiles = Vec::with_capacity(groups.len());
    for (_, sum) in groups {
        let (group, others) = rest.split_at_mut(sum.timed as usize);
        percentiles.push((percentile(group, 50).into(), percentile(group, 95).into()));
        rest = others;
    }
    percentiles
}

/// The smallest value that at least `percent` of the values do not exceed.
pub(crate) fn percentile<T: Copy + Ord + Default>(values: &mut [T], percent: usize) -> T {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    match values.len() {
        0 => T::default(),
        _ => *values.select_nth_unstable(rank - 1).1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn percentiles_are_values_that_occurred() {
        for (values, p50, p95) in [
            (vec![7], 7, 7),
            (vec![2, 1], 1, 2),
            (vec![3, 1, 2], 2, 3),
            ((1..=100).rev().collect(), 50, 95),
            (vec![], 0, 0),
        ] {
            let (mut a, mut b) = (values.clone(), values.clone());
            assert_eq!((percentile(&mut a, 50), percentile(&mut b, 95)), (p50, p95), "{values:?}");
        }
    }

    #[test]
    fn groups_are_added_up_and_sorted() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU ADD 0..10 a f32[4] <- f32[4] f32[4] bytes=16
             op CPU MUL 10..40 b f32[4] <- f32[4] f32[4] bytes=16
             op CPU ADD 40..60 c f32[8] <- f32[8] f32[8] bytes=32
             op CPU VIEW 60..60",
        );
        let rows = totals_by(&trace, |event| {
            Some(trace.op_name(event.node)).filter(|name| *name != "VIEW")
        });
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), ["ADD", "MUL"]);
        let add = &rows[0].1;
        assert_eq!((add.count, add.total_ns, add.min_ns, add.max_ns), (2, 30, 10, 20));
        assert_eq!((add.output_bytes, add.moved_bytes, add.flops), (48, Some(144), Some(12)));
        assert_eq!((add.longest, add.share_of_wall, add.share_of_sum), (EventId(2), 0.5, 0.5));
        assert_eq!(add.gigabytes_per_second(), Some(144.0 / 30.0));
        assert_eq!(add.arithmetic_intensity(), Some(12.0 / 144.0));
    }

    #[test]
    fn calls_that_only_start_the_work_give_no_rate() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             copy GPU H2D 0..10 1000 x measured=host_call",
        );
        let rows = totals_by(&trace, |_| Some(()));
        assert_eq!((rows[0].1.moved_bytes, rows[0].1.gigabytes_per_second()), (Some(1000), None));
        assert_eq!((rows[0].1.call_ns, rows[0].1.measured_ns()), (10, 0.0));
        assert_eq!((rows[0].1.share_of_wall, rows[0].1.is_timed()), (0.0, false));
    }

    #[test]
    fn the_time_of_calls_is_not_the_devices() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             copy GPU H2D 0..10 1000 x measured=device
             copy GPU H2D 50..90 1000 x measured=host_call
             op GPU ADD 90..100 y measured=device",
        );
        let copies = totals_by(&trace, |event| Some(event.kind)).remove(0).1;
        assert_eq!((copies.count, copies.timed, copies.total_ns, copies.call_ns), (2, 1, 10, 40));
        assert_eq!((copies.max_ns, copies.p95_ns, copies.avg_ns()), (10, 10, 10.0));
        assert_eq!((copies.time_ns(), copies.gigabytes_per_second()), (20.0, Some(100.0)));
        assert_eq!(copies.share_of_wall, 0.2);
    }

    #[test]
    fn attention_is_what_is_attended_to_and_the_padding_is_named() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             batch 0..9 0:63+1!1
             run 0..9 batch=0
             op CPU FLASH_ATTN_EXT 0..8 x run=0 f32[1,1,1] <- f32[1,1,1] f32[1,256,1] f32[1,256,1]
             op CPU ADD 8..9 y run=0 f32[4] <- f32[4] f32[4]",
        );
        let rows = totals_by(&trace, |event| Some(trace.op_name(event.node)));
        let (attention, sum) = (&rows[0].1, &rows[1].1);
        assert_eq!((attention.flops, attention.moved_bytes), (Some(2 * 64 * 2), Some(520)));
        assert_eq!(attention.padded, Some((2 * 256 * 2, 2 * 256 * 4 + 8)));
        assert_eq!((attention.attended_share(), sum.padded), (Some(0.25), None));
    }

    #[test]
    fn estimates_count_and_are_told_apart() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..100
             op GPU ADD 0..10 x run=0 measured=device f32[8]
             op GPU MUL 10..100 y run=0 measured=device f32[8]
             run 100..300
             op GPU SPLIT 100..220 run=1 measured=device f32[8] <- f32[8]
             op GPU SPLIT 220..300 run=1 split=1 measured=device f32[4] <- f32[4]",
        );
        let rows = totals_by(&trace, |event| Some(trace.op_name(event.node)));
        let told: Vec<_> = rows
            .iter()
            .map(|(op, it)| (*op, it.calls(), it.measured_ns(), it.time_ns(), it.share_of_sum))
            .collect();
        let expected = [
            ("MUL", 2, 90.0, 180.0, 0.6),
            // What no sample is known for, and what is left of the others.
            ("SPLIT", 2, 200.0, 100.0, 100.0 / 300.0),
            ("ADD", 2, 10.0, 20.0, 20.0 / 300.0),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn one_unknown_call_makes_the_work_unknown() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU ADD 0..10 a f32[4] <- f32[4] f32[4]
             op CPU ADD 10..40 b",
        );
        let rows = totals_by(&trace, |_| Some(()));
        assert_eq!((rows[0].1.flops, rows[0].1.moved_bytes), (None, None));
    }
}
