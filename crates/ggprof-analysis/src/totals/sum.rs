//! One group of events while it grows, event by event or with all ops of a node at once.

use super::{Scale, Totals};
use crate::estimates::Estimate;
use crate::node_sums::{OfNode, add};
use crate::percentiles::median_and_p95;
use crate::work::Work;
use ggprof_trace::{Event, EventId, EventKind, Measured};

/// A group while it grows.
pub(super) struct GroupSum {
    pub(super) first: EventId,
    count: u64,
    pub(super) timed: u64,
    /// Times of calls that only started a copy.
    pub(super) calls: Vec<u64>,
    total_ns: u128,
    min_ns: u64,
    pub(super) max_ns: u64,
    output_bytes: u128,
    moved_bytes: Option<u128>,
    timed_bytes: Option<u128>,
    flops: Option<u128>,
    padded_flops: Option<u128>,
    padded_bytes: Option<u128>,
    host_calls: bool,
    pub(super) thread_busy_ns: u128,
    pub(super) thread_wait_ns: u128,
    longest: EventId,
}

impl GroupSum {
    pub(super) fn new(first: &Event) -> Self {
        Self {
            first: first.id,
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

    /// A group of which nothing was measured here: how much work it was is not known.
    pub(super) fn of_estimate(example: &Event) -> Self {
        let unknown = Self::new(example);
        Self { moved_bytes: None, timed_bytes: None, flops: None, ..unknown }
    }

    /// Takes an event's work, and gives the bytes that it moved.
    pub(super) fn add(&mut self, event: &Event, work: &Work, padded: &Work) -> Option<u64> {
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

    pub(super) fn add_time(&mut self, event: &Event, moved: Option<u64>) {
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

    /// Takes the ops of a node, all of which count.
    pub(super) fn add_ops(&mut self, of_node: &OfNode<'_>, padded: &Work) {
        let OfNode { sum, attention, .. } = of_node;
        let times = |amount: Option<u64>| Some(u128::from(amount?) * u128::from(sum.count));
        let more = |of_group: Option<u128>, of_node: Option<u128>| Some(of_group? + of_node?);
        let (padded_flops, padded_bytes) = (times(padded.flops), times(padded.bytes_moved()));
        let flops = attention.map_or(padded_flops, |it| it.flops);
        let moved = attention.map_or(padded_bytes, |it| it.moved_bytes);
        self.count += sum.count;
        self.timed += sum.count;
        self.padded_flops = more(self.padded_flops, padded_flops);
        self.padded_bytes = more(self.padded_bytes, padded_bytes);
        self.flops = more(self.flops, flops);
        self.moved_bytes = more(self.moved_bytes, moved);
        self.timed_bytes = more(self.timed_bytes, moved);
        self.output_bytes += sum.output_bytes;
        self.total_ns += sum.total_ns;
        self.min_ns = self.min_ns.min(sum.min_ns);
        if (sum.max_ns, sum.longest) >= (self.max_ns, self.longest) || self.timed == sum.count {
            (self.max_ns, self.longest) = (sum.max_ns, sum.longest);
        }
        self.host_calls |= sum.host_calls;
        self.thread_busy_ns += sum.thread_busy_ns;
        self.thread_wait_ns += sum.thread_wait_ns;
    }

    /// If there is nothing else, the calls are what is told of.
    fn take_calls(&mut self, percentiles: &mut (u64, u64)) -> u128 {
        let call_ns = self.calls.iter().map(|&ns| u128::from(ns)).sum();
        if self.timed == 0 {
            self.total_ns = call_ns;
            self.host_calls = true;
            self.min_ns = self.calls.iter().copied().min().unwrap_or(0);
            self.max_ns = self.calls.iter().copied().max().unwrap_or(0);
            *percentiles = median_and_p95(&mut self.calls);
        }
        call_ns
    }

    pub(super) fn finish(
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
