//! The way back of a thread that calls something for us, which it finds without us as well: if
//! `ggprof attach` is killed in the middle, the thread finishes the call, waits for a moment, and is
//! then where it was.
//!
//! On the thread's stack lies what the kernel puts there when it delivers a signal: all registers,
//! those of vectors too, and the signals that were blocked. The thread runs a few instructions
//! (`CODE`): the call, a pause in which ggprof takes over again, and then the return from a signal.

use super::Registers;
use super::others::Others;

/// With the function in `x19`, its arguments in place and the block in `x20`, which functions keep.
#[rustfmt::skip]
pub(in crate::launch::attach) const CODE: &[u8] = &[
    0x60, 0x02, 0x3f, 0xd6, // blr x19
    0x80, 0x02, 0x00, 0xf9, // str x0, [x20, RESULT]
    0x21, 0x00, 0x80, 0xd2, // mov x1, 1
    0x81, 0x06, 0x00, 0xf9, // str x1, [x20, DONE]
    // A pause by ppoll, which leaves nothing behind when it is interrupted: what the thread was
    // waiting in may have left something there.
    0x00, 0x00, 0x80, 0xd2, // mov x0, 0
    0x01, 0x00, 0x80, 0xd2, // mov x1, 0
    0x82, 0x42, 0x00, 0x91, // add x2, x20, PAUSE
    0x03, 0x00, 0x80, 0xd2, // mov x3, 0
    0x04, 0x00, 0x80, 0xd2, // mov x4, 0
    0x28, 0x09, 0x80, 0xd2, // mov x8, SYS_ppoll
    0x01, 0x00, 0x00, 0xd4, // svc 0
    0x9f, 0x82, 0x00, 0x91, // add sp, x20, FRAME
    0x68, 0x11, 0x80, 0xd2, // mov x8, SYS_rt_sigreturn
    0x01, 0x00, 0x00, 0xd4, // svc 0
    0x00, 0x00, 0x00, 0x00, // udf 0
];

/// Places in the block.
pub(in crate::launch::attach) const RESULT: u64 = 0;
pub(in crate::launch::attach) const DONE: u64 = 8;
const PAUSE: usize = 16;
const FRAME: usize = 32;
/// The kernel wants the frame to lie so, as every stack.
pub(in crate::launch::attach) const ALIGNMENT: u64 = 16;

/// How long the thread waits for ggprof, which is a thousand times as long as it needs to come.
const PAUSE_NS: u64 = 500_000_000;

/// In the frame, in the order of the kernel: who sent the signal, and the context.
const CONTEXT: usize = FRAME + 128;
const STACK_FLAGS: usize = CONTEXT + 24;
const SIGNALS: usize = CONTEXT + 40;
const REGISTERS: usize = CONTEXT + 184;
const RECORDS: usize = CONTEXT + 464;
const RECORDS_BYTES: usize = 4096;
const END: usize = RECORDS + RECORDS_BYTES;
/// No such thing as an alternative stack with these: the kernel then leaves the thread's own alone.
const NO_STACK_FLAGS: u32 = 0x7fff;

/// What records begin with; a head of zeros ends them.
const VECTORS_MARK: u32 = 0x4650_8001;
const LONG_VECTORS_MARK: u32 = 0x5356_4501;
const HEAD_BYTES: usize = 8;
/// Thirty-two of 16 bytes.
const ALL_VECTORS: usize = 512;

/// How long the block is at most.
pub(in crate::launch::attach) fn room(_: &Others) -> u64 {
    END as u64
}

/// What lies on the thread's stack, which is the same at every address. `None` if the thread's vectors
/// are longer than there is room for, which no processor has.
pub(in crate::launch::attach) fn block(
    _: u64,
    registers: &Registers,
    others: &Others,
    signals: u64,
) -> Option<Vec<u8>> {
    let mut block = vec![0; END];
    let mut put = |place: usize, bytes: &[u8]| {
        block[place..place + bytes.len()].copy_from_slice(bytes);
    };
    put(PAUSE + 8, &PAUSE_NS.to_le_bytes());
    put(STACK_FLAGS, &NO_STACK_FLAGS.to_le_bytes());
    put(SIGNALS, &signals.to_le_bytes());
    let state = [registers.sp, registers.pc, registers.pstate];
    for (place, register) in registers.regs.iter().chain(&state).enumerate() {
        put(REGISTERS + place * 8, &register.to_le_bytes());
    }
    let records = records(others)?;
    put(RECORDS, &records);
    // The rest is zeros, which ends the records.
    (records.len() + HEAD_BYTES <= RECORDS_BYTES).then_some(block)
}

fn records(others: &Others) -> Option<Vec<u8>> {
    let (vectors, state) = others.vectors.split_at_checked(ALL_VECTORS)?;
    let mut records = record(VECTORS_MARK, &[state.get(..8)?, vectors].concat());
    if let Some((vectors, length)) = others.used_long_vectors() {
        let head = u64::from(length).to_le_bytes();
        records.extend(record(LONG_VECTORS_MARK, &[&head, vectors].concat()));
    }
    (records.len() <= RECORDS_BYTES).then_some(records)
}

fn record(mark: u32, body: &[u8]) -> Vec<u8> {
    let length = (HEAD_BYTES + body.len()).next_multiple_of(16);
    let mut record = Vec::with_capacity(length);
    record.extend(mark.to_le_bytes());
    record.extend((length as u32).to_le_bytes());
    record.extend(body);
    record.resize(length, 0);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> Registers {
        let regs = std::array::from_fn(|number| number as u64);
        Registers { regs, sp: 100, pc: 101, pstate: 102 }
    }

    fn others(length: u16, is_long: bool) -> Others {
        let mut long = vec![0; 16 + usize::from(length) * 32 + usize::from(length) / 8 * 17 + 16];
        long[8..10].copy_from_slice(&length.to_le_bytes());
        long[12] = u8::from(is_long);
        Others { vectors: (0..528).map(|at| at as u8).collect(), long_vectors: Some(long) }
    }

    #[test]
    fn registers_are_where_the_kernel_looks_for_them() {
        let block = block(0, &registers(), &others(16, false), 7).unwrap();
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| block[at + byte]));
        // A frame of 128 bytes, in the context behind it 176, and one word.
        let first = 32 + 128 + 176 + 8;
        assert_eq!((word(first), word(first + 8 * 30)), (0, 30));
        assert_eq!([0, 8, 16].map(|at| word(first + 8 * 31 + at)), [100, 101, 102]);
        assert_eq!(word(RECORDS), 528 << 32 | 0x4650_8001);
        assert_eq!((block[RECORDS + 8], block[RECORDS + 16]), (0, 0));
        assert_eq!(word(RECORDS + 528), 0);
        assert_eq!(word(SIGNALS), 7);
    }

    #[test]
    fn long_vectors_that_are_used_are_there() {
        let block = |others: &Others| block(0, &registers(), others, 0);
        let short = block(&others(64, false)).unwrap();
        let long = block(&others(64, true)).unwrap();
        assert_eq!(short[RECORDS + 528..][..4], [0; 4]);
        assert_eq!(long[RECORDS + 528..][..4], LONG_VECTORS_MARK.to_le_bytes());
        assert_eq!(long[RECORDS + 528 + 8..][..2], 64_u16.to_le_bytes());
        assert!(block(&others(256, true)).is_none());
    }
}
