//! The running graph as worker threads need it: which tensors, in which order.
//!
//! Workers search a copy of the node pointers, never ggml's own array: a worker may still look here
//! when a run is just ending, and ggml may free its array then. The pointers are only compared.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::mapped;
use super::thread_log::ThreadLog;

/// Graphs have some thousands of nodes; what is beyond is counted as lost.
pub(crate) const MAX_NODES: usize = 128 * 1024;
/// ggml's own limit of threads per graph.
const MAX_LOGS: usize = 512;
/// Between two computed nodes lie at most this many views and the like, before
/// the whole graph is searched.
const NEAR: u32 = 24;

/// One running graph. Lives as long as the process; used again and again.
#[derive(Debug)]
pub(crate) struct RunSlot {
    running: Running,
    taking_part: TakingPart,
}

/// What every thread looks at for every op, in cache lines of its own: nothing in them changes
/// while the graph runs.
#[derive(Debug)]
#[repr(align(128))]
struct Running {
    /// Odd while a graph runs.
    generation: AtomicU64,
    nodes: AtomicPtr<AtomicUsize>,
    n_nodes: AtomicU32,
    /// The address of ggml's graph.
    graph: AtomicUsize,
}

#[derive(Debug)]
#[repr(align(128))]
struct TakingPart {
    logs: [AtomicPtr<ThreadLog>; MAX_LOGS],
    n_logs: AtomicU32,
}

impl RunSlot {
    pub(crate) const fn new() -> Self {
        RunSlot {
            running: Running {
                generation: AtomicU64::new(0),
                nodes: AtomicPtr::new(std::ptr::null_mut()),
                n_nodes: AtomicU32::new(0),
                graph: AtomicUsize::new(0),
            },
            taking_part: TakingPart {
                logs: [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_LOGS],
                n_logs: AtomicU32::new(0),
            },
        }
    }

    /// Copies the graph's nodes, before [`Self::begin`]; false without memory. Most graphs come
    /// again: what is the same stays in the caches of all cores.
    pub(crate) fn set_nodes(&self, graph: usize, nodes: &[*const u8]) -> bool {
        let Some(table) = self.node_table() else { return false };
        self.running.graph.store(graph, Ordering::Relaxed);
        for (place, &node) in table.iter().zip(nodes) {
            if place.load(Ordering::Relaxed) != node as usize {
                place.store(node as usize, Ordering::Relaxed);
            }
        }
        true
    }

    fn node_table(&self) -> Option<&[AtomicUsize]> {
        let mut nodes = self.running.nodes.load(Ordering::Acquire);
        if nodes.is_null() {
            nodes = mapped::array::<AtomicUsize>(MAX_NODES)?.as_ptr();
            self.running.nodes.store(nodes, Ordering::Release);
        }
        // SAFETY: a mapping of MAX_NODES words that is never given back.
        Some(unsafe { std::slice::from_raw_parts(nodes, MAX_NODES) })
    }

    /// A graph begins to run, whatever became of the one before. Called by the holder of the
    /// slot's lane alone, as is [`Self::end`].
    pub(crate) fn begin(&self, n_nodes: usize) {
        self.running.n_nodes.store(n_nodes.min(MAX_NODES) as u32, Ordering::Relaxed);
        self.taking_part.n_logs.store(0, Ordering::Relaxed);
        let next_odd = (self.running.generation.load(Ordering::Relaxed) + 1) | 1;
        self.running.generation.store(next_odd, Ordering::Release);
    }

    /// No graph runs any more.
    pub(crate) fn end(&self) {
        let next_even = (self.running.generation.load(Ordering::Relaxed) + 1) & !1;
        self.running.generation.store(next_even, Ordering::Release);
    }

    pub(crate) fn n_nodes(&self) -> u32 {
        self.running.n_nodes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_graph(&self, address: usize) -> bool {
        self.running.graph.load(Ordering::Relaxed) == address
    }

    #[inline(always)]
    pub(crate) fn is_running(&self, generation: u64) -> bool {
        self.running.generation.load(Ordering::Acquire) == generation && generation & 1 == 1
    }

    /// Whether the run that a thread has joined is still running.
    #[inline(always)]
    pub(crate) fn still_runs(&self, joined: u64) -> bool {
        self.running.generation.load(Ordering::Acquire) == joined
    }

    pub(crate) fn running_generation(&self) -> Option<u64> {
        let generation = self.running.generation.load(Ordering::Acquire);
        (generation & 1 == 1).then_some(generation)
    }

    /// The tensor's position, searched where the thread will meet it next.
    #[inline(always)]
    pub(crate) fn find_near(&self, tensor: usize, from: u32) -> Option<u32> {
        if self.node_at(from) == Some(tensor) {
            return Some(from);
        }
        let to = (from + NEAR).min(self.running.n_nodes.load(Ordering::Relaxed));
        self.find_between(tensor, from, to)
    }

    pub(crate) fn find(&self, tensor: usize) -> Option<u32> {
        self.find_between(tensor, 0, self.running.n_nodes.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn node_at(&self, position: u32) -> Option<usize> {
        let nodes = self.running.nodes.load(Ordering::Relaxed);
        // SAFETY: as in `find_between`.
        (position < self.running.n_nodes.load(Ordering::Relaxed))
            .then(|| unsafe { &*nodes.add(position as usize) }.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn find_between(&self, tensor: usize, from: u32, to: u32) -> Option<u32> {
        let nodes = self.running.nodes.load(Ordering::Relaxed);
        (from..to).find(|&position| {
            // SAFETY: `n_nodes` is only set after the table was mapped, and is MAX_NODES at
            // most; the position is below.
            let node = unsafe { &*nodes.add(position as usize) };
            node.load(Ordering::Relaxed) == tensor
        })
    }

    /// A thread's log takes part in the run. False when there are too many.
    pub(crate) fn register(&self, log: &'static ThreadLog) -> bool {
        let index = self.taking_part.n_logs.fetch_add(1, Ordering::AcqRel) as usize;
        let Some(place) = self.taking_part.logs.get(index) else { return false };
        place.store(std::ptr::from_ref(log).cast_mut(), Ordering::Release);
        true
    }

    /// The logs that took part, for the folding thread.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &'static ThreadLog> {
        let n = (self.taking_part.n_logs.load(Ordering::Acquire) as usize).min(MAX_LOGS);
        let generation = self.running.generation.load(Ordering::Relaxed);
        let logs = self.taking_part.logs[..n].iter().filter_map(|log| {
            // SAFETY: only references to the static pool are ever stored.
            unsafe { log.load(Ordering::Acquire).as_ref() }
        });
        // A place that was not filled in holds a log of an earlier run.
        logs.filter(move |log| log.takes_part_in(self, generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_not_ended_does_not_invert_those_behind_it() {
        let slot = RunSlot::new();
        slot.end();
        assert_eq!(slot.running_generation(), None, "none was begun");
        slot.begin(0);
        let first = slot.running_generation().expect("it runs");
        slot.begin(0);
        let second = slot.running_generation().expect("the next one runs");
        assert!(slot.is_running(second) && !slot.is_running(first));
        slot.end();
        slot.end();
        assert_eq!(slot.running_generation(), None);
        slot.begin(0);
        assert!(slot.running_generation().is_some_and(|third| third > second));
    }
}
