//! Keeping facts: per thread while a graph runs, in the file once it has run.
//!
//! * `current`: whether this process is recorded, and by whom; `children`: the same in forked children;
//! * `thread_log`: a thread's shares of the ops of the graph now running;
//! * `share`: one of them;
//! * `run_slot`: the running graph as the worker threads need it;
//! * `lane`: the right to write into the file, owned by one thread at a time;
//! * `fold`: the shares of all threads into one record per op;
//! * `intern`: texts, nodes and graph shapes, written once each;
//! * `definitions`: the blocks of descriptions, and what lasts;
//! * `fork_mark`: whether this is a child, which must not write;
//! * `gate`, `admission`: whether anything is recorded now, and who is inside;
//! * `launcher`: whether the one is still there that it is recorded for;
//! * `blocks`: which block is whose, and which is used again;
//! * `spool_file`: creating and growing the file;
//! * `open_file`: what is asked of the system for that;
//! * `delivered`: what became of it until now;
//! * `toggle_signal`: SIGUSR2 starts and stops it.

pub(crate) mod admission;
pub(crate) mod blocks;
pub(crate) mod children;
pub(crate) mod current;
pub(crate) mod definitions;
pub(crate) mod delivered;
pub(crate) mod fold;
mod fork_mark;
pub(crate) mod gate;
pub(crate) mod intern;
pub(crate) mod lane;
mod launcher;
pub(crate) mod mapped;
mod open_file;
pub(crate) mod run_slot;
mod share;
pub(crate) mod spool_file;
pub(crate) mod thread_log;
mod toggle_signal;
mod unopened;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ggprof_spool::layout::{Control, LossCounter, NONE, Window};
use ggprof_spool::writer::HeaderFacts;

use crate::clock;
use crate::config::{self, Config};
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Locked, Ranked, Tried, rank};
use admission::{Admission, Owed};
use blocks::BlockUse;
use definitions::Definitions;
use delivered::Delivered;
use fork_mark::ForkMark;
use gate::{Admitted, Gate};
use intern::Interner;
use lane::{HeldLane, Lanes};
use launcher::Launcher;
use spool_file::{Block, NoBlock, SpoolFile};

/// Samples get this far apart: the two clocks drift by parts per million.
const CLOCK_SAMPLE_EVERY_NS: u64 = 1_000_000_000;

/// When the clock was last sampled, and how long the next sample can wait.
#[derive(Debug)]
struct ClockSampling {
    last_ns: u64,
    wait_ns: u64,
}

/// One recording of one process.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) spool: SpoolFile,
    pub(crate) threads: bool,
    pub(crate) serialize: bool,
    /// The file is of limited size: blocks are used again.
    pub(crate) limited: bool,
    /// This is the recording of a forked child.
    pub(crate) is_forked: bool,
    pub(crate) delivered: Delivered,
    fork_mark: ForkMark,
    gate: Gate,
    lanes: Lanes,
    interner: Ranked<{ rank::INTERNER }, Interner>,
    definitions: Ranked<{ rank::DEFINITIONS }, Definitions>,
    /// The epoch of the descriptions (`blocks`).
    epoch: AtomicU32,
    /// Descriptions have become too many, or some were not written because nothing was
    /// recorded.
    epoch_due: AtomicBool,
    splits: AtomicU32,
    clock_sampling: Tried<ClockSampling>,
}

impl Recorder {
    /// Of a process, or of a forked child, which has all that its parent has.
    pub(crate) fn create(config: &Config, parent: Option<&Recorder>) -> Result<Recorder, String> {
        let lanes = Lanes::new().ok_or("there is no memory for it")?;
        let first = clock::sample();
        let pid = std::process::id();
        let facts = HeaderFacts {
            clock: clock::kind(),
            pid,
            options: config.options(),
            start_ticks: first.ticks,
            start_monotonic_ns: first.monotonic_ns,
            start_realtime_ns: first.realtime_ns,
            command: &config::command_name(),
            cpu_name: &config::cpu_name(),
            agent_version: env!("CARGO_PKG_VERSION").as_bytes(),
        };
        let spool = SpoolFile::create(config, &facts)?;
        fault_point!();
        match parent {
            // What was asked for since the start is meant for children as well.
            Some(parent) => spool.header.set_control(parent.spool.header.control()),
            None if config.paused => spool.header.set_control(Control::Stop),
            None => {}
        }
        let mut gate = Gate::new(config.span, &spool.header);
        let launcher = config.held_by_launcher();
        gate.end_with(launcher.map(|directory| Launcher::new(directory, first.monotonic_ns)));
        let recorder = Recorder {
            threads: config.threads,
            serialize: config.serialize,
            limited: config.most_blocks().is_some(),
            is_forked: parent.is_some(),
            delivered: Delivered::default(),
            fork_mark: ForkMark::new(),
            gate,
            spool,
            lanes,
            interner: Ranked::new(parent.map(|it| it.interner().heir()).unwrap_or_default()),
            definitions: Ranked::new(
                parent.map_or_else(Definitions::new, |it| it.definitions().heir()),
            ),
            epoch: AtomicU32::new(0),
            epoch_due: AtomicBool::new(parent.is_some()),
            splits: AtomicU32::new(0),
            clock_sampling: Tried::new(ClockSampling { last_ns: first.monotonic_ns, wait_ns: 0 }),
        };
        if let Some(lane) = recorder.lane(0, NONE) {
            lane.put(&first.encode());
        }
        fault_point!();
        Ok(recorder)
    }

    /// The right to write, preferably the lane used last. `None` when all are
    /// taken, and in a child that came by a raw `fork` system call. While nothing is
    /// recorded, the lane writes nothing. `run` is the one that the thread computes now.
    pub(crate) fn lane(&self, preferred: usize, run: u32) -> Option<HeldLane<'_>> {
        self.lane_with(preferred, || self.gate.thread_in(&self.spool.header, run))
    }

    /// The right to write records of admitted runs that a device's library delivers later.
    pub(crate) fn lane_for_owed(&self) -> Option<HeldLane<'_>> {
        self.lane_with(0, || self.gate.bringer_of_owed(&self.spool.header))
    }

    fn lane_with(&self, preferred: usize, ask: impl FnOnce() -> Admitted) -> Option<HeldLane<'_>> {
        let admission = self.admission(ask)?;
        fault_point!();
        let Some(lane) = self.lanes.hold(self, preferred, admission) else {
            self.lose(LossCounter::NoLane, 1);
            return None;
        };
        fault_point!();
        if lane.writes() {
            if self.epoch_due.load(Ordering::Relaxed) {
                self.begin_epoch();
            }
            lane.keep_up_with(self.epoch());
            fault_point!();
        }
        Some(lane)
    }

    /// What `ask` learns from the gate; `None` in a forked child, which does not use its parent's gate.
    fn admission(&self, ask: impl FnOnce() -> Admitted) -> Option<Admission<'_>> {
        if self.fork_mark.is_in_child() {
            children::stop_in_child();
            return None;
        }
        Some(Admission::new(self, ask()))
    }

    /// The locks of the tables that the recorder of a forked child inherits.
    pub(crate) fn locks(&'static self) -> [&'static dyn HeldAtFork; 2] {
        [&self.interner, &self.definitions]
    }

    /// Called in a forked child that uses ggml and cannot be recorded: counts it as a loss.
    pub(crate) fn count_child(&self) {
        let header = &self.spool.header;
        if header.control().records(header.window()) {
            header.count_loss(LossCounter::ForkedChild, 1);
        }
    }

    /// Whether this is the process that records, and not a child that shares its memory.
    pub(crate) fn is_own_process(&self) -> bool {
        self.fork_mark.is_same_process()
    }

    /// Whether this is a forked child of the process that records.
    pub(crate) fn is_in_child(&self) -> bool {
        self.fork_mark.is_in_child()
    }

    /// Whether a graph run that begins now is recorded, for as long as it lasts, and which of the
    /// program's it is.
    pub(crate) fn admit_run(&self) -> Option<(Admission<'_>, u64)> {
        let number = self.gate.next_number();
        let admission = self.admission(|| self.gate.run(&self.spool.header, number))?;
        Some((admission, number))
    }

    /// Records of the run that this thread is in will come later, from a device's library:
    /// until the value is dropped.
    pub(crate) fn owe(&self) -> Owed<'_> {
        self.gate.owe(&self.spool.header);
        Owed::new(self)
    }

    /// The thread that was counted as being inside has left.
    fn leave(&self) {
        if !self.fork_mark.is_in_child() {
            self.spool.header.leave();
        }
    }

    /// Records nothing until `ggprof attach` has changed the program's code, and opens the gate.
    fn hold(&self) {
        self.spool.header.set_window(Window::NotYet);
        self.spool.header.set_control(Control::Window);
    }

    /// Ends `hold`: there is no code to change, so recording may begin.
    pub(crate) fn release(&self) {
        self.spool.header.set_window(Window::Open);
    }

    pub(crate) fn is_held(&self) -> bool {
        self.gate.is_held(&self.spool.header)
    }

    /// Starts a stopped recording, or stops a running one. Called by a signal handler: stores
    /// to the header, and nothing else.
    pub(crate) fn toggle(&self) {
        if self.is_own_process() && !self.is_held() {
            let header = &self.spool.header;
            let records = header.control().records(header.window());
            header.set_control(if records { Control::Stop } else { Control::Record });
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Begins an epoch: from here on everything is described anew, lasting objects at once.
    #[cold]
    fn begin_epoch(&self) {
        let mut interner = self.interner();
        let mut definitions = self.definitions();
        self.epoch_due.store(false, Ordering::Relaxed);
        self.epoch.fetch_add(1, Ordering::Release);
        fault_point!();
        definitions.begin_epoch(self);
        fault_point!();
        interner.begin_epoch(self, &mut definitions);
    }

    pub(crate) fn set_epoch_due(&self) {
        self.epoch_due.store(true, Ordering::Relaxed);
    }

    pub(crate) fn definitions(&self) -> Locked<'_, { rank::DEFINITIONS }, Definitions> {
        self.definitions.lock()
    }

    /// A block of the file; without one, recording may have ended.
    fn take_block(&self, wanted: BlockUse) -> Option<Block> {
        match self.spool.take_block(wanted, |lane| self.lanes.vacate(lane)) {
            Ok(block) => {
                if block.crowded {
                    self.set_epoch_due();
                }
                Some(block)
            }
            Err(NoBlock::AllBusy) => None,
            Err(NoBlock::Stop(reason)) => {
                current::stop(self, reason);
                None
            }
        }
    }

    pub(crate) fn interner(&self) -> Locked<'_, { rank::INTERNER }, Interner> {
        self.interner.lock()
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    pub(crate) fn next_run(&self) -> u32 {
        self.spool.header.next_graph_run()
    }

    pub(crate) fn next_split(&self) -> u32 {
        self.splits.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Graph runs recorded so far.
    pub(crate) fn runs(&self) -> u32 {
        self.spool.header.graph_runs() as u32
    }

    /// Counts what is missing from the recording, except what was not to be recorded.
    pub(crate) fn lose(&self, kind: LossCounter, n: u64) {
        if self.gate.misses(&self.spool.header) && !self.fork_mark.is_in_child() {
            self.spool.header.count_loss(kind, n);
        }
    }

    /// Whether no recorded graph runs, and what else is computed is not to be recorded.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.lanes.have_running_slots() && !self.gate.misses(&self.spool.header)
    }

    /// Called before the end of each graph run is written: a clock sample now and then.
    ///
    /// The first run always brings one, because a rate needs two and the program may be
    /// killed right after it; then the distance doubles from a millisecond on.
    pub(crate) fn sample_clock_if_due(&self, lane: &HeldLane<'_>) {
        let Some(mut sampling) = self.clock_sampling.try_lock() else { return };
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        if now - sampling.last_ns >= sampling.wait_ns {
            sampling.last_ns = now;
            sampling.wait_ns = (2 * sampling.wait_ns).clamp(1_000_000, CLOCK_SAMPLE_EVERY_NS);
            lane.put(&clock::sample().encode());
        }
    }

    /// `run` as for [`Self::lane`].
    pub(crate) fn stamp_end(&self, run: u32) {
        // Without a lane, this may be a child for which no fork handler ran; the file is its
        // parent's.
        let Some(lane) = self.lane(0, run).filter(HeldLane::writes) else { return };
        let sample = clock::sample();
        lane.put(&sample.encode());
        self.spool.header.set_end(sample.ticks);
    }
}
