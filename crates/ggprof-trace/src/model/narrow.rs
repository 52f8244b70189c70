//! A column of numbers that are nearly always small.

use std::ops::Range;

/// Marks a number that is among the large ones.
const LARGE: u32 = u32::MAX;

/// Four bytes for each number. The few that need more stand apart, with their places.
#[derive(Debug, Clone, Default)]
pub(super) struct Narrow {
    small: Vec<u32>,
    /// By place.
    large: Vec<(u32, u64)>,
}

impl Narrow {
    fn push(&mut self, number: u64) {
        let place = self.small.len() as u32;
        match u32::try_from(number) {
            Ok(small) if small != LARGE => self.small.push(small),
            _ => {
                self.small.push(LARGE);
                self.large.push((place, number));
            }
        }
    }

    /// Appends numbers, none of which is greater than `limit`.
    #[inline]
    pub(super) fn extend(&mut self, numbers: impl ExactSizeIterator<Item = u64>, limit: u64) {
        if limit < u64::from(LARGE) {
            self.small.extend(numbers.map(|number| number as u32));
        } else {
            numbers.for_each(|number| self.push(number));
        }
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> u64 {
        match self.small[place] {
            LARGE => self.large_at(place as u32),
            small => small.into(),
        }
    }

    #[cold]
    fn large_at(&self, place: u32) -> u64 {
        let at = self.large.binary_search_by_key(&place, |(place, _)| *place);
        at.map_or(u64::from(LARGE), |at| self.large[at].1)
    }

    pub(super) fn set(&mut self, place: usize, number: u64) {
        let at = self.large.partition_point(|(other, _)| (*other as usize) < place);
        if self.large.get(at).is_some_and(|(other, _)| *other as usize == place) {
            self.large.remove(at);
        }
        self.small[place] = match u32::try_from(number) {
            Ok(small) if small != LARGE => small,
            _ => {
                self.large.insert(at, (place as u32, number));
                LARGE
            }
        };
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.small.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.small.is_empty()
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.small.reserve_exact(more);
    }

    #[inline]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.of(0..self.len())
    }

    /// Those at some places.
    #[inline]
    pub(super) fn of(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = u64> + '_ {
        let first = places.start;
        self.small[places].iter().enumerate().map(move |(at, &small)| match small {
            LARGE => self.large_at((first + at) as u32),
            small => small.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_stand_apart_and_come_back() {
        let numbers = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX, 7];
        let mut column = Narrow::default();
        column.extend(numbers[..2].iter().copied(), 1);
        column.extend(numbers[2..].iter().copied(), u64::MAX);
        assert_eq!(column.iter().collect::<Vec<_>>(), numbers);
        assert_eq!(column.of(2..5).collect::<Vec<_>>(), numbers[2..5]);
        for (place, number) in [(0, u64::MAX), (3, 5), (4, 1 << 40), (5, u64::from(u32::MAX))] {
            column.set(place, number);
            assert_eq!(column.get(place), number);
        }
        assert_eq!(column.large.len(), 3);
    }
}
