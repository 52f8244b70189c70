//! A thread's shares of the ops of the graph now running.
//!
//! Each thread writes only its own log. The thread that called `graph_compute` reads all logs when
//! the graph has run (`fold`). ggml's own barrier at the end of the graph orders the two, except
//! for what a worker does after that barrier: it notes when it left, for itself only. The folding
//! thread completes a worker's very last share, which no other share follows.
//!
//! Threads come and go (ggml without OpenMP starts new ones for every graph), so logs are kept in a
//! pool. The log of a thread that has ended is handed out again only when the run it was written
//! for is over.
//!
//! # Hot path: no allocation, no locks, no panics

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::mapped;
use super::run_slot::RunSlot;
use super::share::Share;
use crate::arch;
use crate::fault::fault_point;

/// ggml allows 512 threads per graph; several graphs may run at once.
const LOGS: usize = 1024;
/// As many as the largest recordable graph has nodes.
pub(crate) const SHARES: usize = super::run_slot::MAX_NODES;

/// Logs begin at different offsets in a page. The folding thread reads all of them side by side,
/// and a cache has room for only eight lines with the same offset.
const STAGGERED: usize = 4096 / size_of::<Share>();
const STAGGER: usize = 11;

static POOL: [ThreadLog; LOGS] = [const { ThreadLog::new() }; LOGS];

/// How many shares ahead memory is prefetched: four cache lines. They are still in the cache of the
/// thread that folded, and a barrier stalls until this thread owns every line it wrote.
const AHEAD: usize = 10;

/// The log of one thread. `Cell`s are its own; atomics are read by others. Processors fetch
/// memory in pairs of cache lines, and a thread must not wait for its neighbour's.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ThreadLog {
    owner: AtomicU32,
    /// Stays when the thread is gone and its shares still have to be folded.
    os_thread: AtomicU32,
    shares: AtomicPtr<Share>,
    /// Behind the last share; the same as `shares` before the first.
    end: AtomicPtr<Share>,
    pub(crate) thread_index: AtomicU32,
    run: AtomicPtr<RunSlot>,
    generation: AtomicU64,
    next_position: Cell<u32>,
    n_threads: Cell<u32>,
    /// The share being computed; null between graphs.
    current: AtomicPtr<Share>,
    current_tensor: Cell<usize>,
    /// The function that computes the current share may compute the next nodes as well.
    may_go_on: AtomicBool,
    /// When the thread last reached a barrier behind the current share's start, or 0; how long
    /// it waited at those before.
    reached: AtomicU64,
    inner_wait: AtomicU64,
    left: AtomicU64,
    /// Shares of the run that ended without a barrier.
    without_barrier: AtomicU32,
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
    /// Offsets of these fields, which `hooks::barrier` reads and writes.
    pub(crate) const N_THREADS: usize = std::mem::offset_of!(ThreadLog, n_threads);
    pub(crate) const CURRENT: usize = std::mem::offset_of!(ThreadLog, current);
    pub(crate) const REACHED: usize = std::mem::offset_of!(ThreadLog, reached);
    pub(crate) const LEFT: usize = std::mem::offset_of!(ThreadLog, left);
    pub(crate) const INNER_WAIT: usize = std::mem::offset_of!(ThreadLog, inner_wait);

    const fn new() -> Self {
        ThreadLog {
            owner: AtomicU32::new(0),
            os_thread: AtomicU32::new(0),
            shares: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            thread_index: AtomicU32::new(0),
            run: AtomicPtr::new(ptr::null_mut()),
            generation: AtomicU64::new(0),
            next_position: Cell::new(0),
            n_threads: Cell::new(0),
            current: AtomicPtr::new(ptr::null_mut()),
            current_tensor: Cell::new(0),
            may_go_on: AtomicBool::new(false),
            reached: AtomicU64::new(0),
            inner_wait: AtomicU64::new(0),
            left: AtomicU64::new(0),
            without_barrier: AtomicU32::new(0),
        }
    }

    /// A log for this thread. `None` when all are in use.
    pub(crate) fn take(os_thread: u32) -> Option<TakenLog> {
        let (number, log) = POOL.iter().enumerate().find(|(_, log)| log.try_own(os_thread))?;
        let log = TakenLog(log);
        fault_point!();
        if log.0.shares.load(Relaxed).is_null() {
            let shares = mapped::array::<Share>(SHARES + STAGGERED)?;
            // SAFETY: the offset is smaller than `STAGGERED`, and there are as many shares more than
            // `SHARES`: one is left for the mark at the end.
            let shares = unsafe { shares.add(number * STAGGER % STAGGERED) };
            log.0.end.store(shares.as_ptr(), Relaxed);
            log.0.shares.store(shares.as_ptr(), Relaxed);
        }
        log.0.os_thread.store(os_thread, Relaxed);
        log.0.current.store(ptr::null_mut(), Relaxed);
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

    /// Whether the run that its thread worked for last has still to be folded; the thread may have ended.
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
        self.end.store(self.shares.load(Relaxed), Relaxed);
        self.thread_index.store(thread_index, Relaxed);
        self.next_position.set(0);
        self.may_go_on.store(false, Relaxed);
        self.without_barrier.store(0, Relaxed);
        self.current.store(ptr::null_mut(), Relaxed);
        self.run.store(ptr::from_ref(run).cast_mut(), Relaxed);
        self.generation.store(generation, Relaxed);
    }

    pub(crate) fn takes_part_in(&self, run: &RunSlot, generation: u64) -> bool {
        ptr::eq(self.run.load(Relaxed), run) && self.generation.load(Relaxed) == generation
    }

    /// Where the next node is expected.
    pub(crate) fn go_to(&self, position: u32) {
        self.next_position.set(position);
    }

    /// The position of the tensor in the run that the thread works for; `None` if it is of another run.
    #[inline(always)]
    pub(crate) fn position_of(&self, tensor: usize) -> Option<u32> {
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let run = unsafe { self.run.load(Relaxed).as_ref() }?;
        if !run.still_runs(self.generation.load(Relaxed)) {
            return None;
        }
        run.find_near(tensor, self.next_position.get())
    }

    /// Which of the next nodes of the run are among these tensors: bit `d` stands for the node `d`
    /// positions further on. The nodes of a fusion follow each other closely.
    pub(crate) fn fused_behind(&self, position: u32, tensors: [usize; 3]) -> u32 {
        const CLOSE: u32 = 4;
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let Some(run) = (unsafe { self.run.load(Relaxed).as_ref() }) else { return 0 };
        (1..=CLOSE).fold(0, |bits, distance| match run.node_at(position + distance) {
            Some(node) if tensors.contains(&node) => bits | 1 << distance,
            _ => bits,
        })
    }

    /// Called before the function of the node at this position. If the function gets the graph and the
    /// position, it may also compute the nodes that follow. If the previous function did get them, it
    /// computed all nodes up to this one.
    pub(crate) fn note_reach(&self, position: u32, [graph, number, _]: [usize; 3]) {
        if self.may_go_on.load(Relaxed) {
            self.current().into_iter().for_each(|share| share.fuse_until(position));
        }
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let run = unsafe { self.run.load(Relaxed).as_ref() };
        let is_told = number as u32 == position && run.is_some_and(|run| run.is_graph(graph));
        self.may_go_on.store(is_told, Relaxed);
    }

    /// Whether the thread is computing this node now. The last node of one run
    /// may be the first of the next, so the run has to be the same, too.
    #[inline(always)]
    pub(crate) fn is_current(&self, tensor: usize) -> bool {
        // SAFETY: run slots live as long as the process (`lane::Lanes`).
        let run = unsafe { self.run.load(Relaxed).as_ref() };
        self.current_tensor.get() == tensor
            && !self.current.load(Relaxed).is_null()
            && run.is_some_and(|run| run.still_runs(self.generation.load(Relaxed)))
    }

    /// A new share begins, and with it the one before ends. False when full.
    #[inline(always)]
    pub(crate) fn begin(&self, tensor: usize, position: u32, now: u64) -> bool {
        let place = self.end.load(Relaxed);
        if place >= self.shares.load(Relaxed).wrapping_add(SHARES) {
            self.end_without_next(now);
            return false;
        }
        let (before, reached) = (self.current(), self.reached.load(Relaxed));
        arch::ask_to_write(place.wrapping_add(AHEAD));
        // SAFETY: within the SHARES entries of the log (`take`), as was just checked.
        unsafe { &*place }.begin(position, now);
        self.reached.store(0, Relaxed);
        self.end.store(place.wrapping_add(1), Relaxed);
        self.current.store(place, Relaxed);
        self.current_tensor.set(tensor);
        self.next_position.set(position + 1);
        self.finish(before, reached, now);
        true
    }

    #[cold]
    #[inline(never)]
    fn end_without_next(&self, now: u64) {
        self.finish(self.current(), self.reached.load(Relaxed), now);
        self.current.store(ptr::null_mut(), Relaxed);
    }

    /// Without a barrier since it began, a share ends where the next begins.
    #[inline(always)]
    fn finish(&self, share: Option<&Share>, reached: u64, now: u64) {
        match share {
            None => {}
            Some(share) if reached == 0 => {
                let before = self.without_barrier.load(Relaxed);
                self.without_barrier.store(before + 1, Relaxed);
                share.finish(now, 0, 0);
            }
            Some(share) => {
                let (inner_wait, left) = (self.inner_wait.load(Relaxed), self.left.load(Relaxed));
                share.finish(reached, inner_wait, left.wrapping_sub(reached));
            }
        }
    }

    /// A thread alone passes barriers without waiting: nothing to time.
    #[inline(always)]
    pub(crate) fn has_company(&self) -> bool {
        self.n_threads.get() > 1
    }

    /// The share being computed, if any.
    #[inline(always)]
    fn current(&self) -> Option<&Share> {
        // SAFETY: points into the log's own mapping, which is never given back.
        unsafe { self.current.load(Relaxed).as_ref() }
    }

    /// Whether its thread is in the middle of an op.
    pub(crate) fn is_in_op(&self) -> bool {
        !self.current.load(Relaxed).is_null() && self.awaits_folding()
    }

    /// When its thread last began a share or reached a barrier.
    pub(crate) fn last_seen(&self) -> u64 {
        let began = self.current().map_or(0, Share::start);
        began.max(self.reached.load(Relaxed)).max(self.left.load(Relaxed))
    }

    /// The thread reached a barrier. Kernels have barriers of their own, so the
    /// one before this one turns out to have been inside the op. False between graphs.
    #[inline(always)]
    pub(crate) fn reach_barrier(&self, now: u64) -> bool {
        if self.current.load(Relaxed).is_null() {
            return false;
        }
        let waited = match self.reached.load(Relaxed) {
            0 => 0,
            before => {
                self.inner_wait.load(Relaxed) + self.left.load(Relaxed).saturating_sub(before)
            }
        };
        self.inner_wait.store(waited, Relaxed);
        self.reached.store(now, Relaxed);
        true
    }

    #[inline(always)]
    pub(crate) fn leave_barrier(&self, now: u64) {
        self.left.store(now, Relaxed);
    }

    /// The nodes after this share's were computed with it.
    pub(crate) fn set_fused(&self, distances: u32) {
        if let Some(share) = self.current() {
            share.set_fused(distances);
        }
    }

    /// Whether the barrier after each op is not seen, because the compiler put it in line. Barriers
    /// inside of ops may still be seen. Where the barrier after each op is seen, no share ends
    /// without one.
    pub(crate) fn waits_unseen(&self) -> bool {
        let (shares, end) = (self.shares.load(Relaxed) as usize, self.end.load(Relaxed) as usize);
        // All but the last, which has not been finished.
        let ended = ((end - shares) / size_of::<Share>()).saturating_sub(1);
        self.without_barrier.load(Relaxed) as usize * 4 > ended
    }

    /// The first share, for the folding thread; behind the last one there is a mark. The last one
    /// is finished here: its thread waited until the split ended, and may still be on its way out
    /// of the barrier. `is_whole`: all nodes were computed. `waits_unseen`: the last barrier that was
    /// seen is one inside of the op.
    pub(crate) fn finished_shares(
        &self,
        split_end: u64,
        is_whole: bool,
        waits_unseen: bool,
    ) -> &Share {
        if let Some(last) = self.current() {
            if is_whole && self.may_go_on.load(Relaxed) {
                // SAFETY: run slots live as long as the process (`lane::Lanes`).
                let run = unsafe { self.run.load(Relaxed).as_ref() };
                last.fuse_until(run.map_or(0, RunSlot::n_nodes));
            }
            match self.reached.load(Relaxed) {
                0 => last.finish(split_end, 0, 0),
                reached => {
                    let inner_wait = self.inner_wait.load(Relaxed);
                    let left = if waits_unseen { self.left.load(Relaxed) } else { split_end };
                    last.finish(reached, inner_wait, left.wrapping_sub(reached));
                }
            }
        }
        // SAFETY: a log that takes part in a run was taken, so its shares are mapped; `end` is
        // right behind the last of SHARES at most, and there are more (`take`).
        unsafe {
            (*self.end.load(Relaxed)).mark_end();
            &*self.shares.load(Relaxed)
        }
    }
}
