//! Calls and jumps in code, by their bytes.

use std::ops::Range;

/// Length of `call rel32` and `jmp rel32`.
const BYTES: usize = 5;

/// Whether any place of the code looks like a call of, or a jump to, the function. By bytes and not
/// by instructions: a wrong "yes" needs four bytes that match by chance.
pub(crate) fn calls(code: &[u8], start: usize, function: usize) -> bool {
    code.windows(BYTES).zip(start..).any(|(bytes, at)| {
        let distance = || i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let is_call = bytes[0] == 0xe8 || bytes[0] == 0xe9;
        is_call && (at + BYTES).wrapping_add_signed(distance() as isize) == function
    })
}

/// Whether any place of the code looks like a jump to behind the start of one of these ranges, but within it.
/// By bytes, too. A short jump is not looked for: it reaches its own function only, which is decoded.
pub(crate) fn jumps_into(code: &[u8], start: usize, ranges: &[Range<usize>]) -> bool {
    let first = ranges.iter().map(|range| range.start).min().unwrap_or(usize::MAX);
    let last = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    let is_inside = |target| ranges.iter().any(|it| it.start < target && target < it.end);
    code.windows(BYTES).zip(start..).any(|(bytes, at)| {
        // The second byte of a jump under a condition, or the only one of another.
        if bytes[0] != 0xe9 && bytes[0] & 0xf0 != 0x80 {
            return false;
        }
        let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let target = (at + BYTES).wrapping_add_signed(distance as isize);
        (first..last).contains(&target)
            && is_inside(target)
            && (bytes[0] == 0xe9 || at > start && code[at - start - 1] == 0x0f)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_behind_an_entry_are_found_and_those_to_it_are_not() {
        // nop; je +0x10; jmp -0x20; call -0x30
        let code = [
            0x90, 0x0f, 0x84, 0x10, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff, 0xe8, 0xd0, 0xff, 0xff,
            0xff,
        ];
        let jumps_into = |range: Range<usize>| jumps_into(&code, 0x1000, &[0..1, range]);
        for (target, is_jump) in [(0x1017, true), (0xfec, true), (0xfe1, false)] {
            assert_eq!(jumps_into(target - 2..target + 3), is_jump, "{target:#x}");
            assert!(!jumps_into(target..target + 5), "its start may be jumped to: {target:#x}");
        }
    }

    #[test]
    fn calls_and_jumps_are_found_where_they_lead() {
        // nop; call +0x10; jmp -6 (to the call); ret
        let code = [0x90, 0xe8, 0x10, 0, 0, 0, 0xe9, 0xf6, 0xff, 0xff, 0xff, 0xc3];
        assert!(calls(&code, 0x1000, 0x1016));
        assert!(calls(&code, 0x1000, 0x1001));
        assert!(!calls(&code, 0x1000, 0x1002));
    }
}
