//! Reading the clock. The recording holds raw ticks; the reader converts them to nanoseconds, with
//! the samples that are taken here.

use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use ggprof_spool::layout::{ClockKind, ClockSample};

use crate::arch;

type TellsTime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

pub(crate) static COUNT_CYCLES: AtomicBool = AtomicBool::new(false);
/// libc's function, which is quicker than a call of the system, or one that makes that call.
#[unsafe(link_section = ".data.asleep")]
static TELLS_TIME: AtomicPtr<()> = AtomicPtr::new(libc::clock_gettime as *mut ());

/// Chooses the clock. The cycle counter takes half as long as `clock_gettime`, but only the kernel knows
/// whether it runs evenly on all processors. If the kernel itself keeps time with it, so can the agent.
pub(crate) fn choose() {
    let source = std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let trusted = source.is_ok_and(|name| name.trim_ascii() == arch::CLOCK_SOURCE);
    COUNT_CYCLES.store(trusted, Ordering::Relaxed);
    if !is_told_truly() {
        TELLS_TIME.store(ask_system as *mut (), Ordering::Relaxed);
    }
}

/// Whether what stands under the name of libc's function tells the system's time. For tests, libraries such
/// as libfaketime let a program live on another day, or faster.
fn is_told_truly() -> bool {
    [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME].into_iter().all(|clock| {
        let before = told_by(ask_system, clock);
        let told = told_by(libc::clock_gettime, clock);
        (before..=told_by(ask_system, clock)).contains(&told)
    })
}

unsafe extern "C" fn ask_system(clock: libc::clockid_t, now: *mut libc::timespec) -> c_int {
    // SAFETY: the caller's pointer, which the system checks.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock as c_long, now) as c_int }
}

pub(crate) fn kind() -> ClockKind {
    if COUNT_CYCLES.load(Ordering::Relaxed) {
        ClockKind::CycleCounter
    } else {
        ClockKind::MonotonicNs
    }
}

/// Hot path: no allocation, no locks, no panics.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    quick_ticks().unwrap_or_else(slow_ticks)
}

/// `None` where the cycle counter is not the clock.
#[inline(always)]
pub(crate) fn quick_ticks() -> Option<u64> {
    // SAFETY: `choose` saw that the kernel itself keeps time with it.
    COUNT_CYCLES.load(Ordering::Relaxed).then(|| unsafe { arch::cycles() })
}

#[cold]
#[inline(never)]
pub(crate) fn slow_ticks() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

pub(crate) fn nanoseconds(clock: libc::clockid_t) -> u64 {
    // SAFETY: only functions of this type are stored.
    let tells =
        unsafe { std::mem::transmute::<*mut (), TellsTime>(TELLS_TIME.load(Ordering::Relaxed)) };
    told_by(tells, clock)
}

#[inline(always)]
fn told_by(tells: TellsTime, clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is ours and outlives the call.
    unsafe { tells(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Pairs the tick counter with the system's clocks. Of a few tries the tightest
/// is kept: a try that was interrupted has a wide gap between its two ticks.
pub(crate) fn sample() -> ClockSample {
    let mut best = ClockSample { uncertainty_ticks: u32::MAX, ..ClockSample::default() };
    for _ in 0..5 {
        let before = ticks();
        let monotonic_ns = nanoseconds(libc::CLOCK_MONOTONIC);
        let after = ticks();
        let uncertainty_ticks = u32::try_from(after - before).unwrap_or(u32::MAX);
        if uncertainty_ticks <= best.uncertainty_ticks {
            let realtime_ns = nanoseconds(libc::CLOCK_REALTIME);
            let ticks = before + (after - before) / 2;
            best = ClockSample { uncertainty_ticks, ticks, monotonic_ns, realtime_ns, ..best };
        }
    }
    best
}

/// Lets this thread sleep. By system call number, because libc's function is a cancellation point.
pub(crate) fn pause(length: Duration) {
    let length = libc::timespec {
        tv_sec: length.as_secs() as c_long,
        tv_nsec: length.subsec_nanos().into(),
    };
    // SAFETY: reads the struct; a signal may end it early.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const length, 0) };
}
