//! The only way to try something out on foreign code. How ggml treats an object that the
//! agent made up, and where it puts the fields of an object that it made, is found out in a child
//! process that exists only for this. The child is a copy of this process, with the same libraries
//! loaded and linked in the same way. Its findings come back. If it crashes or hangs, that is the
//! answer; nothing was tried in the program itself.
//!
//! Why not a helper program that loads the same library: a ggml that is linked into the program, or
//! hidden in a library that needs its program, cannot be loaded by any other program. Why not
//! decode the code: what a function does with a changed struct need not be understood, only
//! survived.
//!
//! The program does not notice the child: it gets no signal when the child ends, its `wait` does
//! not see the child, its fork handlers do not run, there is no output and no core file, and no signal that
//! the child sends reaches it (`kept_signals`).

use std::ffi::{c_char, c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::kept_signals;
use crate::{clock, signals};

/// How long each child may take, in milliseconds. A child that waits for a lock which a thread of
/// the program held when the child was made waits for ever; the next one may not. A rehearsal takes
/// some milliseconds.
const ATTEMPTS: [u64; 4] = [250, 250, 500, 2000];
/// How long a child may take that only waits for its turn on a processor, because hundreds of threads
/// want one.
const LONGEST: Duration = Duration::from_secs(10);
/// Room for a signal handler: the state of the largest vector registers is eleven kilobytes.
const STACK_BYTES: usize = 64 * 1024;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The system made no child.
    NoChild,
    /// It did not end.
    TooLong,
    /// It crashed, or ended before there was a result.
    Crashed,
    /// Nothing was tried: a signal of the child's could have reached the program.
    NotKept,
}

/// The page that a child shares with its parent, for its result.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Stage<T> {
    state: AtomicU32,
    found: MaybeUninit<T>,
}

/// What a stage holds.
const NOTHING: u32 = 0;
const RESULT: u32 = 1;
const SIGNALS_ARE_NOT_KEPT: u32 = 2;

impl<T: Copy> Stage<T> {
    /// Leaves the result and ends the child, also out of a signal handler.
    ///
    /// # Safety
    /// `stage` was made for this child.
    pub(crate) unsafe fn finish(stage: *mut Stage<T>, found: T) -> ! {
        // SAFETY: the caller's contract; the parent reads when the child has ended.
        unsafe {
            (*stage).found.write(found);
            (*stage).state.store(RESULT, Ordering::Release);
        }
        end_child()
    }
}

/// Runs `work` in a child and gives its result. References in it to what both processes have,
/// such as constants, mean the same in both.
pub(crate) fn rehearse<T: Copy>(work: impl Fn(*mut Stage<T>) -> T) -> Result<T, Failure> {
    let stage = SharedStage::new().ok_or(Failure::NoChild)?;
    let mut failure = Failure::TooLong;
    for limit in ATTEMPTS.map(Duration::from_millis) {
        match run_once(&stage, limit, &work) {
            Ok(found) => return Ok(found),
            Err(Failure::TooLong) => {}
            Err(other) => {
                failure = other;
                break;
            }
        }
    }
    Err(failure)
}

fn run_once<T: Copy>(
    stage: &SharedStage<T>,
    limit: Duration,
    work: &impl Fn(*mut Stage<T>) -> T,
) -> Result<T, Failure> {
    // No handler of the program's runs in the child, or between the child's end and our wait for it.
    let status = signals::while_blocked(|| {
        let pid = match clone(0) {
            // Emulators of programs (qemu-user) make only children whose end sends a signal.
            -1 if is_refused() && ends_of_children_are_ignored() => clone(libc::SIGCHLD),
            pid => pid,
        };
        if pid == 0 {
            be_the_child(stage.0, work);
        }
        (pid > 0).then(|| wait_for(pid, limit))
    });
    let has_ended = status.ok_or(Failure::NoChild)?;
    let failure = if has_ended { Failure::Crashed } else { Failure::TooLong };
    stage.left().unwrap_or(Err(failure))
}

/// A child as `fork` makes it, but for which the program's fork handlers do not run, and whose end
/// sends this signal, or none.
#[inline(always)]
fn clone(signal: c_int) -> c_int {
    // By number, because libc's function takes a stack.
    // SAFETY: the child has a copy of our memory and stack, and never leaves `run_once`.
    unsafe { libc::syscall(libc::SYS_clone, signal, 0, 0, 0, 0) as c_int }
}

fn is_refused() -> bool {
    std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Whether nothing in the program happens when a child ends.
fn ends_of_children_are_ignored() -> bool {
    // SAFETY: all-zero is a valid action, which is filled in; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
    }
}

/// Never returns: what follows in the caller is the program's.
fn be_the_child<T: Copy>(stage: *mut Stage<T>, work: &impl Fn(*mut Stage<T>) -> T) -> ! {
    be_unseen();
    if !kept_signals::keep() {
        // SAFETY: this child's stage.
        unsafe { (*stage).state.store(SIGNALS_ARE_NOT_KEPT, Ordering::Release) };
        end_child();
    }
    if let Ok(found) = catch_unwind(AssertUnwindSafe(|| work(stage))) {
        // SAFETY: this child's stage.
        unsafe { Stage::finish(stage, found) };
    }
    end_child()
}

/// Makes sure that nothing of the child is noticed outside. Every call changes this process only,
/// which shares nothing with its parent but open files. The very first calls limit its time: it ends with the
/// thread that waits for it, and should that have ended already, a little later.
fn be_unseen() {
    static NO_BACKTRACE: &[u8] = b"GGML_NO_BACKTRACE=1\0";
    static mut CHILD_ENVIRONMENT: [*const c_char; 2] = [std::ptr::null(); 2];
    unsafe extern "C" {
        static mut environ: *mut *const c_char;
    }
    die_by(&[libc::SIGALRM]);
    // SAFETY: system calls on constants and on memory of this single-threaded process.
    unsafe {
        let mut limit: libc::itimerval = std::mem::zeroed();
        limit.it_value.tv_sec = LONGEST.as_secs() as c_long + 1;
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &limit, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        // ggml would start a debugger to print where it gave up.
        CHILD_ENVIRONMENT[0] = NO_BACKTRACE.as_ptr().cast();
        environ = &raw mut CHILD_ENVIRONMENT as *mut *const c_char;
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            if nowhere < 0 || libc::dup2(nowhere, output) < 0 {
                libc::close(output);
            }
        }
    }
    die_by(&[
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
        libc::SIGTRAP,
        libc::SIGSYS,
    ]);
}

/// Lets the signals end this child. By system calls: libc's `sigaction` takes a lock for some of
/// them, which a thread of the program that is forking just now has for ever in this child.
fn die_by(signals: &[c_int]) {
    /// As the kernel has it: a handler, flags, where a handler returns to, a mask.
    static DEFAULT: [u64; 4] = [0; 4];
    const MASK_BYTES: usize = 8;
    for &signal in signals {
        let mask = 1_u64 << (signal - 1);
        // SAFETY: the kernel reads the two, of the lengths that it is told or knows.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &raw const DEFAULT, 0, MASK_BYTES);
            let how = libc::SIG_UNBLOCK;
            libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const mask, 0, MASK_BYTES);
        }
    }
}

/// In a child: calls `handler` for faults and when something gives up, on a stack of its own.
pub(crate) fn handle_faults(
    handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping that stays; the structs are ours, all-zero is valid for them, and the
    // handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let stack = libc::mmap(std::ptr::null_mut(), STACK_BYTES, access, flags, -1, 0);
        if stack == libc::MAP_FAILED {
            end_child();
        }
        let stack = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: STACK_BYTES };
        libc::sigaltstack(&stack, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
        for signal in faults.into_iter().chain([libc::SIGABRT, libc::SIGSYS]) {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

pub(crate) fn end_child() -> ! {
    loop {
        // By number: exit handlers and the function of this name are the program's.
        // SAFETY: ends this process.
        unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    }
}

/// Waits for the child, and whether it ended by itself; it is killed if it does not in time.
fn wait_for(pid: c_int, limit: Duration) -> bool {
    const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
    const LONGEST_PAUSE: Duration = Duration::from_millis(1);
    let (began, mut pause) = (Instant::now(), SHORTEST_PAUSE);
    while !has_ended(pid, libc::WNOHANG) {
        let taken = began.elapsed();
        if taken >= limit && (taken >= LONGEST || !lacks_a_processor(pid, limit)) {
            // SAFETY: a child of ours that has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            while !has_ended(pid, 0) {}
            return false;
        }
        clock::pause(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    true
}

/// Whether the child has had less time on a processor than this, although it could go on.
fn lacks_a_processor(pid: c_int, limit: Duration) -> bool {
    let mut clock = 0;
    // SAFETY: `clock` is ours.
    let has_clock = unsafe { libc::clock_getcpuclockid(pid, &mut clock) } == 0;
    has_clock && Duration::from_nanos(clock::nanoseconds(clock)) < limit && can_go_on(pid)
}

/// Whether the child waits for nothing but a processor or a page: that of a lock sleeps.
fn can_go_on(pid: c_int) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before the state is in parentheses, and may have some itself.
    let name_ends = stat.iter().rposition(|&byte| byte == b')');
    name_ends.is_some_and(|at| stat[at..].starts_with(b") R") || stat[at..].starts_with(b") D"))
}

/// Whether the child has ended; also where a wait of the program for any child was told of it first.
fn has_ended(pid: c_int, flags: c_int) -> bool {
    // By system call number, because libc's function is a cancellation point.
    // SAFETY: nothing is written; null is allowed for both.
    let ended = unsafe {
        let null = std::ptr::null_mut::<c_void>();
        libc::syscall(libc::SYS_wait4, pid, null, libc::__WALL | flags, null)
    };
    // SAFETY: this thread's own error number.
    let is_interrupted = ended < 0 && unsafe { *libc::__errno_location() } == libc::EINTR;
    ended != 0 && !is_interrupted
}

/// A stage that parent and child both see.
struct SharedStage<T>(*mut Stage<T>);

impl<T: Copy> SharedStage<T> {
    fn new() -> Option<SharedStage<T>> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let (anywhere, bytes) = (std::ptr::null_mut(), size_of::<Stage<T>>());
        // SAFETY: a new mapping of zeros, which is an empty stage.
        let at = unsafe { libc::mmap(anywhere, bytes, access, flags, -1, 0) };
        (at != libc::MAP_FAILED).then_some(SharedStage(at.cast()))
    }

    /// What the child left, once it has ended.
    fn left(&self) -> Option<Result<T, Failure>> {
        // SAFETY: our mapping; the child wrote the result before the mark.
        unsafe {
            match (*self.0).state.swap(NOTHING, Ordering::Acquire) {
                RESULT => Some(Ok((*self.0).found.assume_init_read())),
                SIGNALS_ARE_NOT_KEPT => Some(Err(Failure::NotKept)),
                _ => None,
            }
        }
    }
}

impl<T> Drop for SharedStage<T> {
    fn drop(&mut self) {
        // SAFETY: our mapping, and the child has ended.
        unsafe { libc::munmap(self.0.cast(), size_of::<Stage<T>>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_result_comes_back_and_nothing_else_does() {
        let mut touched = 1;
        let place = &raw mut touched;
        let found = rehearse(|_| {
            // SAFETY: a copy of this process writes to its copy of the number.
            unsafe { place.write(2) };
            ("constants mean the same", 42_u64)
        });
        assert_eq!(found, Ok(("constants mean the same", 42)));
        assert_eq!(touched, 1);
    }

    #[test]
    fn whatever_a_child_dies_of_is_the_answer() {
        let crash = |_| {
            // SAFETY: crashes, which is what the child is for.
            unsafe { std::ptr::without_provenance::<u64>(8).read_volatile() }
        };
        assert_eq!(rehearse(crash), Err(Failure::Crashed));
        // SAFETY: ends the child.
        assert_eq!(rehearse(|_| unsafe { libc::abort() }), Err::<(), _>(Failure::Crashed));
        assert_eq!(rehearse(|_| -> u32 { panic!("on purpose") }), Err(Failure::Crashed));
        assert_eq!(rehearse(|_| -> u32 { end_child() }), Err(Failure::Crashed));
    }

    const SHORT: Duration = Duration::from_millis(20);

    fn once<T: Copy>(work: impl Fn(*mut Stage<T>) -> T) -> Result<T, Failure> {
        run_once(&SharedStage::new().unwrap(), SHORT, &work)
    }

    #[test]
    fn a_child_that_sleeps_is_killed() {
        // SAFETY: waits for a signal.
        assert_eq!(once(|_| unsafe { libc::pause() }), Err(Failure::TooLong));
    }

    #[test]
    fn a_child_that_does_not_end_is_killed() {
        assert_eq!(
            once(|_| -> u32 {
                loop {
                    std::hint::spin_loop()
                }
            }),
            Err(Failure::TooLong)
        );
    }

    /// What a child has open, its own children have too.
    #[test]
    fn a_child_ends_with_a_program_that_is_killed() {
        let mut ends = [0; 2];
        // SAFETY: system calls about these two ends of a pipe and about a child, which makes only such calls
        // and waits.
        unsafe {
            assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
            let program = libc::fork();
            if program == 0 {
                _ = rehearse(|_| {
                    libc::write(ends[1], c"!".as_ptr().cast(), 1);
                    loop {
                        libc::pause();
                    }
                });
                end_child();
            }
            libc::close(ends[1]);
            let mut read = [0_u8];
            assert_eq!(libc::read(ends[0], read.as_mut_ptr().cast(), 1), 1);
            libc::kill(program, libc::SIGKILL);
            assert_eq!(libc::waitpid(program, std::ptr::null_mut(), 0), program);
            let mut closed = libc::pollfd { fd: ends[0], events: 0, revents: 0 };
            assert_eq!(libc::poll(&mut closed, 1, 5000), 1, "it goes on alone");
            libc::close(ends[0]);
        }
    }

    /// Far less than the limit on a processor, and far more by the clock on the wall, unless there are
    /// dozens of processors.
    #[test]
    fn a_child_that_waits_for_a_processor_is_waited_for() {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            let used = || clock::nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID);
            let found = once(|_| while used() < 10_000_000 {});
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(found, Ok(()));
        });
    }

    #[test]
    fn the_program_has_no_child_to_wait_for() {
        assert_eq!(rehearse(|_| 1), Ok(1));
        // SAFETY: asks for any child; others may be those of tests beside this one, which are
        // waited for by their number.
        let none = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
        assert!(none <= 0);
    }
}
