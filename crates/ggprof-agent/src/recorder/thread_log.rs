//! A thread's shares of the ops of the graph now running.
//!
//! Each thread writes its own log and nobody else's; the thread that called
//! `graph_compute` reads all of them when the graph has run (`fold`). ggml's own
//! barrier at the graph's end orders the two, except for what a worker does
//! after that barrier: the wait of its very last share. So the fields are
//! atomics, and `fold` works that wait out by itself.
//!
//! Threads come and go (ggml without OpenMP starts new ones for every graph), so
//! logs are kept in a pool. A log whose thread has ended is only handed out
//! again when the run it was written for is over.
//!
//! # Hot path: no allocation, no locks, no panics

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::mapped;
use super::run_slot::RunSlot;
use crate::fault::fault_point;

/// ggml allows 512 threads per graph; several graphs may run at once.
const LOGS: usize = 1024;
/// As many as the largest recordable graph has nodes.
pub(crate) const SHARES: usize = super::run_slot::MAX_NODES;

static POOL: [ThreadLog; LOGS] = [const { ThreadLog::new() }; LOGS];

/// One thread's part of one op.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) start: AtomicU64,
    /// When the thread last reached a barrier, or the next op; 0 before that.
    pub(crate) end: AtomicU64,
    pub(crate) inner_wait: AtomicU64,
    pub(crate) after_wait: AtomicU64,
    pub(crate) position: AtomicU32,
    /// Bit `d`: the node `d` places further on was computed with this one.
    pub(crate) fused: AtomicU32,
}

/// The log of one thread. `Cell`s are its own; atomics are read by others. Processors fetch
/// memory in pairs of cache lines, and a thread must not wait for its neighbour's.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ThreadLog {
    owner: AtomicU32,
    /// Stays when the thread is gone and its shares still have to be folded.
    os_thread: AtomicU32,
    shares: AtomicPtr<Share>,
    pub(crate) count: AtomicU32,
    pub(crate) thread_index: AtomicU32,
    run: AtomicPtr<RunSlot>,
    generation: AtomicU64,
    next_position: Cell<u32>,
    n_threads: Cell<u32>,
    /// The share being computed; null between graphs.
    current: Cell<*const Share>,
    current_tensor: Cell<usize>,
}

// SAFETY: the cells are only touched by the owning thread (`owner` is taken by
// compare-and-swap); everything others read is atomic.
unsafe impl Sync for ThreadLog {}

/// A log that was taken from the pool, and goes back unless it is kept.
#[derive(Debug)]
pub(crate) struct TakenLog(&'static ThreadLog);

impl TakenLog {
    /// Until [`ThreadLog::give_back`].
    pub(crate) fn keep(self) -> &'static ThreadLog {
        let log = self.0;
        std::mem::forget(self);
        log
    }
}

impl Drop for TakenLog {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl ThreadLog {
    /// Where the number of threads is, for hooks that look before they call.
    pub(crate) const N_THREADS: usize = std::mem::offset_of!(ThreadLog, n_threads);

    const fn new() -> Self {
        ThreadLog {
            owner: AtomicU32::new(0),
            os_thread: AtomicU32::new(0),
            shares: AtomicPtr::new(ptr::null_mut()),
            count: AtomicU32::new(0),
            thread_index: AtomicU32::new(0),
            run: AtomicPtr::new(ptr::null_mut()),
            generation: AtomicU64::new(0),
            next_position: Cell::new(0),
            n_threads: Cell::new(0),
            current: Cell::new(ptr::null()),
            current_tensor: Cell::new(0),
        }
    }

    /// A log for this thread. `None` when all are in use.
    pub(crate) fn take(os_thread: u32) -> Option<TakenLog> {
        let log = TakenLog(POOL.iter().find(|log| log.try_own(os_thread))?);
        fault_point!();
        if log.0.shares.load(Relaxed).is_null() {
            log.0.shares.store(mapped::array::<Share>(SHARES)?.as_ptr(), Relaxed);
        }
        log.0.os_thread.store(os_thread, Relaxed);
        log.0.current.set(ptr::null());
        log.0.current_tensor.set(0);
        Some(log)
    }

    /// In a forked child: the threads that had logs are the parent's.
    pub(crate) fn forget_all() {
        for log in POOL.iter().filter(|log| log.owner.load(Relaxed) != 0) {
            log.run.store(ptr::null_mut(), Relaxed);
            log.give_back();
        }
    }

    fn try_own(&self, os_thread: u32) -> bool {
        if self.owner.load(Relaxed) != 0 || self.awaits_folding() {
            return false;
        }
        let acquire = std::sync::atomic::Ordering::Acquire;
        self.owner.compare_exchange(0, os_thread, acquire, Relaxed).is_ok()
    }

    /// Its thread is gone, but the run it worked for has not been folded.
    fn awaits_folding(&self) -> bool {
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let run = unsafe { self.run.load(Relaxed).as_ref() };
        run.is_some_and(|run| run.is_running(self.generation.load(Relaxed)))
    }

    pub(crate) fn give_back(&self) {
        self.owner.store(0, std::sync::atomic::Ordering::Release);
    }

    pub(crate) fn os_thread(&self) -> u32 {
        self.os_thread.load(Relaxed)
    }

    /// Starts on a new run: its own old shares are folded by now.
    pub(crate) fn join(
        &self,
        run: &'static RunSlot,
        generation: u64,
        thread_index: u32,
        n_threads: u32,
    ) {
        self.n_threads.set(n_threads);
        self.count.store(0, Relaxed);
        self.thread_index.store(thread_index, Relaxed);
        self.next_position.set(0);
        self.current.set(ptr::null());
        self.run.store(ptr::from_ref(run).cast_mut(), Relaxed);
        self.generation.store(generation, Relaxed);
    }

    pub(crate) fn takes_part_in(&self, run: &RunSlot, generation: u64) -> bool {
        ptr::eq(self.run.load(Relaxed), run) && self.generation.load(Relaxed) == generation
    }

    /// The next node will be met here.
    pub(crate) fn go_to(&self, position: u32) {
        self.next_position.set(position);
    }

    /// Where in the run it works for the tensor stands; `None` for another run.
    #[inline(always)]
    pub(crate) fn position_of(&self, tensor: usize) -> Option<u32> {
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let run = unsafe { self.run.load(Relaxed).as_ref() }?;
        if !run.is_running(self.generation.load(Relaxed)) {
            return None;
        }
        run.find_near(tensor, self.next_position.get())
    }

    /// Which of the tensors are among the next nodes of the run: bit `d` for the
    /// node `d` places on. Fusions take nodes that follow each other closely.
    pub(crate) fn fused_behind(&self, position: u32, tensors: [usize; 3]) -> u32 {
        const CLOSE: u32 = 4;
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let Some(run) = (unsafe { self.run.load(Relaxed).as_ref() }) else { return 0 };
        (1..=CLOSE).fold(0, |bits, distance| match run.node_at(position + distance) {
            Some(node) if tensors.contains(&node) => bits | 1 << distance,
            _ => bits,
        })
    }

    /// Whether the thread is computing this node now. The last node of one run
    /// may be the first of the next, so the run has to be the same, too.
    #[inline(always)]
    pub(crate) fn is_current(&self, tensor: usize) -> bool {
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let run = unsafe { self.run.load(Relaxed).as_ref() };
        self.current_tensor.get() == tensor
            && !self.current.get().is_null()
            && run.is_some_and(|run| run.is_running(self.generation.load(Relaxed)))
    }

    /// A new share begins, and with it the one before ends. False when full.
    #[inline(always)]
    pub(crate) fn begin(&self, tensor: usize, position: u32, now: u64) -> bool {
        self.end_current(now);
        self.next_position.set(position + 1);
        let count = self.count.load(Relaxed);
        if count as usize >= SHARES {
            self.current.set(ptr::null());
            return false;
        }
        // SAFETY: `shares` holds SHARES entries (`take`), and `count` is below.
        let share = unsafe { &*self.shares.load(Relaxed).add(count as usize) };
        share.start.store(now, Relaxed);
        share.end.store(0, Relaxed);
        share.inner_wait.store(0, Relaxed);
        share.after_wait.store(0, Relaxed);
        share.position.store(position, Relaxed);
        share.fused.store(0, Relaxed);
        self.count.store(count + 1, Relaxed);
        self.current.set(share);
        self.current_tensor.set(tensor);
        true
    }

    /// A thread alone passes barriers without waiting: nothing to time.
    #[inline(always)]
    pub(crate) fn has_company(&self) -> bool {
        self.n_threads.get() > 1
    }

    /// The share being computed, if any.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<&Share> {
        // SAFETY: points into the log's own mapping, which is never given back.
        unsafe { self.current.get().as_ref() }
    }

    /// Without a barrier since it began, a share ends where the next begins.
    #[inline(always)]
    fn end_current(&self, now: u64) {
        if let Some(share) = self.current()
            && share.end.load(Relaxed) == 0
        {
            share.end.store(now, Relaxed);
        }
    }

    /// The first `count` shares, for the folding thread.
    pub(crate) fn shares(&self) -> &[Share] {
        let shares = self.shares.load(Relaxed);
        if shares.is_null() {
            return &[];
        }
        // SAFETY: `shares` holds SHARES entries and `count` never exceeds it.
        unsafe { std::slice::from_raw_parts(shares, self.count.load(Relaxed) as usize) }
    }
}

impl Share {
    /// The thread reached a barrier. Kernels have barriers of their own, so the
    /// one before this one turns out to have been inside the op.
    #[inline(always)]
    pub(crate) fn reach_barrier(&self, now: u64) {
        let waited = self.after_wait.load(Relaxed);
        if waited != 0 {
            self.inner_wait.store(self.inner_wait.load(Relaxed) + waited, Relaxed);
            self.after_wait.store(0, Relaxed);
        }
        self.end.store(now, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn leave_barrier(&self, now: u64) {
        let reached = self.end.load(Relaxed);
        self.after_wait.store(now.saturating_sub(reached), Relaxed);
    }
}
