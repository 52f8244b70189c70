//! Ops of a library that only shows a tick after each computed node, on thread 0. The order of the
//! graph tells which node a tick belongs to. Versions differ in whether views tick and whether a
//! fused pair ticks once, so the number of ticks decides. If no known way gives that number, or the
//! graph was aborted, the ticks are counted as lost; nothing is guessed.

use std::cell::Cell;

use ggprof_spool::layout::{LossCounter, MEASURED_HOST, OP_FUSED};

use super::instance::Instance;
use super::node;
use super::this_thread::ThisThread;
use super::ticking::ProgramCallback;
use crate::fault::fault_point;
use crate::ffi::tensor::{Tensor, TensorLayout};
use crate::memory;
use crate::recorder::fold::{Folded, FoldedSplit, op_of_one_thread};
use crate::recorder::lane::HeldLane;

/// The moments of one graph. ggml's callback is given its address, and may read it on any
/// thread; cells are those of the thread that computes the graph.
#[derive(Debug)]
pub(crate) struct Ticks {
    moments: Box<[Cell<u64>]>,
    count: Cell<usize>,
    thread: *const ThisThread,
    /// The callback that the program itself wants called.
    pub(crate) program_callback: Option<ProgramCallback>,
}

impl Ticks {
    pub(crate) fn with_room_for(
        nodes: usize,
        thread: &ThisThread,
        program_callback: Option<ProgramCallback>,
    ) -> Box<Ticks> {
        let mut moments = Vec::new();
        memory::made_room(moments.try_reserve_exact(nodes));
        moments.resize(nodes, Cell::new(0));
        let moments = moments.into_boxed_slice();
        Box::new(Ticks { moments, count: Cell::new(0), thread, program_callback })
    }

    /// Runs inside ggml's loop: never allocates.
    pub(crate) fn note(&self, this: &ThisThread, now: u64) {
        if !std::ptr::eq(self.thread, this) {
            return;
        }
        let count = self.count.get();
        if let Some(moment) = self.moments.get(count) {
            moment.set(now);
            self.count.set(count + 1);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.moments().len()
    }

    fn moments(&self) -> &[Cell<u64>] {
        self.moments.get(..self.count.get()).unwrap_or_default()
    }
}

/// What decides whether a node ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traits {
    idle: bool,
    to_compute: bool,
    /// A multiplication of the norm right before it, which may be fused with it.
    ends_fusion: bool,
}

/// Writes one op per tick; `on_fused` hears of fusions first.
pub(crate) fn write_ops(
    lane: &HeldLane<'_>,
    split: FoldedSplit,
    ticks: &Ticks,
    instance: &Instance,
    nodes: &[*const u8],
    on_fused: &mut dyn FnMut(u32, u32),
) -> Folded {
    let Some((layout, _)) = &instance.layouts else { return Folded::default() };
    let traits = traits_of(instance, layout, nodes);
    let moments = ticks.moments();
    let is_whole = split.status == 0;
    let Some(places) = is_whole.then(|| assign(&traits, moments.len())).flatten() else {
        lane.recorder.lose(LossCounter::UnclearTicks, moments.len() as u64);
        return Folded::default();
    };
    fault_point!();
    let mut start = split.start;
    for (&(position, fused), end) in places.iter().zip(moments.iter().map(Cell::get)) {
        if fused != 0 {
            on_fused(position, fused);
        }
        let flags = MEASURED_HOST | if fused != 0 { OP_FUSED } else { 0 };
        let (offset, duration) = (start - split.start, end.saturating_sub(start));
        let record = op_of_one_thread(flags, (split.split, position), offset, duration);
        lane.put(&record.encode());
        start = end;
    }
    Folded { ops: places.len() as u32, threads: 1, waits_unseen: false }
}

fn traits_of(instance: &Instance, layout: &TensorLayout, nodes: &[*const u8]) -> Vec<Traits> {
    let mut before = None;
    let traits = nodes.iter().map(|&at| {
        // SAFETY: a node of the graph ggml has just computed and still holds.
        let tensor = unsafe { Tensor::new(at, layout) };
        let op = node::op_name(instance, tensor.op());
        let uses = |address| (0..2).any(|s| tensor.source(s).map(Tensor::address) == Some(address));
        let traits = Traits {
            idle: !ggprof_ggml::computes(op),
            to_compute: ggprof_ggml::is_marked(tensor.flags()),
            ends_fusion: op == b"MUL" && before.is_some_and(uses),
        };
        before = (op == b"RMS_NORM").then(|| tensor.address());
        traits
    });
    all_of(traits, nodes.len())
}

/// Graphs may be large, so room for so many is asked for.
fn all_of<T>(items: impl Iterator<Item = T>, most: usize) -> Vec<T> {
    let mut all = Vec::new();
    memory::made_room(all.try_reserve_exact(most));
    all.extend(items);
    all
}

/// For each tick a position, and as bits which of the nodes after it were fused with it.
fn assign(traits: &[Traits], ticks: usize) -> Option<Vec<(u32, u32)>> {
    let keep = |wanted: &dyn Fn(&Traits) -> bool| -> Vec<(u32, u32)> {
        let all = (0_u32..).zip(traits);
        let wanted = all.filter(|(_, node)| wanted(node)).map(|(position, _)| (position, 0));
        all_of(wanted, traits.len())
    };
    let every = keep(&|_| true);
    let working = keep(&|node| !node.idle);
    let flagged = keep(&|node| !node.idle && node.to_compute);
    let fused = |places: &[(u32, u32)]| -> Vec<(u32, u32)> {
        let mut fused: Vec<(u32, u32)> = all_of(std::iter::empty(), places.len());
        for &(position, _) in places {
            match fused.last_mut() {
                Some((first, bits)) if traits[position as usize].ends_fusion => {
                    *bits |= 1 << (position - *first);
                }
                _ => fused.push((position, 0)),
            }
        }
        fused
    };
    let (working_fused, flagged_fused) = (fused(&working), fused(&flagged));
    let ways = [every, working, flagged, working_fused, flagged_fused];
    ways.into_iter().find(|places| places.len() == ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Traits = Traits { idle: false, to_compute: true, ends_fusion: false };
    const IDLE: Traits = Traits { idle: true, to_compute: true, ends_fusion: false };
    const MUL: Traits = Traits { idle: false, to_compute: true, ends_fusion: true };

    #[test]
    fn the_number_of_ticks_tells_which_nodes_tick() {
        let graph = [WORK, MUL, IDLE, WORK];
        assert_eq!(assign(&graph, 4), Some(vec![(0, 0), (1, 0), (2, 0), (3, 0)]));
        assert_eq!(assign(&graph, 3), Some(vec![(0, 0), (1, 0), (3, 0)]));
        assert_eq!(assign(&graph, 2), Some(vec![(0, 0b10), (3, 0)]));
        assert_eq!(assign(&graph, 1), None);
    }
}
