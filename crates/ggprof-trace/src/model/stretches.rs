//! Neighbouring events that have much in common: most often the ops of one split.

use super::event::Stretch;
use std::ops::Range;

/// It is noted for one in so many events which stretch it is part of. From there it is a few steps to
/// that of any other.
const NOTED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// By their first events.
    all: Vec<Placed>,
    /// For every 64th event the place of its stretch.
    noted: Vec<u32>,
    events: usize,
}

/// A stretch, and where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) first: u32,
    /// The time that the starts of its events are counted from.
    pub(super) from_ns: u64,
    pub(super) stretch: Stretch,
}

impl Stretches {
    /// So many more events are of this stretch, the first of which starts at `start_ns`; the time that
    /// starts are counted from.
    #[inline]
    pub(super) fn extend(&mut self, stretch: Stretch, start_ns: u64, events: usize) -> u64 {
        if self.all.last().is_none_or(|last| last.stretch != stretch) {
            self.push(stretch, start_ns);
        }
        self.grow(events);
        self.all[self.all.len() - 1].from_ns
    }

    fn push(&mut self, stretch: Stretch, from_ns: u64) {
        self.all.push(Placed { first: self.events as u32, from_ns, stretch });
    }

    fn grow(&mut self, events: usize) {
        self.events += events;
        self.noted.resize(self.events.div_ceil(NOTED), self.all.len() as u32 - 1);
    }

    /// The place of an event's stretch.
    #[inline]
    pub(super) fn place(&self, event: usize) -> u32 {
        self.onward(self.noted[event / NOTED], event)
    }

    /// The same if it is known that it is not before a place.
    #[inline]
    pub(super) fn onward(&self, mut place: u32, event: usize) -> u32 {
        while self.all.get(place as usize + 1).is_some_and(|next| next.first as usize <= event) {
            place += 1;
        }
        place
    }

    #[inline]
    pub(super) fn at(&self, place: u32) -> &Placed {
        &self.all[place as usize]
    }

    #[inline]
    pub(super) fn of(&self, event: usize) -> &Placed {
        self.at(self.place(event))
    }

    /// All, each with its events.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Placed, Range<u32>)> {
        let ends = self.all.iter().skip(1).map(|next| next.first);
        let ends = ends.chain([self.events as u32]);
        self.all.iter().zip(ends).map(|(placed, end)| (placed, placed.first..end))
    }

    /// The same events, each with what `changed` makes of its stretch.
    pub(super) fn change(&mut self, mut changed: impl FnMut(&Stretch) -> Stretch) {
        let old = std::mem::take(self);
        for (placed, events) in old.iter() {
            let mut last = None;
            for _ in events {
                let stretch = changed(&placed.stretch);
                // Starts are counted from where they were.
                if last.replace(stretch) != Some(stretch) {
                    self.push(stretch, placed.from_ns);
                }
                self.grow(1);
            }
        }
    }
}
