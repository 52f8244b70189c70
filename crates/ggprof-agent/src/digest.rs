//! Digests of bytes: two things with equal digests are taken for equal. And tables whose keys are numbers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Tables by numbers, addresses or digests.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
pub(crate) type NumberSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers by one multiplication. They come from the program itself, so nobody chooses them to make
/// tables slow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(digest(bytes));
    }
    #[inline(always)]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }
    #[inline(always)]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        let wide = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

/// A 64-bit digest of bytes: multiply and fold, eight bytes at a time.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut state = mix(0x243f_6a88_85a3_08d3, bytes.len() as u64);
    for word in words.by_ref() {
        state = mix(state, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(state, u64::from_le_bytes(last))
}

#[inline(always)]
pub(crate) fn mix(state: u64, word: u64) -> u64 {
    let wide =
        u128::from(state ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    (wide as u64) ^ ((wide >> 64) as u64) ^ state.rotate_left(23)
}
