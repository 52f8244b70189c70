//! Calls and jumps in code.

use std::ops::Range;

use super::entry_code::{Branch, branch};

/// Whether any instruction of the code is a call of, or a jump to, the function. Constants among the
/// code are taken for instructions, too: a wrong "yes" needs one that matches by chance.
pub(crate) fn calls(code: &[u8], start: usize, function: usize) -> bool {
    let (words, _) = code.as_chunks();
    words.iter().zip((start..).step_by(4)).any(|(word, at)| {
        let leads_to = branch(u32::from_le_bytes(*word), at);
        matches!(leads_to, Some(Branch::Call(to) | Branch::Jump(to)) if to == function)
    })
}

/// Nothing leads behind the start of a range: one instruction is overwritten.
pub(crate) fn jumps_into(_code: &[u8], _start: usize, _ranges: &[Range<usize>]) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_jumps_are_found_where_they_lead() {
        // nop; bl +0x10; b -4 (to the call); b.eq +8; ret
        let words = [0xd503_201f_u32, 0x9400_0004, 0x17ff_ffff, 0x5400_0040, 0xd65f_03c0];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(calls(&code, 0x1000, 0x1014));
        assert!(calls(&code, 0x1000, 0x1004));
        assert!(!calls(&code, 0x1000, 0x1008));
        // Conditional jumps lead to another part of a function.
        assert!(!calls(&code, 0x1000, 0x1018));
    }
}
