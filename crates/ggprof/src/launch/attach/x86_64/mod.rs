//! All that attaching knows of the processor: the registers of a thread, what lies on its stack, and
//! which numbers the system's calls have. Folders of other processors have the same names.

// Has the kernel describe the vectors of this process.
#[allow(unsafe_code)]
pub(super) mod others;
pub(super) mod way_back;

pub(super) type Registers = libc::user_regs_struct;

/// What a function may use below the stack pointer without saying so.
pub(super) const RED_ZONE: u64 = 128;
/// The bit of the flags that turns string instructions around.
const BACKWARDS: u64 = 1 << 10;

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
