//! All that attaching knows of the processor: the registers of a thread, what lies on its stack, and
//! which numbers the system's calls have. Folders of other processors have the same names.

pub(super) mod others;
pub(super) mod way_back;

pub(super) type Registers = libc::user_regs_struct;

/// Nothing of a function lies below the stack pointer.
pub(super) const RED_ZONE: u64 = 0;
/// The bits that say what kind of branch was just made, which guarded pages (BTI) ask for.
const BRANCH_KIND: u64 = 0b11 << 10;

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
