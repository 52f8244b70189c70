//! Where control goes from an instruction.

use iced_x86::{Code, Decoder, DecoderOptions, OpKind};

use super::entry_code::leaves;
use crate::arch::unknown_calls::Step;

/// The instruction's length, and what follows; `None` if it is none.
pub(in crate::arch) fn step(code: &[u8], at: usize) -> Option<(usize, Step)> {
    let mut decoder = Decoder::with_ip(64, code, at as u64, DecoderOptions::NONE);
    let instruction = decoder.can_decode().then(|| decoder.decode())?;
    if instruction.is_invalid() {
        return None;
    }
    let is_branch = instruction.op0_kind() == OpKind::NearBranch64;
    let target = instruction.near_branch64() as usize;
    let step = match instruction.code() {
        Code::Call_rm64 => Step::CallUnknown,
        // A table that the linker fills; by a register, it may be a table of the function's own.
        Code::Jmp_rm64 if instruction.is_ip_rel_memory_operand() => Step::CallUnknown,
        Code::Jmp_rm64 => Step::Elsewhere,
        Code::Call_rel32_64 => Step::Call(target),
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Step::Jump(target),
        _ if is_branch => Step::Perhaps(target),
        code if leaves(code) => Step::Elsewhere,
        _ => Step::On,
    };
    Some((instruction.len(), step))
}

#[cfg(test)]
mod tests {
    use crate::arch::calls_unknown;

    const AT: usize = 0x10_0000;

    /// Whether a function does, with other code behind it.
    fn calls(function: &[u8], behind: &[u8]) -> bool {
        let code = [function, behind].concat();
        let code_at = |at: usize| code.get(at.checked_sub(AT)?..);
        calls_unknown((function, AT..AT + function.len()), code_at)
    }

    #[test]
    fn calls_of_unknown_code_are_told_from_those_that_a_compiler_sees() {
        const RETURN: u8 = 0xc3;
        let to_table = [0xff, 0x25, 0, 0, 0, 0];
        assert!(!calls(&[0x90, RETURN], &[]));
        // call [rax]; call rdx; jmp [rip]; jmp rax, as by a table of its own
        assert!(calls(&[0xff, 0x10, RETURN], &[]));
        assert!(calls(&[0xff, 0xd2, RETURN], &[]));
        assert!(calls(&to_table, &[]));
        assert!(!calls(&[0xff, 0xe0], &[]));
        // call and jmp to what is behind: a function that returns, one that calls [rax], and a linker's table
        for function in [&[0xe8, 1, 0, 0, 0, RETURN][..], &[0xe9, 0, 0, 0, 0], &[0x74, 1, RETURN]] {
            assert!(!calls(function, &[0x90, RETURN]), "{function:x?}");
            assert!(calls(function, &[0x90, 0xff, 0x10, RETURN]), "{function:x?}");
            assert!(calls(function, &to_table), "{function:x?}");
        }
        // It calls itself; what it calls calls itself, and is followed once.
        assert!(!calls(&[0xe8, 0xfb, 0xff, 0xff, 0xff, RETURN], &[]));
        assert!(!calls(&[0xe9, 0, 0, 0, 0], &[0xe8, 0xfb, 0xff, 0xff, 0xff, RETURN]));
    }
}
