//! Keeping facts: per thread while a graph runs, in the file once it has run.
//!
//! * `this_thread`: what the agent keeps in thread-local memory;
//! * `thread_log`: a thread's shares of the ops of the graph now running;
//! * `run_slot`: the running graph as the worker threads need it;
//! * `lane`: the right to write into the file, owned by one thread at a time;
//! * `fold`: the shares of all threads into one record per op;
//! * `intern`: texts, nodes and graph shapes, written once each;
//! * `spool_file`: creating, reserving and mapping the file.

pub(crate) mod fold;
pub(crate) mod intern;
pub(crate) mod lane;
pub(crate) mod mapped;
pub(crate) mod run_slot;
pub(crate) mod spool_file;
pub(crate) mod this_thread;
pub(crate) mod thread_log;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ggprof_spool::layout::LossKind;
use ggprof_spool::writer::HeaderFacts;

use crate::config::{self, Config};
use crate::{clock, lifecycle};
use intern::Interner;
use lane::{HeldLane, Lanes};
use spool_file::SpoolFile;

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
    pid: u32,
    lanes: Lanes,
    interner: Mutex<Interner>,
    runs: AtomicU32,
    splits: AtomicU32,
    clock_sampling: Mutex<ClockSampling>,
}

impl Recorder {
    pub(crate) fn create(config: &Config) -> Result<Recorder, String> {
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
        let recorder = Recorder {
            spool: SpoolFile::create(config, &facts)?,
            threads: config.threads,
            serialize: config.serialize,
            pid,
            lanes: Lanes::new(),
            interner: Mutex::new(Interner::default()),
            runs: AtomicU32::new(0),
            splits: AtomicU32::new(0),
            clock_sampling: Mutex::new(ClockSampling { last_ns: first.monotonic_ns, wait_ns: 0 }),
        };
        if let Some(lane) = recorder.lane(0) {
            lane.put(&first.encode());
        }
        Ok(recorder)
    }

    /// The right to write, preferably the lane used last. `None` when all are
    /// taken, and in a child that came by a raw `fork` system call.
    pub(crate) fn lane(&self, preferred: usize) -> Option<HeldLane<'_>> {
        if !self.is_of_this_process() {
            lifecycle::stop_in_child();
            return None;
        }
        let lane = self.lanes.hold(self, preferred);
        if lane.is_none() {
            self.lose(LossKind::NoLane, 1);
        }
        lane
    }

    pub(crate) fn interner(&self) -> MutexGuard<'_, Interner> {
        self.interner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    pub(crate) fn next_run(&self) -> u32 {
        self.runs.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_split(&self) -> u32 {
        self.splits.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Graph runs begun so far.
    pub(crate) fn runs(&self) -> u32 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Whether this is the process that records, and not a child that shares its memory.
    pub(crate) fn is_of_this_process(&self) -> bool {
        std::process::id() == self.pid
    }

    pub(crate) fn lose(&self, kind: LossKind, n: u64) {
        self.spool.header.count_loss(kind, n);
    }

    /// Called before the end of each graph run is written: a clock sample now and then.
    ///
    /// The first run always brings one, because a rate needs two and the program may be
    /// killed right after it; then the distance doubles from a millisecond on.
    pub(crate) fn sample_clock_if_due(&self, lane: &HeldLane<'_>) {
        let Ok(mut sampling) = self.clock_sampling.try_lock() else { return };
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        if now - sampling.last_ns >= sampling.wait_ns {
            sampling.last_ns = now;
            sampling.wait_ns = (2 * sampling.wait_ns).clamp(1_000_000, CLOCK_SAMPLE_EVERY_NS);
            lane.put(&clock::sample().encode());
        }
    }

    pub(crate) fn stamp_end(&self) {
        // Without a lane this may be a child that no handler told us of; the
        // file is its parent's.
        let Some(lane) = self.lane(0) else { return };
        let sample = clock::sample();
        lane.put(&sample.encode());
        self.spool.header.set_end(sample.ticks);
    }
}
