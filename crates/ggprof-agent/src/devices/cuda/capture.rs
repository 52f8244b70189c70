//! In which order the nodes of a CUDA graph were captured. A graph without branches runs its nodes
//! in this order. So its kernels can be told apart even if CUPTI was not attached at the capture
//! and its node numbers are therefore unknown.

use std::sync::atomic::Ordering;

use super::driver::{CaptureDriver, Stream};
use super::process::{ATTACHED, CUDA, work};
use crate::fault::fault_point;
use crate::observe::fail_open::contained;
use crate::observe::visits::FollowsVisits;

/// A graph being captured on this thread.
#[derive(Debug)]
pub(crate) struct Capture {
    driver: CaptureDriver,
    stream: usize,
    /// Positions of ggml's nodes, and how many nodes the CUDA graph had before.
    steps: Vec<(u32, usize)>,
}

/// The positions of a graph's kernels, copies and fills, in the order they run.
pub(crate) type LaunchOrder = Box<[u32]>;

impl Capture {
    pub(crate) fn begin(driver: CaptureDriver, stream: usize) -> Capture {
        Capture { driver, stream, steps: Vec::new() }
    }

    /// The library is about to launch the node at this position.
    pub(crate) fn visit(&mut self, position: u32) {
        fault_point!();
        if let Some(count) = self.driver.node_count(self.stream as Stream) {
            self.steps.push((position, count));
        }
    }

    /// To be called before the capture ends. `None` where the order identifies nothing.
    pub(crate) fn finish(self) -> Option<LaunchOrder> {
        let works = self.driver.works(self.stream as Stream)?;
        Some(order(&self.steps, &works))
    }
}

/// The CUDA graph that the split of a thread is captured into or launched from.
#[derive(Debug, Default)]
pub(crate) struct CapturedGraph {
    capture: Option<Capture>,
    /// Of the graph captured last, until it is launched; `Some(None)` if its order identifies nothing.
    order: Option<Option<LaunchOrder>>,
    /// CUPTI has seen its nodes copied into an executable graph.
    pub(super) copied: bool,
    /// The one launched last.
    pub(super) executable: usize,
}

impl CapturedGraph {
    /// The program begins to capture, on this stream.
    #[cold]
    pub(crate) fn begin(&mut self, stream: usize) {
        fault_point!();
        let driver = CUDA.get().and_then(|cuda| cuda.captures);
        self.capture = driver.map(|driver| Capture::begin(driver, stream));
        self.copied = false;
    }

    #[cold]
    pub(crate) fn end(&mut self) {
        fault_point!();
        self.order = self.capture.take().map(Capture::finish);
    }

    /// The graph is launched, for the first time if it was just captured.
    pub(crate) fn launch(&mut self, executable: usize) {
        self.executable = executable;
        fault_point!();
        if let Some(order) = self.order.take()
            && let Some(work) = work().as_mut()
        {
            let attached = ATTACHED.load(Ordering::Acquire);
            work.orders.learn(executable as u64, order, self.copied, attached);
        }
    }
}

impl FollowsVisits for CapturedGraph {
    /// Its loop comes to the node at this position.
    fn visit(&mut self, position: u32) {
        if let Some(capture) = &mut self.capture {
            contained((), || capture.visit(position));
        }
    }
}

fn order(steps: &[(u32, usize)], works: &[bool]) -> LaunchOrder {
    let position_of = |node: usize| {
        let next = steps.partition_point(|(_, before)| *before <= node);
        next.checked_sub(1).map_or(ggprof_spool::layout::NO_NODE, |step| steps[step].0)
    };
    let working = works.iter().enumerate().filter(|(_, works)| **works);
    working.map(|(node, _)| position_of(node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_belong_to_the_position_visited_last_before_them() {
        // A view between two ops, two kernels for the second, and an event's node.
        let steps = [(0, 0), (1, 1), (2, 1), (5, 4)];
        let works = [true, true, false, true, true];
        assert_eq!(*order(&steps, &works), [0, 2, 2, 5]);
        assert_eq!(*order(&[(7, 1)], &[true, true]), [ggprof_spool::layout::NO_NODE, 7]);
    }
}
