//! Numbers in as few bits as they need: runs and packed groups, and differences.

use super::thrift::{signed, unsigned};

/// Values of a packed group.
const GROUP: usize = 8;
/// Values of a block of differences, and of each of its parts.
const BLOCK: usize = 128;
const PART: usize = 32;

/// How many bits the largest of several numbers takes.
pub(super) fn width_of(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

/// Appends numbers of `width` bits (1 to 32): repeated ones as runs, others packed.
pub(super) fn runs(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let mut rest = values;
    while !rest.is_empty() {
        let run = run_length(rest);
        if run >= GROUP || run == rest.len() {
            unsigned(out, (run as u64) << 1);
            let bytes = width.div_ceil(8) as usize;
            out.extend_from_slice(&rest[0].to_le_bytes()[..bytes]);
            rest = &rest[run..];
        } else {
            let length = until_a_run(rest);
            let groups = length.div_ceil(GROUP);
            unsigned(out, (groups as u64) << 1 | 1);
            // What fills up the last group is not counted as a value.
            let missing = std::iter::repeat_n(0, groups * GROUP - length);
            let numbers = rest[..length].iter().map(|&value| u64::from(value)).chain(missing);
            pack(out, numbers, width);
            rest = &rest[length..];
        }
    }
}

fn run_length(values: &[u32]) -> usize {
    values.iter().take_while(|&&value| value == values[0]).count()
}

/// Values until one repeats for longer than a group, in whole groups; all of them if none does.
fn until_a_run(values: &[u32]) -> usize {
    let mut repeated = 1;
    for at in 1..values.len() {
        repeated = if values[at] == values[at - 1] { repeated + 1 } else { 1 };
        // The first of them may be needed to fill the group before them.
        let begin = (at + 1 - repeated).next_multiple_of(GROUP);
        if repeated >= 2 * GROUP && begin > 0 {
            return begin;
        }
    }
    values.len()
}

/// The lowest bits first, without gaps; the last byte is filled up with zeros.
fn pack(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut held, mut bits) = (0u128, 0);
    for value in values {
        held |= u128::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(held as u8);
    }
}

/// Appends numbers by how each differs from the one before (Parquet's DELTA_BINARY_PACKED).
pub(super) fn differences(out: &mut Vec<u8>, values: &[i64]) {
    unsigned(out, BLOCK as u64);
    unsigned(out, (BLOCK / PART) as u64);
    unsigned(out, values.len() as u64);
    signed(out, values.first().copied().unwrap_or(0));
    let steps: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    steps.chunks(BLOCK).for_each(|block| block_of_differences(out, block));
}

fn block_of_differences(out: &mut Vec<u8>, steps: &[i64]) {
    let least = steps.iter().copied().min().unwrap_or(0);
    signed(out, least);
    let above = |step: &i64| step.wrapping_sub(least) as u64;
    let mut widths = [0u8; BLOCK / PART];
    for (width, part) in widths.iter_mut().zip(steps.chunks(PART)) {
        *width = width_of(part.iter().map(above).max().unwrap_or(0)) as u8;
    }
    out.extend_from_slice(&widths);
    for (part, width) in steps.chunks(PART).zip(widths) {
        let missing = std::iter::repeat_n(0, PART - part.len());
        pack(out, part.iter().map(above).chain(missing), width.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_runs(values: &[u32], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        runs(&mut out, values, width);
        out
    }

    #[test]
    fn repeated_values_are_runs() {
        assert_eq!(in_runs(&[1; 200], 1), [0x90, 3, 1]);
        assert_eq!(in_runs(&[300; 9], 9), [18, 0x2c, 1]);
    }

    #[test]
    fn others_are_packed_in_groups() {
        // The example of Parquet's own description.
        assert_eq!(
            in_runs(&[0, 1, 2, 3, 4, 5, 6, 7], 3),
            [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]
        );
        // Two groups, the second with one value; then nothing.
        assert_eq!(in_runs(&[1, 0, 1, 0, 1, 0, 1, 0, 1], 1), [5, 0b0101_0101, 1]);
    }

    #[test]
    fn what_comes_before_a_run_fills_whole_groups() {
        let mut values = vec![2, 1, 2];
        values.extend([3; 40]);
        let packed = in_runs(&values, 2);
        // A group of 2 1 2 3 3 3 3 3, and 35 times 3.
        assert_eq!(packed, [3, 0b1110_0110, 0b1111_1111, 70, 3]);
    }

    #[test]
    fn differences_of_parquets_own_description() {
        let mut out = Vec::new();
        differences(&mut out, &[7, 5, 3, 1, 2, 3, 4, 5]);
        // Block, parts, values, the first; the least difference -2; widths.
        assert_eq!(out[..10], [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0]);
        // 0 0 0 3 3 3 3, and what fills up the part.
        assert_eq!(out[10..], [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
    }
}
