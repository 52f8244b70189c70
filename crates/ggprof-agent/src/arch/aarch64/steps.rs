//! Where control goes from an instruction.

use super::entry_code::{Branch, branch};
use crate::arch::unknown_calls::Step;

/// The instruction's length, and what follows.
pub(in crate::arch) fn step(code: &[u8], at: usize) -> Option<(usize, Step)> {
    let instruction = u32::from_le_bytes(*code.first_chunk()?);
    let step = match branch(instruction, at) {
        None => Step::On,
        Some(Branch::Perhaps(to)) => Step::Perhaps(to),
        Some(Branch::Jump(to)) => Step::Jump(to),
        Some(Branch::Call(to)) => Step::Call(to),
        Some(Branch::Computed) if calls_unknown(instruction) => Step::CallUnknown,
        Some(Branch::Computed | Branch::Return) => Step::Elsewhere,
    };
    Some((size_of::<u32>(), step))
}

/// `blr`, and `br x17`, by which a linker's table is left. (Its longer ways to code that it knows use `x16`,
/// and compilers may use any other for a table of the function's own.)
fn calls_unknown(instruction: u32) -> bool {
    let (kind, register) = (instruction >> 21 & 0b11, instruction >> 5 & 0x1f);
    kind == 0b01 || kind == 0b00 && register == 17
}

#[cfg(test)]
mod tests {
    use crate::arch::calls_unknown;

    const AT: usize = 0x10_0000;
    const RET: u32 = 0xd65f_03c0;
    const NOP: u32 = 0xd503_201f;

    /// Whether a function does, with other code behind it.
    fn calls(function: &[u32], behind: &[u32]) -> bool {
        let words = [function, behind].concat();
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let bytes = function.len() * 4;
        let code_at = |at: usize| code.get(at.checked_sub(AT)?..);
        calls_unknown((&code[..bytes], AT..AT + bytes), code_at)
    }

    #[test]
    fn calls_of_unknown_code_are_told_from_those_that_a_compiler_sees() {
        assert!(!calls(&[NOP, RET], &[]));
        // blr x1; br x17; br x2 and br x16
        assert!(calls(&[0xd63f_0020, RET], &[]));
        assert!(calls(&[0xd61f_0220], &[]));
        assert!(!calls(&[0xd61f_0040], &[]));
        assert!(!calls(&[0xd61f_0200], &[]));
        // bl, b and cbz x0 to what is behind
        for function in [[0x9400_0002, RET], [0x1400_0002, RET], [0xb400_0040, RET]] {
            assert!(!calls(&function, &[NOP, RET]), "{function:x?}");
            assert!(calls(&function, &[NOP, 0xd63f_0020, RET]), "{function:x?}");
            assert!(calls(&function, &[0xd61f_0220]), "{function:x?}");
        }
        // It calls itself.
        assert!(!calls(&[0x9400_0000, RET], &[]));
    }
}
