//! The first instructions of a function: which of them a jump of five bytes would overwrite, and
//! what they look like at another address. Anything unusual is refused; the caller has other ways
//! to see the function's work.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind};

/// Length of `jmp rel32`.
pub(crate) const JUMP: usize = 5;
/// How far it reaches.
pub(crate) const JUMP_REACH: usize = 1 << 31;
/// Room for the code that leads to a hook: `jump_telling_way_past`.
pub(crate) const WAY_IN: usize = 32;
/// Where control may come from an indirect call: processors that check it want
/// this to stay first.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Bytes at a function's start that a hook may change.
pub(crate) const MOST_CHANGED: usize = ENDBR64.len() + JUMP;

/// A function whose entry can be moved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntryCode {
    /// Where the jump is placed: at the entry, or after its `endbr64`.
    pub(crate) at: usize,
    /// The instructions that it overwrites, as they are at another address.
    instructions: Vec<Moved>,
    overwritten: [u8; JUMP],
    pub(crate) length: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Moved {
    bytes: Vec<u8>,
    /// The offset of a distance to data or code, and the address of that.
    distance: Option<(usize, usize)>,
}

impl EntryCode {
    /// Looks at all of the function: no jump inside it may lead to the bytes that
    /// are overwritten.
    pub(crate) fn read(code: &[u8], address: usize) -> Result<EntryCode, &'static str> {
        let skipped = if code.starts_with(&ENDBR64) { ENDBR64.len() } else { 0 };
        let at = address + skipped;
        let (instructions, overwritten) = (Vec::new(), [0; JUMP]);
        let mut entry = EntryCode { at, instructions, overwritten, length: 0 };
        let mut decoder = Decoder::with_ip(64, code, address as u64, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut targets = Vec::new();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                return Err("the function contains bytes that are not instructions");
            }
            if instruction.op0_kind() == OpKind::NearBranch64 {
                targets.push(instruction.near_branch64() as usize);
            }
            let start = instruction.ip() as usize;
            if start >= at && entry.length < JUMP {
                let offset = start - address;
                let bytes = &code[offset..offset + instruction.len()];
                entry.take(bytes, &instruction, &decoder)?;
            }
        }
        if entry.length < JUMP {
            return Err("the function is shorter than a jump");
        }
        entry.overwritten.copy_from_slice(&code[skipped..skipped + JUMP]);
        let overwritten = at..at + entry.length;
        if targets.iter().any(|target| overwritten.contains(target)) {
            return Err("the function jumps back to its own start");
        }
        Ok(entry)
    }

    fn take(
        &mut self,
        bytes: &[u8],
        instruction: &Instruction,
        decoder: &Decoder<'_>,
    ) -> Result<(), &'static str> {
        let moved = if let Some(condition) = condition_of_jump(bytes) {
            far_jump_under_condition(condition, instruction.near_branch64() as usize)
        } else if goes_on(instruction) {
            let distance = instruction.is_ip_rel_memory_operand().then(|| {
                let offset = decoder.get_constant_offsets(instruction).displacement_offset();
                (offset, instruction.ip_rel_memory_address() as usize)
            });
            Moved { bytes: bytes.to_vec(), distance }
        } else {
            return Err("the function's first instructions leave it");
        };
        self.instructions.push(moved);
        self.length += bytes.len();
        Ok(())
    }

    /// The instructions as they must be at another address, followed by a jump
    /// to the rest of the function.
    pub(crate) fn moved_to(&self, address: usize) -> Result<Vec<u8>, &'static str> {
        let mut code = ENDBR64.to_vec();
        for moved in &self.instructions {
            let mut bytes = moved.bytes.clone();
            if let Some((offset, target)) = moved.distance {
                let next = address + code.len() + bytes.len();
                let distance = i32::try_from(target.wrapping_sub(next) as isize)
                    .map_err(|_| "what the function refers to is out of reach")?;
                bytes[offset..offset + 4].copy_from_slice(&distance.to_le_bytes());
            }
            code.extend(bytes);
        }
        code.extend(jump_anywhere(self.at + self.length));
        Ok(code)
    }

    /// The bytes that a jump replaces.
    pub(crate) fn overwritten(&self) -> [u8; JUMP] {
        self.overwritten
    }

    /// What the entry's bytes are overwritten with.
    pub(crate) fn jump_to(&self, target: usize) -> Result<[u8; JUMP], &'static str> {
        let distance = target.wrapping_sub(self.at + JUMP) as isize;
        let distance = i32::try_from(distance).map_err(|_| "the agent's code is out of reach")?;
        let [a, b, c, d] = distance.to_le_bytes();
        Ok([0xe9, a, b, c, d])
    }
}

/// Whether control goes on behind the instruction, whatever happens.
///
/// The decoder knows this, too (`flow_control`), but by a table of all that it knows of each instruction:
/// forty kilobytes. A test compares the two.
fn goes_on(instruction: &Instruction) -> bool {
    let branches = matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    !branches && !leads_to_others(instruction.code()) && !leaves(instruction.code())
}

/// Calls, jumps to what a register or memory says, and calls of the system.
fn leads_to_others(code: Code) -> bool {
    matches!(
        code,
        Code::Call_rel16
            | Code::Call_rel32_64
            | Code::Call_rm16
            | Code::Call_rm64
            | Code::Call_m1616
            | Code::Call_m1632
            | Code::Call_m1664
            | Code::Jmp_rm16
            | Code::Jmp_rm64
            | Code::Jmp_m1616
            | Code::Jmp_m1632
            | Code::Jmp_m1664
            | Code::Syscall
            | Code::Sysenter
            | Code::Vmcall
            | Code::Vmlaunch
            | Code::Vmresume
            | Code::Vmrund
            | Code::Vmrunq
            | Code::Vmmcall
            | Code::Vmgexit
            | Code::Vmgexit_F2
            | Code::Tdcall
            | Code::Seamret
            | Code::Seamcall
    )
}

/// Returns, interrupts, and what no processor executes.
pub(super) fn leaves(code: Code) -> bool {
    matches!(
        code,
        Code::Retnw_imm16
            | Code::Retnq_imm16
            | Code::Retnw
            | Code::Retnq
            | Code::Retfw_imm16
            | Code::Retfd_imm16
            | Code::Retfq_imm16
            | Code::Retfw
            | Code::Retfd
            | Code::Retfq
            | Code::Iretw
            | Code::Iretd
            | Code::Iretq
            | Code::Uiret
            | Code::Eretu
            | Code::Erets
            | Code::Sysretd
            | Code::Sysretq
            | Code::Sysexitd
            | Code::Sysexitq
            | Code::Skinit
            | Code::Rsm
            | Code::Int1
            | Code::Int3
            | Code::Int_imm8
            | Code::Ud0
            | Code::Ud0_r16_rm16
            | Code::Ud0_r32_rm32
            | Code::Ud0_r64_rm64
            | Code::Ud1_r16_rm16
            | Code::Ud1_r32_rm32
            | Code::Ud1_r64_rm64
            | Code::Ud2
    )
}

/// The four bits that say when an instruction jumps, if it is a jump under a condition: a short one, or one
/// that reaches far.
fn condition_of_jump(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [code @ 0x70..=0x7f, _] | [0x0f, code @ 0x80..=0x8f, _, _, _, _] => Some(code & 0x0f),
        _ => None,
    }
}

/// `jcc rel32`, whichever form the jump has: a short one reaches only its neighbourhood.
fn far_jump_under_condition(condition: u8, target: usize) -> Moved {
    Moved { bytes: vec![0x0f, 0x80 | condition, 0, 0, 0, 0], distance: Some((2, target)) }
}

/// A jump that passes on, in a register that holds no argument, where the replaced function
/// continues (`note_way_past_then_jump`): `mov r11, imm64`, and the jump.
pub(crate) fn jump_telling_way_past(past: usize, target: usize) -> Vec<u8> {
    let mut code = vec![0x49, 0xbb];
    code.extend(past.to_le_bytes());
    code.extend(jump_anywhere(target));
    code
}

/// `jmp [rip]`, followed by the address.
pub(crate) fn jump_anywhere(target: usize) -> Vec<u8> {
    let mut code = vec![0xff, 0x25, 0, 0, 0, 0];
    code.extend(target.to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: usize = 0x10_0000;
    const RETURN: u8 = 0xc3;

    #[test]
    fn endbr64_stays_and_whole_instructions_move() {
        // endbr64; push rbp; mov rbp, rsp; sub rsp, 16; ret
        let mut code = ENDBR64.to_vec();
        code.extend([0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, RETURN]);
        let entry = EntryCode::read(&code, AT).expect("an ordinary entry");
        assert_eq!((entry.at, entry.length), (AT + 4, 8));
        let moved = entry.moved_to(AT + 0x1000).expect("nothing in it depends on the place");
        assert_eq!(moved[4..12], code[4..12]);
        assert_eq!(moved[12..], jump_anywhere(AT + 12));
        let jump = entry.jump_to(AT + 0x1000).expect("near");
        assert_eq!(jump, [0xe9, 0xf7, 0x0f, 0, 0]);
        assert_eq!(entry.overwritten(), code[4..9]);
    }

    /// Of all instructions that there are in 64-bit code.
    #[test]
    fn where_control_goes_is_what_the_decoder_says() {
        use iced_x86::{FlowControl, OpCodeOperandKind as Operand};
        let exists = |code: &Code| {
            let facts = code.op_code();
            facts.is_instruction()
                && facts.mode64()
                && facts.decoder_option() == DecoderOptions::NONE
        };
        let mut compared = 0;
        for code in Code::values().filter(exists) {
            let to_a_known_place = matches!(
                code.op_code().op0_kind(),
                Operand::br16_1
                    | Operand::br32_1
                    | Operand::br64_1
                    | Operand::br16_2
                    | Operand::br32_4
                    | Operand::br64_4
                    | Operand::xbegin_2
                    | Operand::xbegin_4
            );
            let flow = code.flow_control();
            let leads_to_others = matches!(
                flow,
                FlowControl::Call | FlowControl::IndirectCall | FlowControl::IndirectBranch
            );
            let goes_on = flow == FlowControl::Next;
            let found = !to_a_known_place && !super::leads_to_others(code) && !leaves(code);
            assert_eq!(found, goes_on, "{code:?}");
            assert_eq!(super::leads_to_others(code), leads_to_others, "{code:?}");
            compared += 1;
        }
        assert!(compared > 4000, "{compared}");
    }

    #[test]
    fn distances_to_data_are_kept_right() {
        // mov rax, [rip + 0x100]; ret
        let code = [0x48, 0x8b, 0x05, 0, 1, 0, 0, RETURN];
        let entry = EntryCode::read(&code, AT).expect("data can be followed");
        let moved = entry.moved_to(AT + 0x80).expect("near");
        // 4 bytes of endbr64 and 0x80 further on, the same data is 0x84 nearer.
        assert_eq!(moved[4..11], [0x48, 0x8b, 0x05, 0x7c, 0, 0, 0]);
        assert!(entry.moved_to(AT + (5 << 30)).is_err());
    }

    /// As clang begins a function that checks its argument.
    #[test]
    fn jumps_under_a_condition_reach_as_far_as_before() {
        // push rbx; test rdi, rdi; je +0x1a; mov rbx, rdi; ret
        let mut code = vec![0x53, 0x48, 0x85, 0xff, 0x74, 0x1a, 0x48, 0x89, 0xfb, RETURN];
        code.resize(0x30, 0x90);
        let entry = EntryCode::read(&code, AT).expect("an ordinary entry");
        assert_eq!((entry.length, entry.overwritten()), (6, [0x53, 0x48, 0x85, 0xff, 0x74]));
        let moved = entry.moved_to(AT + 0x1000).expect("near");
        // endbr64 and the two instructions as they are, and je in its long form, to AT + 0x20.
        assert_eq!(moved[4..10], [0x53, 0x48, 0x85, 0xff, 0x0f, 0x84]);
        assert_eq!(moved[10..14], (0x20 - (0x1000 + 14_i32)).to_le_bytes());
        assert_eq!(moved[14..], jump_anywhere(AT + 6));
        assert!(entry.moved_to(AT + (5 << 30)).is_err());
        // test rdi, rdi; jg in its long form; ret
        let code = [&[0x48, 0x85, 0xff, 0x0f, 0x8f, 1, 0, 0, 0][..], &[RETURN; 3]].concat();
        let moved = EntryCode::read(&code, AT).expect("an ordinary entry").moved_to(AT + 0x40);
        let moved = moved.expect("near");
        assert_eq!(moved[7..9], [0x0f, 0x8f]);
        assert_eq!(moved[9..13], (10 - (0x40 + 13_i32)).to_le_bytes());
    }

    #[test]
    fn odd_entries_are_refused() {
        let refused = |code: &[u8]| EntryCode::read(code, AT).expect_err("to be refused");
        // call +0; ret
        assert!(refused(&[0xe8, 0, 0, 0, 0, RETURN]).contains("leave it"));
        // jmp [rip]
        assert!(refused(&[0xff, 0x25, 0, 0, 0, 0]).contains("leave it"));
        // push rbp; jrcxz over the ret
        assert!(refused(&[0x55, 0xe3, 0x01, RETURN, 0x90, RETURN]).contains("leave it"));
        // test rdi, rdi; je to the test
        assert!(refused(&[0x48, 0x85, 0xff, 0x74, 0xfb, RETURN]).contains("back"));
        // xor eax, eax; ret
        assert!(refused(&[0x31, 0xc0, RETURN]).contains("leave it"));
        assert!(refused(&[0x31, 0xc0]).contains("shorter"));
        // push rbp; dec rax; nop; jmp back to the dec
        assert!(refused(&[0x55, 0x48, 0xff, 0xc8, 0x90, 0x90, 0xeb, 0xf9]).contains("back"));
        // push rbp; mov rbp, rsp; an opcode that does not exist
        assert!(refused(&[0x55, 0x48, 0x89, 0xe5, 0x90, 0x06]).contains("not instructions"));
    }
}
