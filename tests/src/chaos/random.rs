//! Random numbers that depend on a seed alone, so that a run can be repeated.

use std::ops::RangeInclusive;

#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Steps of an odd distance, well mixed: neighbouring seeds give unlike numbers.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        let numbers = range.end() - range.start() + 1;
        range.start() + self.next() % numbers
    }

    /// Small numbers as often as large ones: the exponent is drawn, then the number.
    pub(super) fn of_any_size(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (least, most) = (range.start().max(&1).ilog2(), range.end().ilog2());
        let power = 1 << self.between(u64::from(least)..=u64::from(most));
        self.between(power..=2 * power - 1).clamp(*range.start(), *range.end())
    }

    pub(super) fn one_of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.between(0..=values.len() as u64 - 1) as usize]
    }

    pub(super) fn is_heads(&mut self) -> bool {
        self.between(0..=1) == 1
    }
}
