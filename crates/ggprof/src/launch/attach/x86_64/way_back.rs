//! The way back of a thread that calls something for us, which it finds without us as well: if
//! `ggprof attach` is killed in the middle, the thread finishes the call, waits for a moment, and is
//! then where it was.
//!
//! On the thread's stack lies what the kernel puts there when it delivers a signal: all registers,
//! those of vectors too, and the signals that were blocked. The thread runs a few instructions
//! (`CODE`): the call, a pause in which ggprof takes over again, and then the return from a signal.

use super::others::{self, Others};
use super::{Registers, TO_BE_MADE_AGAIN};

/// With the function in `r12`, its arguments in place and the block in `rbx`, which functions keep.
#[rustfmt::skip]
pub(in crate::launch::attach) const CODE: &[u8] = &[
    0x41, 0xff, 0xd4,                               // call r12
    0x48, 0x89, 0x03,                               // mov [rbx + RESULT], rax
    0x48, 0xc7, 0x43, 0x08, 0x01, 0x00, 0x00, 0x00, // mov qword [rbx + DONE], 1
    // A pause by ppoll, which leaves nothing behind when it is interrupted: what the thread was
    // waiting in may have left something there.
    0x31, 0xff,                                     // xor edi, edi
    0x31, 0xf6,                                     // xor esi, esi
    0x48, 0x8d, 0x53, 0x10,                         // lea rdx, [rbx + PAUSE]
    0x45, 0x31, 0xd2,                               // xor r10d, r10d
    0x45, 0x31, 0xc0,                               // xor r8d, r8d
    0xb8, 0x0f, 0x01, 0x00, 0x00,                   // mov eax, SYS_ppoll
    0x0f, 0x05,                                     // syscall
    0x48, 0x8d, 0x63, 0x28,                         // lea rsp, [rbx + CONTEXT]
    0xb8, 0x0f, 0x00, 0x00, 0x00,                   // mov eax, SYS_rt_sigreturn
    0x0f, 0x05,                                     // syscall
    0x0f, 0x0b,                                     // ud2
];

/// Places in the block.
pub(in crate::launch::attach) const RESULT: u64 = 0;
pub(in crate::launch::attach) const DONE: u64 = 8;
const PAUSE: usize = 16;
const CONTEXT: usize = 40;
const VECTORS: usize = 512;
/// Processors want their vectors' state to lie so.
pub(in crate::launch::attach) const ALIGNMENT: u64 = 64;

/// How long the thread waits for ggprof, which is a thousand times as long as it needs to come.
const PAUSE_NS: u64 = 500_000_000;

/// What follows the context's first words, in the order of the kernel.
const STACK_FLAGS: usize = CONTEXT + 24;
const REGISTERS: usize = CONTEXT + 40;
const SELECTORS: usize = REGISTERS + 18 * 8;
const AT_VECTORS: usize = REGISTERS + 184;
const SIGNALS: usize = REGISTERS + 256;
/// All vectors are there, and the stack's selector is to be taken as it is.
const CONTEXT_FLAGS: u64 = 1 | 2 | 4;
/// No such thing as an alternative stack with these: the kernel then leaves the thread's own alone.
const NO_STACK_FLAGS: u32 = 0x7fff;

/// In the state of the vectors: where the kernel describes it, which parts are not as at the start.
const DESCRIPTION: usize = 464;
const PARTS: usize = 512;
const END_MARK: u32 = 0x4650_5845;

/// How long the block is at most.
pub(in crate::launch::attach) fn room(Others(vectors): &Others) -> u64 {
    (VECTORS + vectors.len() + size_of_val(&END_MARK)) as u64
}

/// What lies on the thread's stack, at this address. `None` if the thread uses registers that other
/// programs have not.
pub(in crate::launch::attach) fn block(
    at: u64,
    registers: &Registers,
    Others(vectors): &Others,
    signals: u64,
) -> Option<Vec<u8>> {
    let description = others::description().ok()?;
    let used = vectors.get(PARTS..PARTS + 8)?;
    let used = u64::from_le_bytes(used.try_into().ok()?);
    let vectors = vectors.get(..description.length())?;
    if used & !description.parts() != 0 {
        return None;
    }
    let registers = begun_again(registers);
    let mut block = vec![0; VECTORS];
    let mut put = |place: usize, bytes: &[u8]| {
        block[place..place + bytes.len()].copy_from_slice(bytes);
    };
    put(PAUSE + 8, &PAUSE_NS.to_le_bytes());
    put(CONTEXT, &CONTEXT_FLAGS.to_le_bytes());
    put(STACK_FLAGS, &NO_STACK_FLAGS.to_le_bytes());
    for (place, register) in in_order_of_context(&registers).iter().enumerate() {
        put(REGISTERS + place * 8, &register.to_le_bytes());
    }
    let selectors = [registers.cs, registers.gs, registers.fs, registers.ss];
    for (place, selector) in selectors.iter().enumerate() {
        put(SELECTORS + place * 2, &(*selector as u16).to_le_bytes());
    }
    put(AT_VECTORS, &(at + VECTORS as u64).to_le_bytes());
    put(SIGNALS, &signals.to_le_bytes());
    block.extend_from_slice(vectors);
    block[VECTORS + DESCRIPTION..][..description.0.len()].copy_from_slice(&description.0);
    block.extend(END_MARK.to_le_bytes());
    Some(block)
}

fn in_order_of_context(from: &Registers) -> [u64; 18] {
    [
        from.r8,
        from.r9,
        from.r10,
        from.r11,
        from.r12,
        from.r13,
        from.r14,
        from.r15,
        from.rdi,
        from.rsi,
        from.rbp,
        from.rbx,
        from.rdx,
        from.rax,
        from.rcx,
        from.rsp,
        from.rip,
        from.eflags,
    ]
}

/// A thread that was stopped in a call of the system is to make this call again; the return from a
/// signal does not see to that. Of a wait with a limit, all of it begins again.
fn begun_again(registers: &Registers) -> Registers {
    const SYSCALL_BYTES: u64 = 2;
    let mut registers = *registers;
    if registers.orig_rax as i64 >= 0 && TO_BE_MADE_AGAIN.contains(&(registers.rax as i64)) {
        registers.rax = registers.orig_rax;
        registers.rip -= SYSCALL_BYTES;
    }
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> Registers {
        // SAFETY: numbers, for which all bits are good.
        #[allow(unsafe_code)]
        let zero: Registers = unsafe { std::mem::zeroed() };
        Registers { rip: 0x1000, rax: 7, orig_rax: u64::MAX, ..zero }
    }

    #[test]
    fn a_call_of_the_system_is_made_again() {
        let outside = begun_again(&registers());
        assert_eq!((outside.rip, outside.rax), (0x1000, 7));
        let interrupted = Registers { orig_rax: 35, rax: (-516_i64) as u64, ..registers() };
        let again = begun_again(&interrupted);
        assert_eq!((again.rip, again.rax), (0xffe, 35));
        let done = begun_again(&Registers { orig_rax: 35, rax: (-4_i64) as u64, ..registers() });
        assert_eq!((done.rip, done.rax as i64), (0x1000, -4));
    }

    #[test]
    fn vectors_that_are_not_described_have_no_way_back() {
        let description = others::description().unwrap();
        assert!(description.parts() & 3 == 3, "{description:?}");
        let mut vectors = vec![0; description.length()];
        let block = |vectors: &[u8]| block(0x4000, &registers(), &Others(vectors.to_vec()), 0);
        let whole = block(&vectors).unwrap();
        assert_eq!(whole.len(), VECTORS + vectors.len() + 4);
        assert!(block(&vectors[1..]).is_none());
        vectors[PARTS + 7] = 0x40;
        assert!(block(&vectors).is_none());
    }
}
