//! Which block of the file belongs to which lane, in a recording of limited size: blocks are used
//! again, those of the oldest events first.
//!
//! Events refer to descriptions by number, so a description must outlive them. Descriptions are
//! made in epochs: when those of one epoch fill half of the file, everything is described anew in
//! the next. The blocks of an epoch's descriptions are free when no block of events is left that
//! was begun in this epoch or before.

use std::collections::VecDeque;

use super::lane::LANES;

/// What a block is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockUse {
    /// The lane that writes its events; `None` for descriptions.
    pub(crate) lane: Option<usize>,
    /// The block refers to no description of an older epoch.
    pub(crate) epoch: u32,
}

/// All blocks of the file, once each of them was handed out.
#[derive(Debug)]
pub(crate) struct Ring {
    most: usize,
    free: Vec<u32>,
    events: VecDeque<Taken>,
    /// Blocks of descriptions with their epochs, oldest first.
    definitions: VecDeque<(u32, u32)>,
    /// Epochs of which there are blocks of events, with how many. There are few.
    users: Vec<(u32, usize)>,
    /// The block each lane writes to.
    current: [Option<u32>; LANES],
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    index: u32,
    lane: usize,
    epoch: u32,
}

impl Ring {
    pub(crate) fn new(most: usize) -> Ring {
        Ring {
            most,
            free: Vec::new(),
            events: VecDeque::new(),
            definitions: VecDeque::new(),
            users: Vec::new(),
            current: [None; LANES],
        }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A block to use again. The caller makes it invalid at once, and then calls
    /// [`Self::hand_out`]. `vacate` takes a lane's block away, if no thread holds the lane.
    pub(crate) fn oldest(
        &mut self,
        wanted: BlockUse,
        mut vacate: impl FnMut(usize) -> bool,
    ) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        let current = &self.current;
        // The lane that asks has filled its own block, so that one may go too.
        let place = self.events.iter().position(|taken| {
            let in_use = current[taken.lane] == Some(taken.index);
            !in_use || wanted.lane == Some(taken.lane) || vacate(taken.lane)
        })?;
        let taken = self.events.remove(place)?;
        if self.current[taken.lane] == Some(taken.index) {
            self.current[taken.lane] = None;
        }
        // The new block's epoch is counted before the old one's is given up.
        self.count(wanted);
        self.leave(taken.epoch);
        self.uncount(wanted);
        Some(taken.index)
    }

    /// Notes which lane has the block now.
    pub(crate) fn hand_out(&mut self, index: u32, wanted: BlockUse) {
        match wanted.lane {
            Some(lane) => {
                self.current[lane] = Some(index);
                self.events.push_back(Taken { index, lane, epoch: wanted.epoch });
                self.count(wanted);
            }
            None => self.definitions.push_back((index, wanted.epoch)),
        }
    }

    /// Whether the newest epoch's descriptions take half of the file.
    pub(crate) fn is_crowded(&self) -> bool {
        let Some(&(_, newest)) = self.definitions.back() else { return false };
        let blocks = self.definitions.iter().rev().take_while(|(_, epoch)| *epoch == newest);
        2 * blocks.count() >= self.most
    }

    fn count(&mut self, wanted: BlockUse) {
        if wanted.lane.is_none() {
            return;
        }
        match self.users.iter_mut().find(|(epoch, _)| *epoch == wanted.epoch) {
            Some((_, blocks)) => *blocks += 1,
            None => self.users.push((wanted.epoch, 1)),
        }
    }

    fn uncount(&mut self, wanted: BlockUse) {
        if wanted.lane.is_some() {
            self.remove_user(wanted.epoch);
        }
    }

    fn remove_user(&mut self, epoch: u32) {
        if let Some(place) = self.users.iter().position(|(known, _)| *known == epoch) {
            self.users[place].1 -= 1;
            if self.users[place].1 == 0 {
                self.users.swap_remove(place);
            }
        }
    }

    /// A block of events of the epoch is gone, and with the last one its descriptions.
    fn leave(&mut self, epoch: u32) {
        self.remove_user(epoch);
        let Some(&(_, newest)) = self.definitions.back() else { return };
        let oldest_used = self.users.iter().map(|(epoch, _)| *epoch).min();
        let needed = oldest_used.map_or(newest, |oldest| oldest.min(newest));
        while let Some(&(index, epoch)) = self.definitions.front()
            && epoch < needed
        {
            self.definitions.pop_front();
            self.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lane: usize, epoch: u32) -> BlockUse {
        BlockUse { lane: Some(lane), epoch }
    }

    fn definitions(epoch: u32) -> BlockUse {
        BlockUse { lane: None, epoch }
    }

    /// A ring whose blocks were handed out in this order.
    fn ring(wanted: &[BlockUse]) -> Ring {
        let mut ring = Ring::new(wanted.len());
        for (index, wanted) in (0..).zip(wanted) {
            ring.hand_out(index, *wanted);
        }
        ring
    }

    fn next(ring: &mut Ring, wanted: BlockUse, held: &[usize]) -> Option<u32> {
        let index = ring.oldest(wanted, |lane| !held.contains(&lane))?;
        ring.hand_out(index, wanted);
        Some(index)
    }

    #[test]
    fn the_oldest_events_go_first_and_descriptions_stay() {
        let mut ring = ring(&[definitions(0), events(0, 0), events(0, 0), events(1, 0)]);
        let taken: Vec<_> = (0..4).map(|_| next(&mut ring, events(0, 0), &[0])).collect();
        assert_eq!(taken, [Some(1), Some(2), Some(3), Some(1)]);
    }

    #[test]
    fn a_block_that_is_being_written_is_left_alone() {
        let mut ring = ring(&[definitions(0), events(1, 0), events(0, 0), events(0, 0)]);
        assert_eq!(next(&mut ring, events(0, 0), &[0, 1]), Some(2));
        assert_eq!(next(&mut ring, definitions(0), &[1]), Some(3));
        assert_eq!(next(&mut ring, definitions(0), &[0, 1]), None, "all others are in use");
        assert_eq!(next(&mut ring, definitions(0), &[0]), Some(1), "lane 1 is idle now");
    }

    #[test]
    fn descriptions_go_with_the_last_events_of_their_epoch() {
        let mut ring =
            ring(&[definitions(0), events(0, 0), events(1, 0), definitions(1), events(0, 1)]);
        assert_eq!(next(&mut ring, events(0, 1), &[]), Some(1));
        assert_eq!(next(&mut ring, events(0, 1), &[]), Some(2));
        assert_eq!(next(&mut ring, events(0, 1), &[]), Some(0), "the first epoch is over");
        assert_eq!(next(&mut ring, events(0, 1), &[]), Some(4));
    }

    #[test]
    fn a_lane_that_lags_behind_keeps_its_epoch() {
        let mut ring = ring(&[definitions(0), events(0, 0), definitions(1), events(1, 1)]);
        // Lane 0 has filled its only block and goes on in the epoch it described its graph in.
        assert_eq!(next(&mut ring, events(0, 0), &[0, 1]), Some(1));
        assert_eq!(next(&mut ring, events(1, 1), &[0, 1]), Some(3), "not the descriptions");
    }

    #[test]
    fn half_a_file_of_descriptions_is_a_crowd() {
        assert!(!ring(&[definitions(0), definitions(1), events(0, 1), events(0, 1)]).is_crowded());
        assert!(ring(&[definitions(1), definitions(1), events(0, 1), events(0, 1)]).is_crowded());
    }
}
