//! All that attaching knows of the processor: the registers of a thread, what lies on its stack, and
//! which numbers the system's calls have. Folders of other processors have the same names.

pub(super) mod others;
pub(super) mod way_back;

use super::threads::SystemCall;
use super::tracee::Tracee;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

pub(super) type Registers = libc::user_regs_struct;

/// Nothing of a function lies below the stack pointer.
pub(super) const RED_ZONE: u64 = 0;
/// The bits that say what kind of branch was just made, which guarded pages (BTI) ask for.
const BRANCH_KIND: u64 = 0b11 << 10;
/// The instruction that calls the system.
const CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];
/// The part of what a C library knows of a thread that says where its stack is; glibc's is 1.8 KB long, and
/// the stack begins in front of that.
const NOTES_BYTES: u64 = 1536;
/// The kernel's number for the thread pointer (`NT_ARM_TLS`).
const THREAD_POINTER: usize = 0x401;

/// Calls of the system in which a thread waits for something outside of its process, best first.
/// Those behind come back with an error when a thread is stopped in them, which programs must expect
/// and do.
pub(super) const WAITING: [i64; 10] = [
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_epoll_pwait,
    441, // epoll_pwait2
];

/// The address of the next instruction. A thread that was stopped in a call of the system is about to
/// make this call again: the kernel has set its registers so.
pub(super) fn place(registers: &Registers) -> u64 {
    registers.pc
}

pub(super) fn stack(registers: &Registers) -> u64 {
    registers.sp
}

/// Where the C library keeps what it knows of the thread: in front of the thread pointer.
pub(super) fn notes(_: &Registers, tracee: &Tracee) -> io::Result<Range<u64>> {
    let pointer = tracee.other_registers(THREAD_POINTER)?;
    let pointer = pointer.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let until = u64::from_le_bytes(*pointer);
    Ok(until.saturating_sub(NOTES_BYTES)..until)
}

/// The call of the system that a thread was stopped in, while it waited there: it is about to make the call
/// again, or has it behind itself and was told that it was interrupted.
pub(super) fn interrupted_call(registers: &Registers, memory: &File) -> Option<SystemCall> {
    const GIVEN_UP: i64 = -(libc::EINTR as i64);
    let is_call = |at: u64| {
        let mut instruction = [0; CALL.len()];
        memory.read_exact_at(&mut instruction, at).is_ok() && instruction == CALL
    };
    let number = registers.regs[8] as i64;
    if is_call(registers.pc) {
        return Some(SystemCall { number, arguments: [registers.regs[0], registers.regs[1]] });
    }
    // What it was called with first is gone.
    let was_given_up = registers.regs[0] as i64 == GIVEN_UP && is_call(registers.pc - 4);
    was_given_up.then_some(SystemCall { number, arguments: [0, registers.regs[1]] })
}

/// The registers with which a thread runs `way_back::CODE` at `code`, to call a function.
pub(super) fn calling(
    before: &Registers,
    (code, stack, block): (u64, u64, u64),
    function: u64,
    arguments: [u64; 2],
) -> Registers {
    let mut registers = *before;
    registers.pc = code;
    registers.sp = stack & !15;
    registers.regs[..2].copy_from_slice(&arguments);
    (registers.regs[19], registers.regs[20]) = (function, block);
    registers.pstate &= !BRANCH_KIND;
    registers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_thread_waits_only_where_it_calls_the_system() {
        let mut memory = tempfile::tempfile().unwrap();
        memory.write_all(&[[0; 4], CALL, [0; 4], [0; 4]].concat()).unwrap();
        let call = |pc: u64, result: i64| {
            let mut regs = [7; 31];
            (regs[0], regs[8]) = (result as u64, 101);
            let registers = Registers { regs, sp: 0, pc, pstate: 0 };
            interrupted_call(&registers, &memory).map(|call| (call.number, call.arguments))
        };
        assert_eq!(call(4, 5), Some((101, [5, 7])));
        assert_eq!(call(8, -i64::from(libc::EINTR)), Some((101, [0, 7])));
        assert_eq!(call(8, 0), None, "at its end");
        assert_eq!(call(12, -i64::from(libc::EINTR)), None);
    }
}
