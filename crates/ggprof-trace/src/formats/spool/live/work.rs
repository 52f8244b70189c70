//! What backends did: graph runs, splits and ops, what devices tell of them, and copies.

use super::super::backends::BackendMap;
use super::super::clock::Clock;
use super::super::device_clocks::DeviceClocks;
use super::super::tables::{Run, Split, Tables};
use super::ops::{LiveOp, LiveOps, ReadOps};
use super::{Live, LiveCopy, News};
use crate::model::{BackendIndex, DeviceType};
use ggprof_ggml::computes;
use ggprof_spool::layout::{self, NONE};

impl Live {
    /// Graph runs, splits and the ops in them.
    pub(super) fn work(
        &mut self,
        clock: &Clock,
        backends: &BackendMap,
        ops: &ReadOps,
        news: &mut News,
    ) {
        for run in self.tables.runs.values() {
            match run.end {
                Some(end) => news.runs.push((clock.ns(run.begin.ticks), clock.ns(end.ticks))),
                None => {
                    let since = Some(clock.ns(run.begin.ticks));
                    news.run_since_ns = news.run_since_ns.min(since).or(since);
                }
            }
        }
        news.runs.sort_unstable();
        let is_synchronous = |backend: BackendIndex| {
            let of_type = self.trace.backend(backend).device_type;
            !matches!(of_type, DeviceType::Gpu | DeviceType::IntegratedGpu)
        };
        for split in self.tables.splits.values().filter(|split| !is_counted(split, &self.tables)) {
            let Some(&backend) = backends.get(&split.begin.backend) else { continue };
            let start_ns = clock.ns(split.begin.ticks);
            if let Some(end) = split.end.filter(|_| !is_synchronous(backend))
                && let Some(run) = self.tables.runs.get(&split.begin.run)
                && let Some(call) = self.call_of_run.get(&split.begin.run)
            {
                self.results.leave(*call, run.begin.scheduler, clock.ns(end.ticks));
            }
            match split.end.filter(|_| is_synchronous(backend)) {
                Some(end) => news.busy.push((backend, start_ns, clock.ns(end.ticks))),
                None if split.end.is_none() && is_synchronous(backend) => {
                    news.computing.push((backend, start_ns));
                }
                None => {}
            }
        }
        self.ops(clock, backends, ops, news);
    }

    fn ops(&mut self, clock: &Clock, backends: &BackendMap, read: &ReadOps, news: &mut News) {
        let rate = ns_per_tick(clock, self.tables.clock_samples.last().map_or(0, |it| it.ticks));
        let (mut rest, mut starts) = (&read.ops[..], read.serialized.iter());
        news.ops = LiveOps::with_room(rest.len());
        for &(split, count) in &read.splits {
            let (ops, behind) = rest.split_at(count);
            rest = behind;
            let begin = self.tables.splits.get(&split).map(|split| split.begin);
            let place = begin.and_then(|begin| Some((begin, *backends.get(&begin.backend)?)));
            let call = begin.and_then(|begin| self.call_of_run.get(&begin.run)).copied();
            for op in ops {
                let start = op.is_serialized().then(|| starts.next()).flatten();
                let Some((begin, backend)) = place else { continue };
                let place = (begin.shape, op.position);
                let node = self.nodes.at(&self.tables, &mut self.trace, place, op.is_fused());
                let Some(node) = node else { continue };
                let duration_ns = (op.ticks() as f64 * rate) as u64;
                if let Some(start) = start {
                    // As the reader of whole recordings does it.
                    if !computes(self.trace.op_name(node)) {
                        continue;
                    }
                    let start_ns = clock.ns(begin.ticks.saturating_add(*start));
                    news.busy.push((backend, start_ns, start_ns + duration_ns));
                }
                let call = call.unwrap_or(NONE);
                news.ops.push(LiveOp { call, node, backend, duration_ns });
            }
        }
    }

    pub(super) fn device_work(&mut self, clock: &Clock, backends: &BackendMap, news: &mut News) {
        let device_clocks = DeviceClocks::new(&self.tables.device_clocks);
        for work in std::mem::take(&mut self.tables.device_work) {
            let ns = |ticks: u64| device_clocks.ns(clock, work.clock, ticks);
            let timed = work.flags & layout::WORK_UNTIMED == 0;
            let times = ns(work.start).zip(ns(work.end)).filter(|_| timed);
            let (Some((start_ns, end_ns)), Some(&backend)) = (times, backends.get(&work.backend))
            else {
                continue;
            };
            let duration_ns = end_ns.saturating_sub(start_ns);
            let what = work.flags & 3;
            if what == layout::WORK_COPY {
                // Its bytes are those of the call that asked for it.
                let bytes = if work.cause == 0 { work.bytes } else { 0 };
                let copy = LiveCopy { backend, start_ns, end_ns, bytes, is_timed: true };
                news.copies.push(copy);
                self.timing_copies.insert(backend);
                continue;
            }
            news.busy.push((backend, start_ns, start_ns + duration_ns));
            let split = self.tables.splits.get(&work.split);
            let Some(begin) =
                split.map(|split| split.begin).filter(|_| what == layout::WORK_KERNEL)
            else {
                continue;
            };
            let place = (begin.shape, work.position);
            if let Some(node) = self.nodes.at(&self.tables, &mut self.trace, place, true) {
                let call = self.call_of_run.get(&begin.run).copied().unwrap_or(NONE);
                news.ops.push(LiveOp { call, node, backend, duration_ns });
            }
        }
    }

    pub(super) fn copies(&mut self, clock: &Clock, backends: &BackendMap, news: &mut News) {
        for copy in std::mem::take(&mut self.tables.copies) {
            let Some(&backend) = backends.get(&copy.target_backend) else { continue };
            news.copies.push(LiveCopy {
                backend,
                start_ns: clock.ns(copy.start),
                end_ns: clock.ns(copy.end.max(copy.start)),
                bytes: copy.bytes,
                is_timed: copy.flags & layout::COPY_ASYNC == 0
                    && !self.timing_copies.contains(&backend),
            });
        }
    }
}

/// Whether it ended before the last look: its run did, and is not there any more.
fn is_counted(split: &Split, tables: &Tables) -> bool {
    let run: Option<&Run> = tables.runs.get(&split.begin.run);
    split.end.is_some() && run.is_none()
}

fn ns_per_tick(clock: &Clock, at: u64) -> f64 {
    const TICKS: u64 = 1 << 30;
    clock.ns(at.saturating_add(TICKS)).saturating_sub(clock.ns(at)) as f64 / TICKS as f64
}
