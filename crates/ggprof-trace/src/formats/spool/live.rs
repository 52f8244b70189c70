//! A recording while it grows: what is new at each look, with descriptions kept from earlier ones.
//!
//! Events are not made of it: at each look there may be a hundred thousand ops, of which somebody who
//! watches wants sums.

use super::backends::{self, BackendMap};
use super::batches;
use super::clock::Clock;
use super::device_clocks::DeviceClocks;
use super::nodes::{self, Nodes};
use super::tables::{Run, Split, Tables};
use crate::model::{
    BackendIndex, Batch, ContextChange, DeviceType, Dropped, NodeId, Stopped, Trace,
};
use described::Described;
use ggprof_ggml::computes;
use ggprof_spool::follow::{Follower, New, kept};
use ggprof_spool::layout::{self, NONE};
use ggprof_spool::live::LiveSpool;
use ggprof_spool::reader::Header;
use ggprof_spool::record::{Op, Record};
use hashbrown::{HashMap, HashSet};
use results::{Results, Returned, Wait};
use std::io;
use std::path::Path;

mod described;
mod results;
#[cfg(test)]
mod tests;

/// Clock samples that are kept, of each clock: some minutes of them.
const MOST_SAMPLES: usize = 1000;
/// Devices tell of their work later, but not by so much.
const DEVICES_TELL_WITHIN_NS: u64 = 10_000_000_000;

/// A recording that is being written.
#[derive(Debug)]
pub struct Live {
    spool: LiveSpool,
    follower: Follower,
    tables: Tables,
    described: Described,
    results: Results,
    /// Descriptions only.
    trace: Trace,
    nodes: Nodes,
    /// The call that each thread is in, and each run that was begun.
    call_of_thread: HashMap<u32, u32>,
    call_of_run: HashMap<u32, u32>,
    /// Ends that were read before their begins: lanes are read one after the other.
    early: Vec<Record>,
    /// Backends whose devices time their own copies: the calls of others tell too much.
    timing_copies: HashSet<BackendIndex>,
    missed_blocks: u64,
    has_positions: bool,
    /// See [`kept`].
    op_bytes: Vec<u8>,
}

/// What happened between two looks, as far as it is over or its begin is known. Times are those of
/// `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Default)]
pub struct News {
    /// Batches that were handed over, by start, without their ends.
    pub begun: Vec<Batch>,
    /// Calls whose results are there, and since when.
    pub ended: Vec<(u32, u64)>,
    /// By time.
    pub changes: Vec<ContextChange>,
    /// Start and end of each graph run that is over; by start.
    pub runs: Vec<(u64, u64)>,
    /// When the oldest graph run began that is not over.
    pub run_since_ns: Option<u64>,
    pub ops: Vec<LiveOp>,
    /// When backends computed.
    pub busy: Vec<(BackendIndex, u64, u64)>,
    /// Backends that are computing, and since when.
    pub computing: Vec<(BackendIndex, u64)>,
    pub copies: Vec<LiveCopy>,
    /// The numbers of nodes are others than before.
    pub is_renumbered: bool,
    pub standing: Standing,
}

#[derive(Debug, Clone, Copy)]
pub struct LiveOp {
    /// Of libllama that it was part of; 0 of none.
    pub call: u32,
    pub node: NodeId,
    pub backend: BackendIndex,
    pub duration_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct LiveCopy {
    pub backend: BackendIndex,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    /// The times are those of the copy, not of the call that started it.
    pub is_timed: bool,
}

/// How the recording stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    pub program: String,
    pub pid: u32,
    pub is_recording: bool,
    /// The program said that it ends. One that is killed does not.
    pub has_ended: bool,
    /// The recorder gave up, while the program may go on.
    pub stopped: Option<Stopped>,
    /// Graph runs since its begin.
    pub graph_runs: u64,
    /// What the recorder could not take, since its begin.
    pub dropped: Vec<(Dropped, u64)>,
    /// Blocks that were used again before they could be looked at.
    pub missed_blocks: u64,
    /// Older events were there that were not looked at.
    pub is_partial: bool,
    /// Positions were seen in graphs, and not the calls that they came with: of tokens, or of parts of an
    /// image.
    pub has_positions: bool,
}

impl Standing {
    /// Whether what the program does from now on will be seen.
    pub fn is_going_on(&self) -> bool {
        self.is_recording && !self.has_ended && self.stopped.is_none()
    }
}

impl Live {
    pub fn open(path: &Path) -> io::Result<Live> {
        Ok(Live {
            spool: LiveSpool::open(path)?,
            follower: Follower::default(),
            tables: Tables::default(),
            described: Described::default(),
            results: Results::default(),
            trace: Trace::default(),
            nodes: Nodes::default(),
            call_of_thread: HashMap::new(),
            call_of_run: HashMap::new(),
            early: Vec::new(),
            timing_copies: HashSet::new(),
            missed_blocks: 0,
            has_positions: false,
            op_bytes: Vec::new(),
        })
    }

    /// The descriptions that news refer to.
    pub fn descriptions(&self) -> &Trace {
        &self.trace
    }

    /// What is new since the last look; it is `now_ns` of the same clock.
    pub fn look(&mut self, now_ns: u64) -> io::Result<News> {
        let (mut ends, mut begun) = (std::mem::take(&mut self.early), Vec::new());
        let mut ops = std::mem::take(&mut self.op_bytes);
        ops.clear();
        let old_ends = ends.len();
        let Live { spool, follower, tables, described, call_of_thread, call_of_run, .. } = self;
        let has_positions = &mut self.has_positions;
        let header = follower.look(spool, |new, definitions| {
            let record = match new {
                New::Ops(bytes) => return ops.extend_from_slice(bytes),
                New::Record(record) => record,
            };
            match &record {
                // Nobody asks about these while the program runs.
                Record::Buffer { .. }
                | Record::Coverage(_)
                | Record::DeviceMemory(_)
                | Record::Driver(_)
                | Record::ExpertUse { .. }
                | Record::HostTask(_)
                | Record::Instance(_)
                | Record::Machine { .. }
                | Record::MemoryKind(_)
                | Record::Placement { .. }
                | Record::Sample(_)
                | Record::Sensor { .. }
                | Record::ThreadShare(_)
                | Record::Transfer(_) => return,
                Record::GraphRunEnd(_) | Record::SplitEnd(_) | Record::BatchEnd(_) => {
                    ends.push(record);
                    return;
                }
                // Whether what has positions are tokens, or parts of an image, other nodes of the graph tell.
                Record::BatchBegin { batch, .. }
                    if batch.flags & layout::BATCH_FROM_POSITIONS != 0 =>
                {
                    *has_positions = true;
                    return;
                }
                Record::BatchBegin { batch, .. } => {
                    begun.push(batch.call);
                    call_of_thread.insert(batch.os_thread, batch.call);
                }
                Record::GraphRunBegin(run) => {
                    let call = call_of_thread.get(&run.os_thread).copied();
                    call_of_run.extend(call.map(|call| (run.run, call)));
                }
                _ => {}
            }
            match definitions {
                Some(block) => described.take(record, block, tables),
                None => tables.take(record),
            }
        })?;
        let returned = self.take_ends(ends, old_ends);
        let clock = Clock::new(&header, &self.tables.clock_samples);
        let is_renumbered = self.forget_descriptions();
        let standing = self.standing(&header);
        let mut news = News { standing, is_renumbered, ..News::default() };
        self.describe();
        let backends = backends::merge(&self.tables, &mut self.trace);
        self.batches(&clock, &begun, &mut news);
        self.work(&clock, &backends, &ops, &mut news);
        self.op_bytes = kept(ops);
        self.results(&clock, &returned, now_ns, &mut news);
        self.device_work(&clock, &backends, &mut news);
        self.copies(&clock, &backends, &mut news);
        self.forget(&clock);
        self.forget_after_missing();
        Ok(news)
    }

    /// The calls of libllama that returned, and when. Ends of what has not begun yet, but for the old ones
    /// at the front, wait for the next look.
    fn take_ends(&mut self, ends: Vec<Record>, old: usize) -> Vec<(u32, u64)> {
        let mut ended = Vec::new();
        for (at, end) in ends.into_iter().enumerate() {
            if !has_begun(&self.tables, &end) {
                self.early.extend((at >= old).then_some(end));
                continue;
            }
            if let Record::BatchEnd(end) = &end {
                ended.push((end.call, end.ticks));
            }
            self.tables.take(end);
        }
        ended
    }

    /// Among blocks that were missed may be the ends of what seems to go on.
    fn forget_after_missing(&mut self) {
        if self.follower.missed_blocks() > self.missed_blocks {
            self.missed_blocks = self.follower.missed_blocks();
            self.tables.runs.clear();
            self.tables.splits.clear();
            self.tables.batches.clear();
            self.results.clear();
        }
    }

    fn standing(&self, header: &Header) -> Standing {
        let dropped = Dropped::ALL.into_iter().zip(header.losses);
        Standing {
            program: header.command.clone(),
            pid: header.pid,
            is_recording: header.records(),
            has_ended: header.end_ticks != 0,
            stopped: super::stopped(header),
            graph_runs: header.graph_runs,
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
            missed_blocks: self.follower.missed_blocks(),
            is_partial: self.follower.is_partial(),
            has_positions: self.has_positions,
        }
    }

    fn describe(&mut self) {
        nodes::take_types(&self.tables, &mut self.trace);
        self.tables.types.clear();
    }

    /// Nothing that is there to be read refers to descriptions whose blocks were used again. The backends
    /// keep their numbers.
    fn forget_descriptions(&mut self) -> bool {
        let is_any = self.described.forget(&self.follower.take_gone(), &mut self.tables);
        if is_any {
            let Trace { backends, types, .. } = std::mem::take(&mut self.trace);
            self.trace = Trace { backends, types, ..Trace::default() };
            self.nodes = Nodes::default();
        }
        is_any
    }

    fn batches(&self, clock: &Clock, begun: &[u32], news: &mut News) {
        let calls = begun.iter().filter_map(|call| self.tables.batches.get(call));
        news.begun = calls.map(|call| batches::batch(call, clock)).collect();
        news.begun.sort_by_key(|batch| batch.start_ns);
        let changes = self.tables.context_changes.iter();
        news.changes = changes.filter_map(|it| batches::context_change(it, clock)).collect();
        news.changes.sort_by_key(|change| change.at_ns);
    }

    /// Calls whose results are there.
    fn results(&mut self, clock: &Clock, returned: &[(u32, u64)], now_ns: u64, news: &mut News) {
        let batches = &mut self.tables.batches;
        self.call_of_thread.retain(|_, call| returned.iter().all(|(it, _)| it != call));
        let returned = returned.iter().filter_map(|&(call, ticks)| {
            let context = batches.remove(&call)?.begin.context;
            Some(Returned { call, context, at_ns: clock.ns(ticks) })
        });
        let begun: Vec<(u32, u64)> =
            news.begun.iter().map(|batch| (batch.context, batch.start_ns)).collect();
        let wait = |it: &layout::Synchronize| {
            let (start_ns, end_ns) = (clock.ns(it.start), clock.ns(it.end));
            Wait { scheduler: it.scheduler, start_ns, end_ns }
        };
        let waits: Vec<Wait> = self.tables.waits.iter().map(wait).collect();
        news.ended = self.results.take(returned, &begun, &waits, now_ns);
    }

    /// Graph runs, splits and the ops in them.
    fn work(&mut self, clock: &Clock, backends: &BackendMap, ops: &[u8], news: &mut News) {
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
        let rate = ns_per_tick(clock, self.tables.clock_samples.last().map_or(0, |it| it.ticks));
        let mut place_of_split: Option<(u32, layout::SplitBegin, BackendIndex, u32)> = None;
        for op in ops.chunks_exact(layout::UNIT).filter_map(Op::decode) {
            // Ops of one split come one after the other.
            if place_of_split.is_none_or(|(split, ..)| split != op.split) {
                let split = self.tables.splits.get(&op.split);
                place_of_split = split.and_then(|split| {
                    let begin = split.begin;
                    let call = self.call_of_run.get(&begin.run).copied().unwrap_or(NONE);
                    Some((op.split, begin, *backends.get(&begin.backend)?, call))
                });
            }
            let Some((_, begin, backend, call)) = place_of_split else { continue };
            let place = (begin.shape, op.position);
            let node = self.nodes.at(&self.tables, &mut self.trace, place, op.fused);
            let Some(node) = node else { continue };
            // As the reader of whole recordings does it.
            let is_serialized = op.measured == layout::MEASURED_SERIALIZED;
            if is_serialized && !computes(self.trace.op_name(node)) {
                continue;
            }
            let duration_ns = (op.duration as f64 * rate) as u64;
            if is_serialized {
                let start_ns = clock.ns(begin.ticks.saturating_add(op.start));
                news.busy.push((backend, start_ns, start_ns + duration_ns));
            }
            news.ops.push(LiveOp { call, node, backend, duration_ns });
        }
    }

    fn device_work(&mut self, clock: &Clock, backends: &BackendMap, news: &mut News) {
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

    fn copies(&mut self, clock: &Clock, backends: &BackendMap, news: &mut News) {
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

    /// Lets go of what was told. Splits stay for the work that devices tell of later.
    fn forget(&mut self, clock: &Clock) {
        let tables = &mut self.tables;
        let devices_tell = !tables.device_clocks.is_empty();
        let newest =
            tables.splits.values().filter_map(|split| split.end).map(|end| end.ticks).max();
        let newest_ns = newest.map_or(0, |ticks| clock.ns(ticks));
        tables.splits.retain(|_, split| {
            split.end.is_none_or(|end| {
                devices_tell && clock.ns(end.ticks) + DEVICES_TELL_WITHIN_NS > newest_ns
            })
        });
        tables.runs.retain(|_, run| run.end.is_none());
        let (runs, splits) = (&tables.runs, &tables.splits);
        let wanted: HashSet<u32> = splits.values().map(|it| it.begin.run).collect();
        self.call_of_run.retain(|run, _| runs.contains_key(run) || wanted.contains(run));
        if !self.results.are_awaited() && tables.batches.is_empty() {
            tables.waits.clear();
        }
        keep_newest(&mut tables.waits);
        tables.context_changes.clear();
        keep_newest(&mut tables.clock_samples);
        keep_newest(&mut tables.device_clocks);
    }
}

fn has_begun(tables: &Tables, end: &Record) -> bool {
    match end {
        Record::GraphRunEnd(end) => tables.runs.contains_key(&end.run),
        Record::SplitEnd(end) => tables.splits.contains_key(&end.split),
        Record::BatchEnd(end) => tables.batches.contains_key(&end.call),
        _ => false,
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

fn keep_newest<T>(samples: &mut Vec<T>) {
    let old = samples.len().saturating_sub(MOST_SAMPLES);
    samples.drain(..old);
}
