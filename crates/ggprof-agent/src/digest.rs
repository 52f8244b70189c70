//! Digests of bytes: two things with equal digests are taken for equal.

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
