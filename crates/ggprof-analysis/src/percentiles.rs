//! Medians and 95th percentiles of many groups at once.

/// The times of all groups, laid out by group, for their percentiles: one number per event however many
/// groups there are; a short one, if all of them are.
pub(crate) enum Times {
    Short(Sorted<u32>),
    Long(Sorted<u64>),
}

impl Times {
    /// So many of each group, none of which is longer than `longest_ns`.
    pub(crate) fn new(counts: impl Iterator<Item = u64>, longest_ns: u64) -> Self {
        match u32::try_from(longest_ns) {
            Ok(_) => Self::Short(Sorted::new(counts)),
            Err(_) => Self::Long(Sorted::new(counts)),
        }
    }

    #[inline]
    pub(crate) fn put(&mut self, group: u32, ns: u64) {
        match self {
            // None is longer than the longest.
            Self::Short(times) => times.put(group, ns as u32),
            Self::Long(times) => times.put(group, ns),
        }
    }

    /// Median and 95th percentile of each group.
    pub(crate) fn percentiles(self) -> Vec<(u64, u64)> {
        match self {
            Self::Short(times) => times.percentiles(),
            Self::Long(times) => times.percentiles(),
        }
    }
}

pub(crate) struct Sorted<T> {
    numbers: Vec<T>,
    /// Where the next number of each group goes; when all are there, where the group ends.
    next: Vec<usize>,
}

impl<T: Copy + Ord + Default + Into<u64>> Sorted<T> {
    fn new(counts: impl Iterator<Item = u64>) -> Self {
        let mut length = 0;
        let start = |count: u64| {
            length += count as usize;
            length - count as usize
        };
        let next = counts.map(start).collect();
        Self { numbers: vec![T::default(); length], next }
    }

    #[inline]
    fn put(&mut self, group: u32, number: T) {
        let next = &mut self.next[group as usize];
        self.numbers[*next] = number;
        *next += 1;
    }

    fn percentiles(mut self) -> Vec<(u64, u64)> {
        let mut start = 0;
        let of_group = |&end: &usize| {
            let (p50, p95) = median_and_p95(&mut self.numbers[start..end]);
            start = end;
            (p50.into(), p95.into())
        };
        self.next.iter().map(of_group).collect()
    }
}

pub(crate) fn median_and_p95<T: Copy + Ord + Default>(values: &mut [T]) -> (T, T) {
    if values.is_empty() {
        return Default::default();
    }
    let (half, most) = (rank(values.len(), 50), rank(values.len(), 95));
    let (_, &mut median, above) = values.select_nth_unstable(half);
    match most.checked_sub(half + 1) {
        // The larger one is among those above the median.
        Some(place) => (median, *above.select_nth_unstable(place).1),
        None => (median, median),
    }
}

/// The place of a percentile among so many sorted values.
fn rank(values: usize, percent: usize) -> usize {
    (values * percent).div_ceil(100).max(1) - 1
}

/// The smallest value that at least `percent` of the values do not exceed.
pub(crate) fn percentile<T: Copy + Ord + Default>(values: &mut [T], percent: usize) -> T {
    match values.len() {
        0 => T::default(),
        length => *values.select_nth_unstable(rank(length, percent)).1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        for (values, p50, p95) in [
            (vec![7], 7, 7),
            (vec![2, 1], 1, 2),
            (vec![3, 1, 2], 2, 3),
            ((1..=100).rev().collect(), 50, 95),
            (vec![], 0, 0),
        ] {
            let (mut a, mut b) = (values.clone(), values.clone());
            assert_eq!((percentile(&mut a, 50), percentile(&mut b, 95)), (p50, p95), "{values:?}");
            assert_eq!(median_and_p95(&mut a), (p50, p95), "{values:?}");
        }
    }
}
