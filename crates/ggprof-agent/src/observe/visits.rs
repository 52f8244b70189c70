//! Which node of a split a device's library works on now.
//!
//! The library asks about each node before it records or launches it, but it asks at other places
//! too: in a pass through the graph beforehand, in a dry run, about the last node, about a node's
//! sources, about nodes it might fuse. The loop that counts is identified by the place of the call:
//! it is the place that asked about the first node last, before any work was seen. Nodes that the
//! loop skips run together with the node before them.

use std::any::Any;
use std::fmt::Debug;
use std::ptr::NonNull;

use super::this_thread::ThisThread;
use crate::memory;

/// Nodes that one step of the loop can pass over: what a fusion record's reader
/// names, and far more than any fusion has.
const LONGEST_STEP: usize = 32;

/// How the work of a split is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Timed {
    /// No work was seen yet.
    Undecided,
    InParts,
    /// Only its beginning and its end.
    AsWhole,
}

/// Hears of each node that the loop comes to, for the length of a split.
pub(crate) trait FollowsVisits: Any + Debug {
    fn visit(&mut self, position: u32);
}

/// What a device's library asks about the nodes of one split.
#[derive(Debug)]
pub(crate) struct Visits {
    pub(crate) split: u32,
    pub(crate) shape: u32,
    pub(crate) backend: u32,
    pub(crate) timed: Timed,
    nodes: *const [*const u8],
    pub(crate) site: usize,
    /// The node that the loop asked about last, in a split that is timed as a whole.
    pub(crate) asked: usize,
    /// The device whose commands are passed on at once: its key, 0 for none, and the functions that
    /// they are passed on to. Only the code that set the key knows their type.
    passed_on: (usize, NonNull<()>),
    worked: bool,
    /// The stream that work went to first, 0 before.
    stream: usize,
    /// Other code that is called at each step of the loop.
    follower: Option<Box<dyn FollowsVisits>>,
    /// Positions in the order the loop came to them, this pass.
    visited: Vec<u32>,
}

/// Makes the visits of a split known to the hooks on this thread, until this is dropped.
#[derive(Debug)]
pub(crate) struct Visiting {
    visits: NonNull<Visits>,
    /// Those of a split in the middle of which this one is computed; null without.
    outer: *mut Visits,
}

impl Visiting {
    pub(crate) fn begin(this: &ThisThread, visits: Visits) -> Visiting {
        let visits = NonNull::from(Box::leak(Box::new(visits)));
        Visiting { visits, outer: this.visits.replace(visits.as_ptr()) }
    }

    /// To be called when the split was computed, and hooks do not use the visits any more.
    pub(crate) fn visits(&self) -> &Visits {
        // SAFETY: made by `begin`, freed by drop only; hooks on this thread alone change it,
        // and none runs now.
        unsafe { self.visits.as_ref() }
    }
}

impl Drop for Visiting {
    fn drop(&mut self) {
        ThisThread::with(|this| this.visits.set(self.outer));
        // SAFETY: made by `begin`, on this thread (the value cannot leave it), and nobody
        // finds it any more.
        drop(unsafe { Box::from_raw(self.visits.as_ptr()) });
    }
}

impl Visits {
    /// # Safety
    /// `nodes` stays as it is for as long as the value is used.
    pub(crate) unsafe fn new(
        (split, shape, backend): (u32, u32, u32),
        nodes: &[*const u8],
    ) -> Visits {
        let mut visited = Vec::new();
        memory::made_room(visited.try_reserve_exact(nodes.len()));
        Visits {
            split,
            shape,
            backend,
            timed: Timed::Undecided,
            nodes,
            site: 0,
            asked: 0,
            passed_on: (0, NonNull::dangling()),
            worked: false,
            stream: 0,
            follower: None,
            visited,
        }
    }

    /// A question about a node, asked at `site`. Never allocates, unless its
    /// follower does.
    pub(crate) fn visit(&mut self, node: usize, site: usize) {
        let nodes = self.nodes();
        let is = |place: &*const u8| *place as usize == node;
        if nodes.first().is_some_and(is) && (!self.worked || site == self.site) {
            self.site = site;
            self.asked = node;
            self.visited.clear();
            self.visited.push(0);
            self.tell_follower(0);
            return;
        }
        if self.timed == Timed::AsWhole {
            // As the stand-in does it.
            self.asked = if site == self.site { node } else { self.asked };
            return;
        }
        let Some(current) = self.position().filter(|_| site == self.site) else { return };
        let ahead = nodes.iter().skip(current as usize + 1).take(LONGEST_STEP);
        if let Some(step) = ahead.into_iter().position(is)
            && self.visited.len() < self.visited.capacity()
        {
            let position = current + 1 + step as u32;
            self.visited.push(position);
            self.tell_follower(position);
        }
    }

    #[inline(always)]
    fn tell_follower(&mut self, position: u32) {
        if let Some(follower) = &mut self.follower {
            follower.visit(position);
        }
    }

    /// There is one at most: a split is computed by one device.
    pub(crate) fn follower<F: FollowsVisits>(&mut self) -> Option<&mut F> {
        let follower: &mut dyn Any = self.follower.as_deref_mut()?;
        follower.downcast_mut()
    }

    /// The same, made now where there is none.
    pub(crate) fn follower_or_new<F: FollowsVisits + Default>(&mut self) -> Option<&mut F> {
        self.follower.get_or_insert_with(|| Box::<F>::default());
        self.follower()
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes().len()
    }

    /// The node being recorded or launched; none before the first.
    pub(crate) fn position(&self) -> Option<u32> {
        self.visited.last().copied()
    }

    /// From now on only the beginning and the end of the split are timed, and the commands of
    /// the device with this key are passed on.
    pub(crate) fn pass_on(&mut self, key: usize, next: NonNull<()>) {
        self.timed = Timed::AsWhole;
        let node = self.position().and_then(|at| self.nodes().get(at as usize));
        self.asked = node.map_or(0, |&node| node as usize);
        self.passed_on = (key, next);
    }

    #[inline(always)]
    pub(crate) fn passed_on(&self, key: usize) -> Option<NonNull<()>> {
        (self.passed_on.0 == key).then_some(self.passed_on.1)
    }

    /// The library's current position in the split, if it is `first` or a later one.
    pub(crate) fn position_from(&self, first: u32) -> Option<u32> {
        if self.timed != Timed::AsWhole {
            return self.position().filter(|&position| position >= first);
        }
        let rest = self.nodes().get(first as usize..)?;
        let step = rest.iter().position(|&node| node as usize == self.asked)?;
        Some(first + step as u32)
    }

    pub(crate) fn has_worked(&self) -> bool {
        self.worked
    }

    /// Work of the device was recorded or launched for the current node.
    pub(crate) fn note_work(&mut self) {
        self.worked |= !self.visited.is_empty();
    }

    /// Work goes to this stream of the device. The first one stands for the split:
    /// others fork from it and join it again.
    pub(crate) fn note_stream(&mut self, stream: usize) {
        if self.stream == 0 {
            self.stream = stream;
        }
    }

    pub(crate) fn stream(&self) -> usize {
        self.stream
    }

    /// Tells, once the split was computed, which nodes ran with others: the first
    /// one's position, and a bit for each by its distance.
    pub(crate) fn fusions(&self, mut on_fused: impl FnMut(u32, u32)) {
        if !self.worked {
            return;
        }
        let end = self.nodes().len() as u32;
        let following = self.visited.iter().skip(1).copied().chain([end]);
        for (&position, next) in self.visited.iter().zip(following) {
            let passed = (next - position - 1).min(LONGEST_STEP as u32 - 1);
            if passed > 0 {
                on_fused(position, ((1_u64 << (passed + 1)) - 2) as u32);
            }
        }
    }

    fn nodes(&self) -> &[*const u8] {
        // SAFETY: the contract of `new`.
        unsafe { &*self.nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: usize = 0x100;
    const ELSEWHERE: usize = 0x200;

    fn graph(nodes: usize) -> Vec<*const u8> {
        (1..=nodes).map(|n| (n * 16) as *const u8).collect()
    }

    fn visits(nodes: &[*const u8]) -> Visits {
        // SAFETY: every test keeps its nodes.
        unsafe { Visits::new((1, 1, 1), nodes) }
    }

    fn ask(visits: &mut Visits, positions: impl IntoIterator<Item = usize>, site: usize) {
        for position in positions {
            visits.visit((position + 1) * 16, site);
        }
    }

    fn fused(visits: &Visits) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        visits.fusions(|position, bits| all.push((position, bits)));
        all
    }

    #[test]
    fn the_loop_is_the_place_that_asked_last_before_work() {
        let nodes = graph(5);
        let mut visits = visits(&nodes);
        ask(&mut visits, 0..5, ELSEWHERE);
        ask(&mut visits, [0], LOOP);
        visits.note_work();
        ask(&mut visits, [4, 1], ELSEWHERE);
        assert_eq!(visits.position(), Some(0));
        ask(&mut visits, [1, 2], LOOP);
        assert_eq!(visits.position(), Some(2));
    }

    #[test]
    fn a_search_from_the_end_counts_for_nothing() {
        let nodes = graph(5);
        let mut visits = visits(&nodes);
        ask(&mut visits, [4, 3, 2], ELSEWHERE);
        visits.note_work();
        assert_eq!(visits.position(), None);
        ask(&mut visits, [0, 1], LOOP);
        assert_eq!(visits.position(), Some(1));
    }

    #[test]
    fn a_dry_run_by_the_same_place_is_forgotten() {
        let nodes = graph(3);
        let mut visits = visits(&nodes);
        ask(&mut visits, 0..3, LOOP);
        visits.note_work();
        ask(&mut visits, [0], LOOP);
        assert_eq!(visits.position(), Some(0));
    }

    #[test]
    fn of_a_split_that_is_timed_as_a_whole_the_last_question_counts() {
        let nodes = graph(9);
        let mut visits = visits(&nodes);
        ask(&mut visits, 0..9, ELSEWHERE);
        visits.pass_on(1, NonNull::dangling());
        assert_eq!(visits.position_from(0), Some(8), "a dry run, and a command before the loop");
        ask(&mut visits, [0, 3], LOOP);
        ask(&mut visits, [8], ELSEWHERE);
        assert_eq!(visits.position_from(0), Some(3));
        assert_eq!(visits.position_from(4), None);
        ask(&mut visits, [7], LOOP);
        assert_eq!(visits.position_from(4), Some(7));
        assert_eq!(fused(&visits), []);
    }

    #[test]
    fn nodes_passed_over_ran_with_the_one_before() {
        let nodes = graph(7);
        let mut visits = visits(&nodes);
        ask(&mut visits, [0, 1, 4, 5], LOOP);
        assert_eq!(fused(&visits), [], "nothing was computed yet");
        visits.note_work();
        assert_eq!(fused(&visits), [(1, 0b110), (5, 0b10)]);
    }

    #[test]
    fn hooks_find_the_innermost_split_and_no_ended_one() {
        let nodes = graph(1);
        let found = || {
            // SAFETY: null or visits that live, on this thread.
            ThisThread::with(|this| unsafe { this.visits.get().as_ref() }.map(|it| it.split))
        };
        let begin = |split| {
            // SAFETY: the nodes outlive the visits.
            let visits = unsafe { Visits::new((split, 1, 1), &nodes) };
            ThisThread::with(|this| Visiting::begin(this, visits))
        };
        let outer = begin(1);
        let inner = begin(2);
        assert_eq!(found(), Some(2));
        drop(inner);
        assert_eq!(found(), Some(1));
        drop(outer);
        assert_eq!(found(), None);
    }

    #[test]
    fn tensors_of_no_node_and_empty_graphs() {
        let nodes = graph(2);
        let mut some = visits(&nodes);
        ask(&mut some, [0, 77], LOOP);
        assert_eq!(some.position(), Some(0));
        let none = graph(0);
        let mut empty = visits(&none);
        ask(&mut empty, [0], LOOP);
        assert_eq!(empty.position(), None);
    }
}
