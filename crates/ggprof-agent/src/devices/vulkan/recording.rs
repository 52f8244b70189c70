//! The work of one command buffer, and between which timestamps it lies.
//!
//! There are two ways of timing. *By group*: one timestamp wherever ggml synchronises, so that the
//! end of one group is the start of the next; the parts of a group ran side by side and have no
//! separate times. *In pairs*: one timestamp before and one after each command. In the first way,
//! each timestamp is written when all earlier work of the queue is done, so groups never overlap
//! and their times add up.

use std::sync::Arc;

use ggprof_spool::layout::{
    WORK_CONCURRENT, WORK_KERNEL, WORK_SERIALIZED, WORK_UNTIMED, WORK_WHOLE_SPLIT,
};

use super::pipelines::Pipeline;
use super::place::WorkPlace;

/// A timestamp for which there was no query.
pub(crate) const NO_STAMP: u32 = u32::MAX;
/// The bits of a work's flags that say what it is.
pub(crate) const KIND: u8 = 3;

/// One command, or all of a split's.
#[derive(Debug)]
pub(crate) struct CommandWork {
    pub(crate) flags: u8,
    pub(crate) name: Name,
    pub(crate) place: WorkPlace,
    pub(crate) bytes: u64,
    /// Counted from the command buffer's beginning.
    pub(crate) group: u32,
    /// Numbers of timestamps.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Debug)]
pub(crate) enum Name {
    Kernel(Arc<Pipeline>),
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
    pub(crate) works: Vec<CommandWork>,
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

    /// Whether nothing was noted of the commands, or there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.works.is_empty() && self.groups == 0
    }

    /// The beginning or the end of a split whose works go without times of their own.
    pub(crate) fn mark(&mut self, mut work: CommandWork, between: &mut impl Between) {
        work.start = between.stamp(When::Done).unwrap_or(NO_STAMP);
        work.end = work.start;
        work.group = self.groups;
        self.works.push(work);
    }

    /// Before a command is recorded.
    pub(crate) fn before(
        &mut self,
        timing: Timing,
        mut work: CommandWork,
        between: &mut impl Between,
    ) {
        if timing == Timing::Serial {
            between.barrier();
            self.synchronised(timing, between);
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

    /// After a command was recorded.
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
        let is_part = |work: &CommandWork| work.flags & KIND != WORK_WHOLE_SPLIT;
        if timing != Timing::Pairs && open.iter().any(is_part) {
            let end = between.stamp(When::Done);
            let parts = open.iter_mut().filter(|work| is_part(work));
            parts.for_each(|work| work.end = end.unwrap_or(NO_STAMP));
            self.boundary = end;
        }
        self.open_from = self.works.len();
    }
}

/// Marks works that share their group with others. `joins`: the first group began in an earlier
/// command buffer. `goes_on`: the last group continues in a later one.
pub(crate) fn mark_concurrent(works: &mut [CommandWork], groups: u32, joins: bool, goes_on: bool) {
    for group in works.chunk_by_mut(|a, b| a.group == b.group) {
        let first = group.first().map_or(0, |work| work.group);
        let shared = group.len() > 1 || (joins && first == 0) || (goes_on && first == groups);
        if shared {
            let parts = group.iter_mut().filter(|work| work.flags & KIND != WORK_WHOLE_SPLIT);
            parts.for_each(|work| work.flags |= WORK_CONCURRENT);
        }
    }
}

impl CommandWork {
    pub(crate) fn new(kind: u8, name: Name, place: WorkPlace, bytes: u64) -> CommandWork {
        CommandWork { flags: kind, name, place, bytes, group: 0, start: NO_STAMP, end: NO_STAMP }
    }

    /// Start and end among the values of the command buffer's timestamps.
    pub(crate) fn times(&self, values: &[u64]) -> Option<(u64, u64)> {
        Some((*values.get(self.start as usize)?, *values.get(self.end as usize)?))
    }

    pub(crate) fn flags_with(&self, timed: bool) -> u8 {
        self.flags | if timed { 0 } else { WORK_UNTIMED }
    }

    pub(crate) fn kernel(&self) -> Option<&Pipeline> {
        match &self.name {
            Name::Kernel(pipeline) if self.flags & KIND == WORK_KERNEL => Some(pipeline),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_spool::layout::NO_NODE;

    /// What was put between commands: `r` and `d` are timestamps, `|` a barrier.
    #[derive(Default)]
    struct Written {
        text: String,
        stamps: u32,
    }

    impl Between for Written {
        fn stamp(&mut self, when: When) -> Option<u32> {
            self.text.push(if when == When::Reached { 'r' } else { 'd' });
            self.stamps += 1;
            Some(self.stamps - 1)
        }

        fn barrier(&mut self) {
            self.text.push('|');
        }
    }

    fn work(kind: u8) -> CommandWork {
        let place = WorkPlace { split: 1, position: NO_NODE, backend: 1, cause: 0 };
        CommandWork::new(kind, Name::Text(""), place, 0)
    }

    /// Records commands (`.`), barriers of ggml (`b`) and whole splits (`w`), to the end.
    fn record(timing: Timing, commands: &str) -> (String, Vec<CommandWork>) {
        let mut recording = Recording::default();
        let mut written = Written::default();
        for command in commands.chars() {
            match command {
                '.' => {
                    recording.before(timing, work(WORK_KERNEL), &mut written);
                    written.text.push('.');
                    recording.after(timing, &mut written);
                }
                'w' => recording.mark(work(WORK_WHOLE_SPLIT), &mut written),
                _ => {
                    recording.synchronised(timing, &mut written);
                    written.text.push('b');
                }
            }
        }
        recording.end(timing, &mut written);
        mark_concurrent(&mut recording.works, recording.groups, false, false);
        (written.text, recording.works)
    }

    fn spans(works: &[CommandWork]) -> Vec<(u32, u32, u32, bool)> {
        let concurrent = |work: &CommandWork| work.flags & WORK_CONCURRENT != 0;
        works.iter().map(|work| (work.group, work.start, work.end, concurrent(work))).collect()
    }

    #[test]
    fn a_group_ends_where_the_next_begins() {
        let (text, works) = record(Timing::Groups, "b..b.bb.");
        assert_eq!(text, "bd..db.dbb.d");
        let expected = [(1, 0, 1, true), (1, 0, 1, true), (2, 1, 2, false), (4, 2, 3, false)];
        assert_eq!(spans(&works), expected);
    }

    #[test]
    fn pairs_have_times_of_their_own() {
        let (text, works) = record(Timing::Pairs, "..b.");
        assert_eq!(text, "r.dr.dbr.d");
        assert_eq!(spans(&works), [(0, 0, 1, true), (0, 2, 3, true), (1, 4, 5, false)]);
    }

    #[test]
    fn serial_puts_a_barrier_between_all() {
        let (text, works) = record(Timing::Serial, "..b.");
        assert_eq!(text, "|d.|d.db|.d");
        assert_eq!(spans(&works), [(1, 0, 1, false), (2, 1, 2, false), (4, 2, 3, false)]);
        assert!(works.iter().all(|work| work.flags & WORK_SERIALIZED != 0));
    }

    #[test]
    fn a_whole_split_has_two_moments() {
        let (text, works) = record(Timing::Groups, "wbbw");
        assert_eq!(text, "dbbd");
        assert_eq!(spans(&works).iter().map(|w| (w.1, w.2)).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    }

    #[test]
    fn a_group_may_reach_over_command_buffers() {
        let (_, mut works) = record(Timing::Groups, ".b.b.");
        mark_concurrent(&mut works, 2, true, true);
        assert_eq!(spans(&works).iter().map(|w| w.3).collect::<Vec<_>>(), [true, false, true]);
    }
}
