//! The first instruction of a function, which a jump overwrites, and what it looks like at another
//! address. All instructions have four bytes, so one is enough, and few depend on where they are.
//! Anything unusual is refused; the caller has other ways to see the function's work.
//!
//! Guarded pages (BTI) want a landing pad where an indirect call arrives. A `bti` therefore stays, and
//! the jump follows it. A `paciasp` is a landing pad, too, but it also signs the address that the
//! function returns to, which only the function itself can check again: so it moves. The page with
//! the jump in its place is not guarded any more (`patch::inline` gives it no `PROT_BTI`), nor is that
//! of the moved instruction, and the way back is a direct branch, which may arrive anywhere.

/// Length of `b`, as of every instruction.
pub(crate) const JUMP: usize = 4;
/// How far it reaches.
pub(crate) const JUMP_REACH: usize = 1 << 27;
/// Room for the code that leads to a hook: `jump_telling_way_past`.
pub(crate) const WAY_IN: usize = 32;

/// Bytes at a function's start that a hook may change: the second instruction, if the first is a
/// landing pad.
pub(crate) const MOST_CHANGED: usize = 2 * JUMP;

/// `bti` with any of its operands: none, c, j, jc.
const LANDING_PADS: [u32; 4] = [0xd503_241f, 0xd503_245f, 0xd503_249f, 0xd503_24df];

/// The lowest bits of an instruction hold the register that it changes.
const REGISTER: u32 = 0x1f;
/// Used by any call and its way to the function, see the parent module.
const X16: u32 = 16;
const X17: u32 = 17;

/// A function whose entry can be moved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntryCode {
    /// Where the jump is placed: at the entry, or after its landing pad.
    pub(crate) at: usize,
    overwritten: u32,
    moved: Moved,
}

/// The instruction at another address.
#[derive(Debug, PartialEq, Eq)]
enum Moved {
    AsItIs,
    /// `adr` or `adrp`: what the register becomes.
    Address(u32, usize),
    /// `ldr` of a constant beside the code: the register, the instruction that loads it from where
    /// the register points to, and the constant's address.
    Constant(u32, u32, usize),
    /// A branch under a condition: the instruction, leading past the next one, and where it leads.
    Perhaps(u32, usize),
}

/// Where an instruction may lead, other than to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branch {
    Call(usize),
    Jump(usize),
    /// Under a condition.
    Perhaps(usize),
    /// By a register.
    Computed,
    /// Back to the caller.
    Return,
}

/// What leads elsewhere, at this address.
pub(super) fn branch(instruction: u32, at: usize) -> Option<Branch> {
    let far = || at.wrapping_add_signed(signed(instruction, 0, 26) * 4);
    let near = || at.wrapping_add_signed(signed(instruction, 5, 19) * 4);
    match instruction >> 24 {
        0x14..=0x17 => Some(Branch::Jump(far())),
        0x94..=0x97 => Some(Branch::Call(far())),
        // b.cond and bc.cond; cbz and cbnz.
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Some(Branch::Perhaps(near())),
        // tbz and tbnz.
        0x36 | 0x37 | 0xb6 | 0xb7 => {
            Some(Branch::Perhaps(at.wrapping_add_signed(signed(instruction, 5, 14) * 4)))
        }
        // br, blr and ret, also those that check a signature.
        0xd6 | 0xd7 => Some(match instruction >> 21 & 0b11 {
            0b10 => Branch::Return,
            _ => Branch::Computed,
        }),
        _ => None,
    }
}

/// A number of so many bits at a place in the instruction.
fn signed(instruction: u32, place: u32, bits: u32) -> isize {
    let above = 32 - place - bits;
    ((instruction << above) as i32 >> (32 - bits)) as isize
}

impl EntryCode {
    /// Looks at all of the function: no jump inside it may lead to the instruction that is
    /// overwritten.
    pub(crate) fn read(code: &[u8], address: usize) -> Result<EntryCode, &'static str> {
        let (words, _) = code.as_chunks();
        let instructions = || {
            let places = (address..).step_by(JUMP);
            places.zip(words.iter().map(|word| u32::from_le_bytes(*word)))
        };
        let entry = instructions().find(|(_, first)| !LANDING_PADS.contains(first));
        let (at, overwritten) = entry.ok_or("the function is shorter than a jump")?;
        if at - address > MOST_CHANGED - JUMP {
            return Err("the function begins with more than one landing pad");
        }
        let moved = Moved::of(overwritten, at)?;
        let leads_back = |(place, instruction)| {
            let to = branch(instruction, place);
            matches!(to, Some(Branch::Jump(to) | Branch::Perhaps(to)) if to == at)
        };
        if instructions().any(leads_back) {
            return Err("the function jumps back to its own start");
        }
        Ok(EntryCode { at, overwritten, moved })
    }

    /// The instruction as it must be at another address, followed by a jump to the rest of the
    /// function.
    pub(crate) fn moved_to(&self, address: usize) -> Result<Vec<u8>, &'static str> {
        let far = "the function is out of reach of its moved instruction";
        let mut elsewhere = None;
        let mut code = match self.moved {
            Moved::AsItIs => vec![self.overwritten],
            Moved::Perhaps(instruction, to) => {
                elsewhere = Some(to);
                vec![instruction]
            }
            Moved::Address(register, value) => load_address(register, value),
            Moved::Constant(register, load, place) => {
                let mut code = load_address(register, place);
                code.push(load | register << 5 | register);
                code
            }
        };
        for to in [Some(self.at + JUMP), elsewhere].into_iter().flatten() {
            code.push(jump(address + code.len() * JUMP, to).ok_or(far)?);
        }
        Ok(code.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    /// The bytes that a jump replaces.
    pub(crate) fn overwritten(&self) -> [u8; JUMP] {
        self.overwritten.to_le_bytes()
    }

    /// What the entry's bytes are overwritten with.
    pub(crate) fn jump_to(&self, target: usize) -> Result<[u8; JUMP], &'static str> {
        let jump = jump(self.at, target).ok_or("the agent's code is out of reach")?;
        Ok(jump.to_le_bytes())
    }
}

impl Moved {
    fn of(instruction: u32, at: usize) -> Result<Moved, &'static str> {
        match branch(instruction, at) {
            Some(Branch::Perhaps(to)) => return Ok(Moved::Perhaps(past_the_next(instruction), to)),
            Some(_) => return Err("the function's first instructions leave it"),
            None => {}
        }
        let register = instruction & REGISTER;
        let distance = signed(instruction, 5, 19);
        let distance_with_low_bits = distance << 2 | (instruction >> 29 & 0b11) as isize;
        // The register, and how to load it from where it points to.
        let constant = |load: u32| {
            if register == REGISTER {
                return Err("the function begins in an unusual way");
            }
            Ok(Moved::Constant(register, load, at.wrapping_add_signed(distance * 4)))
        };
        match instruction >> 24 {
            // adr and adrp.
            0x10 | 0x30 | 0x50 | 0x70 => {
                Ok(Moved::Address(register, at.wrapping_add_signed(distance_with_low_bits)))
            }
            0x90 | 0xb0 | 0xd0 | 0xf0 => {
                let page = at & !0xfff;
                Ok(Moved::Address(register, page.wrapping_add_signed(distance_with_low_bits << 12)))
            }
            // ldr of 32 bits, of 64, and of 32 with a sign.
            0x18 => constant(0xb940_0000),
            0x58 => constant(0xf940_0000),
            0x98 => constant(0xb980_0000),
            // The same into vector registers, a prefetch, system calls, breakpoints, and what
            // is no instruction at all.
            0x1c | 0x5c | 0x9c | 0xd8 | 0xd4 | 0x00 => Err("the function begins in an unusual way"),
            _ => Ok(Moved::AsItIs),
        }
    }
}

/// A branch under a condition with another distance, of two instructions.
fn past_the_next(branch: u32) -> u32 {
    let tests_a_bit = branch >> 24 & 0b111 >= 0b110;
    let distance = if tests_a_bit { 0x3fff << 5 } else { 0x7_ffff << 5 };
    branch & !distance | 2 << 5
}

/// `movz` and `movk`: any address, piece by piece.
fn load_address(register: u32, value: usize) -> Vec<u32> {
    let piece = |number: u32| ((value >> (16 * number)) as u32 & 0xffff) << 5 | number << 21;
    let mut code = vec![0xd280_0000 | piece(0) | register];
    code.extend((1..4).map(|number| 0xf280_0000 | piece(number) | register));
    code
}

/// `b`, where it reaches.
fn jump(from: usize, to: usize) -> Option<u32> {
    let distance = to.wrapping_sub(from) as isize;
    let reaches = -(JUMP_REACH as isize)..JUMP_REACH as isize;
    let is_whole = distance % JUMP as isize == 0;
    let jump = 0x1400_0000 | (distance >> 2) as u32 & 0x03ff_ffff;
    (is_whole && reaches.contains(&distance)).then_some(jump)
}

/// A jump that passes on, in a register that holds no argument, where the replaced function
/// continues (`note_way_past_then_jump`): `ldr x17`, and the jump.
pub(crate) fn jump_telling_way_past(past: usize, target: usize) -> Vec<u8> {
    /// From the instruction to the first address, and from the next one to the second.
    const DISTANCE: u32 = 16;
    let code = [load_constant(X17, DISTANCE), load_constant(X16, DISTANCE + 4), BR_X16, NOP];
    code_and_addresses(&code, &[past, target])
}

/// `ldr x16`, `br x16`, and the address.
pub(crate) fn jump_anywhere(target: usize) -> Vec<u8> {
    code_and_addresses(&[load_constant(X16, 8), BR_X16], &[target])
}

const BR_X16: u32 = 0xd61f_0200;
const NOP: u32 = 0xd503_201f;

/// `ldr` of 64 bits that are so many bytes ahead.
fn load_constant(register: u32, ahead: u32) -> u32 {
    0x5800_0000 | (ahead / 4) << 5 | register
}

fn code_and_addresses(code: &[u32], addresses: &[usize]) -> Vec<u8> {
    let code = code.iter().flat_map(|instruction| instruction.to_le_bytes());
    code.chain(addresses.iter().flat_map(|address| address.to_le_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: usize = 0x10_0000;
    const BTI_C: u32 = LANDING_PADS[1];
    const PACIASP: u32 = 0xd503_233f;
    /// stp x29, x30, [sp, #-32]!
    const PUSH: u32 = 0xa9be_7bfd;
    const RET: u32 = 0xd65f_03c0;

    fn read(words: &[u32]) -> Result<EntryCode, &'static str> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        EntryCode::read(&code, AT)
    }

    fn words(code: &[u8]) -> Vec<u32> {
        code.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn a_landing_pad_stays_and_one_instruction_moves() {
        for (before, code) in [(0, vec![PACIASP, PUSH, RET]), (4, vec![BTI_C, PACIASP, PUSH, RET])]
        {
            let entry = read(&code).expect("an ordinary entry");
            assert_eq!(entry.at, AT + before);
            assert_eq!(entry.overwritten(), PACIASP.to_le_bytes());
            // As it is, and 0x1000 bytes back to the instruction behind it.
            let moved = entry.moved_to(AT + before + 0x1000).expect("near");
            assert_eq!(words(&moved), [PACIASP, 0x17ff_fc00]);
            let jump = entry.jump_to(AT + before + 0x1000).expect("near");
            assert_eq!(u32::from_le_bytes(jump), 0x1400_0400);
            assert!(entry.jump_to(AT + before + JUMP_REACH).is_err());
            assert!(entry.moved_to(AT + before + 2 * JUMP_REACH).is_err());
        }
    }

    #[test]
    fn addresses_are_kept_right() {
        // adrp x1, +0x1234 pages; adr x1, -3: as they are set at any other place
        for (instruction, value) in [(0x9000_91a1_u32, AT + (0x1234 << 12)), (0x30ff_ffe1, AT - 3)]
        {
            let moved = read(&[instruction, RET]).expect("an address").moved_to(AT + 0x2000);
            let moved = words(&moved.expect("near"));
            let piece = |number: usize| (value >> (16 * number) & 0xffff) as u32;
            let expected = [0xd280_0001 | piece(0) << 5, 0xf2a0_0001 | piece(1) << 5];
            assert_eq!(moved[..2], expected);
            assert_eq!(moved[2..4], [0xf2c0_0001, 0xf2e0_0001]);
        }
        // ldr x3, +0x40
        let moved = read(&[0x5800_0203, RET]).expect("a constant").moved_to(AT + 0x2000);
        let moved = words(&moved.expect("near"));
        assert_eq!(moved[0], 0xd280_0003 | 0x40 << 5);
        // ldr x3, [x3]
        assert_eq!(moved[4], 0xf940_0063);
    }

    /// As compilers begin a function that checks its argument.
    #[test]
    fn branches_under_a_condition_reach_as_far_as_before() {
        // b.eq, cbz x0, cbnz w3 and tbnz x2, #37: 0x40 bytes ahead, and moved, past the next one.
        for (instruction, past_the_next) in [
            (0x5400_0200, 0x5400_0040),
            (0xb400_0200, 0xb400_0040),
            (0x3500_0203, 0x3500_0043),
            (0xb728_0202, 0xb728_0042),
        ] {
            let moved = read(&[instruction, RET]).expect("an ordinary entry").moved_to(AT + 0x1000);
            // To the instruction behind it, and to what it led to.
            let expected = [past_the_next, 0x17ff_fc00, 0x17ff_fc0e];
            assert_eq!(words(&moved.expect("near")), expected, "{instruction:x}");
        }
    }

    #[test]
    fn odd_entries_are_refused() {
        let refused = |code: &[u32]| read(code).expect_err("to be refused");
        for leaves in [0x9400_0004, 0x1400_0004, 0xd63f_0020, RET] {
            assert!(refused(&[leaves, RET]).contains("leave it"), "{leaves:x}");
        }
        // svc 0; ldr q0, +8; udf
        for odd in [0xd400_0001, 0x9c00_0040, 0] {
            assert!(refused(&[odd, RET]).contains("unusual"), "{odd:x}");
        }
        assert!(refused(&[]).contains("shorter"));
        assert!(refused(&[BTI_C]).contains("shorter"));
        assert!(refused(&[BTI_C, BTI_C, PUSH]).contains("more than one"));
        // sub x0, x0, #1; cbnz back to it
        assert!(refused(&[0xd100_0400, 0xb5ff_ffe0, RET]).contains("back"));
    }

    #[test]
    fn ways_in_have_their_addresses_behind_the_code() {
        // ldr x16, +8; br x16
        let code = jump_anywhere(0x1122_3344_5566_7788);
        assert_eq!(words(&code), [0x5800_0050, 0xd61f_0200, 0x5566_7788, 0x1122_3344]);
        // ldr x17, +16; ldr x16, +20; br x16; nop
        let code = jump_telling_way_past(5, 6);
        assert_eq!(code.len(), WAY_IN);
        let expected = [0x5800_0091, 0x5800_00b0, 0xd61f_0200, NOP, 5, 0, 6, 0];
        assert_eq!(words(&code), expected);
    }
}
