//! Puts overlapping events into separate lanes, as few as possible.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Lanes in use and when they become free, earliest first.
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    free: BTreeSet<u32>,
}

impl Lanes {
    /// The lowest lane that is free at `start`. Events must come by start.
    pub(super) fn place(&mut self, start: u64, end: u64) -> u32 {
        while let Some(&Reverse((free_at, lane))) = self.busy.peek() {
            if free_at > start {
                break;
            }
            self.busy.pop();
            self.free.insert(lane);
        }
        let lane = self.free.pop_first().unwrap_or(self.busy.len() as u32);
        self.busy.push(Reverse((end, lane)));
        lane
    }

    pub(super) fn count(&self) -> u32 {
        (self.busy.len() + self.free.len()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_free_lane() {
        let mut lanes = Lanes::default();
        let placed: Vec<u32> = [(0, 10), (2, 4), (3, 9), (4, 5), (10, 11), (10, 10), (10, 12)]
            .into_iter()
            .map(|(start, end)| lanes.place(start, end))
            .collect();
        assert_eq!(placed, [0, 1, 2, 1, 0, 1, 1]);
        assert_eq!(lanes.count(), 3);
    }
}
