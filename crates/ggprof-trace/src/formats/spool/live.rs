//! A recording while it grows: what is new at each look, with descriptions kept from earlier ones.
//!
//! Events are not made of it: at each look there may be a hundred thousand ops, of which somebody who
//! watches wants sums.

use super::clock::Clock;
use super::nodes::{self, Nodes};
use super::tables::{Tables, is_for_reports_only};
use super::{backends, batches};
use crate::model::{BackendIndex, Dropped, Trace};
use described::Described;
use ggprof_spool::follow::{Follower, New};
use ggprof_spool::layout;
use ggprof_spool::live::LiveSpool;
use ggprof_spool::reader::Header;
use ggprof_spool::record::Record;
use hashbrown::{HashMap, HashSet};
use ops::ReadOps;
use results::{Results, Returned, Wait};
use std::io;
use std::path::Path;

mod described;
mod news;
mod ops;
mod results;
#[cfg(test)]
mod tests;
mod work;

pub use news::{LiveCopy, News, Standing};
pub use ops::{LiveOp, LiveOps};

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
    /// Of this look.
    read_ops: ReadOps,
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
            read_ops: ReadOps::default(),
        })
    }

    /// The descriptions that news refer to.
    pub fn descriptions(&self) -> &Trace {
        &self.trace
    }

    /// What is new since the last look; it is `now_ns` of the same clock.
    pub fn look(&mut self, now_ns: u64) -> io::Result<News> {
        let (mut ends, mut begun) = (std::mem::take(&mut self.early), Vec::new());
        let mut ops = std::mem::take(&mut self.read_ops);
        ops.clear();
        let old_ends = ends.len();
        let Live { spool, follower, tables, described, call_of_thread, call_of_run, .. } = self;
        let has_positions = &mut self.has_positions;
        let header = follower.look(spool, |new, definitions| {
            let record = match new {
                New::Ops(bytes) => return ops.take(bytes),
                New::Record(record) => record,
            };
            match &record {
                record if is_for_reports_only(record) => return,
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
        self.read_ops = ops;
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

fn keep_newest<T>(samples: &mut Vec<T>) {
    let old = samples.len().saturating_sub(MOST_SAMPLES);
    samples.drain(..old);
}
