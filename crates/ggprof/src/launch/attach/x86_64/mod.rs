//! All that attaching knows of the processor: the registers of a thread, what lies on its stack, and
//! which numbers the system's calls have. Folders of other processors have the same names.

// Has the kernel describe the vectors of this process.
#[allow(unsafe_code)]
pub(super) mod others;
pub(super) mod way_back;

use super::threads::SystemCall;
use super::tracee::Tracee;
use std::fs::File;
use std::io;
use std::ops::Range;

pub(super) type Registers = libc::user_regs_struct;

/// What a function may use below the stack pointer without saying so.
pub(super) const RED_ZONE: u64 = 128;
/// The bit of the flags that turns string instructions around.
const BACKWARDS: u64 = 1 << 10;
/// What a C library knows of a thread is not longer.
const NOTES_BYTES: u64 = 4096;
/// What a call of the system returns inside the kernel when it is to be made again: ERESTARTSYS,
/// ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
const TO_BE_MADE_AGAIN: [i64; 4] = [-512, -513, -514, -516];

/// Calls of the system in which a thread waits for something outside of its process, best first.
/// Those behind come back with an error when a thread is stopped in them, which programs must expect
/// and do.
pub(super) const WAITING: [i64; 14] = [
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_pause,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    441, // epoll_pwait2
];

/// The address of the next instruction.
pub(super) fn place(registers: &Registers) -> u64 {
    registers.rip
}

pub(super) fn stack(registers: &Registers) -> u64 {
    registers.rsp
}

/// Where the C library keeps what it knows of the thread: behind the thread pointer.
pub(super) fn notes(registers: &Registers, _: &Tracee) -> io::Result<Range<u64>> {
    let from = registers.fs_base;
    Ok(from..from.saturating_add(NOTES_BYTES))
}

/// The call of the system that a thread was stopped in, while it waited there. One that was at the end of
/// the call or has begun to handle a signal has another result.
pub(super) fn interrupted_call(registers: &Registers, _: &File) -> Option<SystemCall> {
    const GIVEN_UP: i64 = -(libc::EINTR as i64);
    let (number, result) = (registers.orig_rax as i64, registers.rax as i64);
    let is_interrupted = TO_BE_MADE_AGAIN.contains(&result) || result == GIVEN_UP;
    let call = SystemCall { number, arguments: [registers.rdi, registers.rsi] };
    (number >= 0 && is_interrupted).then_some(call)
}

/// The registers with which a thread runs `way_back::CODE` at `code`, to call a function.
pub(super) fn calling(
    before: &Registers,
    (code, stack, block): (u64, u64, u64),
    function: u64,
    arguments: [u64; 2],
) -> Registers {
    let mut registers = *before;
    registers.rip = code;
    registers.rsp = stack & !15;
    (registers.rbx, registers.r12) = (block, function);
    [registers.rdi, registers.rsi] = arguments;
    registers.rax = 0;
    registers.eflags &= !BACKWARDS;
    // It is in no call of the system that could be begun again.
    registers.orig_rax = u64::MAX;
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_only_while_its_call_is_not_over() {
        // SAFETY: numbers, for which all bits are good.
        #[allow(unsafe_code)]
        let zero: Registers = unsafe { std::mem::zeroed() };
        let memory = File::open("/dev/null").unwrap();
        let call = |orig_rax: i64, rax: i64| {
            let (orig_rax, rax) = (orig_rax as u64, rax as u64);
            let registers = Registers { orig_rax, rax, rdi: 1, rsi: 2, ..zero };
            interrupted_call(&registers, &memory).map(|call| (call.number, call.arguments))
        };
        for result in [-512, -513, -514, -516, -i64::from(libc::EINTR)] {
            assert_eq!(call(35, result), Some((35, [1, 2])), "{result}");
            assert_eq!(call(-1, result), None, "in no call: {result}");
        }
        assert_eq!(call(35, 0), None, "at its end, or in a handler of signals");
        assert_eq!(call(35, -i64::from(libc::ETIMEDOUT)), None);
    }
}
