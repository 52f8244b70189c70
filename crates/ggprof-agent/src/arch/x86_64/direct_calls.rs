//! Calls and jumps in code, by their bytes.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_jumps_are_found_where_they_lead() {
        // nop; call +0x10; jmp -6 (to the call); ret
        let code = [0x90, 0xe8, 0x10, 0, 0, 0, 0xe9, 0xf6, 0xff, 0xff, 0xff, 0xc3];
        assert!(calls(&code, 0x1000, 0x1016));
        assert!(calls(&code, 0x1000, 0x1001));
        assert!(!calls(&code, 0x1000, 0x1002));
    }
}
