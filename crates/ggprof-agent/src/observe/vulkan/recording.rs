//! The works of one command buffer, and which timestamps they lie between.
//!
//! Two ways of timing. *By group*: one timestamp where something synchronises, so
//! that the end of one group is the start of the next; what ran within a group ran
//! side by side, and its parts have no times of their own. *In pairs*: before and
//! after each command. Each timestamp of the first way is written when all earlier
//! work of the queue is done, so groups never overlap and their times add up.

use ggprof_spool::layout::{
    WORK_CONCURRENT, WORK_KERNEL, WORK_SERIALIZED, WORK_UNTIMED, WORK_WHOLE_SPLIT,
};

use super::pipelines::Pipeline;
use super::place::Place;

/// A timestamp that could not be had.
pub(crate) const NO_STAMP: u32 = u32::MAX;
/// The bits of a work's flags that say what it is.
pub(crate) const KIND: u8 = 3;

/// One command, or all of a split's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) flags: u8,
    pub(crate) name: Name,
    pub(crate) place: Place,
    pub(crate) bytes: u64,
    /// Counted from the command buffer's beginning.
    pub(crate) group: u32,
    /// Numbers of timestamps.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Kernel(&'static Pipeline),
    Text(&'static str),
}

/// When a timestamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// As soon as the device comes to it.
    Reached,
    /// When everything before it is done.
    Done,
}

/// What can be put between ggml's commands.
pub(crate) trait Between {
    /// The timestamp's number; `None` where there can be none.
    fn stamp(&mut self, when: When) -> Option<u32>;
    /// What comes later waits for what came before.
    fn barrier(&mut self);
}

/// How works are kept apart and timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    Groups,
    Pairs,
    /// Groups of one, made so by barriers of ours.
    Serial,
}

#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) works: Vec<Work>,
    /// How often something synchronised.
    pub(crate) groups: u32,
    /// The first work of the group that is not closed yet.
    open_from: usize,
    /// Where the open group began.
    boundary: Option<u32>,
}

impl Recording {
    pub(crate) fn clear(&mut self) {
        self.works.clear();
        self.groups = 0;
        self.open_from = 0;
        self.boundary = None;
    }

    /// The beginning or the end of a split whose works go without times of their own.
    pub(crate) fn mark(&mut self, mut work: Work, between: &mut impl Between) {
        work.start = between.stamp(When::Done).unwrap_or(NO_STAMP);
        work.end = work.start;
        work.group = self.groups;
        self.works.push(work);
    }

    /// Before a command is recorded.
    pub(crate) fn before(&mut self, timing: Timing, mut work: Work, between: &mut impl Between) {
        if timing == Timing::Serial {
            if !self.works.is_empty() {
                between.barrier();
                self.synchronised(timing, between);
            }
            work.flags |= WORK_SERIALIZED;
        }
        work.start = match timing {
            Timing::Pairs => between.stamp(When::Reached),
            Timing::Groups | Timing::Serial => {
                self.boundary = self.boundary.or_else(|| between.stamp(When::Done));
                self.boundary
            }
        }
        .unwrap_or(NO_STAMP);
        work.group = self.groups;
        work.end = NO_STAMP;
        self.works.push(work);
    }

    /// After it was.
    pub(crate) fn after(&mut self, timing: Timing, between: &mut impl Between) {
        if timing == Timing::Pairs
            && let Some(work) = self.works.last_mut()
        {
            work.end = between.stamp(When::Done).unwrap_or(NO_STAMP);
        }
    }

    /// Before ggml's own barrier: what comes next waits for what came before.
    pub(crate) fn synchronised(&mut self, timing: Timing, between: &mut impl Between) {
        self.close(timing, between);
        self.groups += 1;
    }

    /// Before the command buffer ends. What the next one holds may still run side by
    /// side with the last group.
    pub(crate) fn end(&mut self, timing: Timing, between: &mut impl Between) {
        self.close(timing, between);
        self.boundary = None;
    }

    fn close(&mut self, timing: Timing, between: &mut impl Between) {
        let open = self.works.get_mut(self.open_from..).unwrap_or_default();
        let is_part = |work: &Work| work.flags & KIND != WORK_WHOLE_SPLIT;
        if timing != Timing::Pairs && open.iter().any(is_part) {
            let end = between.stamp(When::Done);
            let parts = open.iter_mut().filter(|work| is_part(work));
            parts.for_each(|work| work.end = end.unwrap_or(NO_STAMP));
            self.boundary = end;
        }
        self.open_from = self.works.len();
    }
}

/// Marks works that share their group with others, given whether the first group goes
/// on one of an earlier command buffer and the last one goes on in a later.
pub(crate) fn mark_concurrent(works: &mut [Work], groups: u32, joins: bool, goes_on: bool) {
    for group in works.chunk_by_mut(|a, b| a.group == b.group) {
        let first = group.first().map_or(0, |work| work.group);
        let shared = group.len() > 1 || (joins && first == 0) || (goes_on && first == groups);
        if shared {
            group.iter_mut().for_each(|work| work.flags |= WORK_CONCURRENT);
        }
    }
}

impl Work {
    pub(crate) fn new(kind: u8, name: Name, place: Place, bytes: u64) -> Work {
        Work { flags: kind, name, place, bytes, group: 0, start: NO_STAMP, end: NO_STAMP }
    }

    /// Start and end among the values of the command buffer's timestamps.
    pub(crate) fn times(&self, values: &[u64]) -> Option<(u64, u64)> {
        Some((*values.get(self.start as usize)?, *values.get(self.end as usize)?))
    }

    pub(crate) fn flags_with(&self, timed: bool) -> u8 {
        self.flags | if timed { 0 } else { WORK_UNTIMED }
    }

    pub(crate) fn kernel(&self) -> Option<&'static Pipeline> {
        match self.name {
            Name::Kernel(pipeline) if self.flags & KIND == WORK_KERNEL => Some(pipeline),
            _ => None,
        }
    }
}
