//! The agent's memory is malloc's, as the program's is. Rust ends the process where an allocation fails, and
//! nothing can catch that. So there is a reserve for the day on which the system has no more: whatever is
//! small comes from it, what is large is asked for in ways that may fail ([`zeros`], [`made_room`]), and
//! the agent switches itself off at once.
//!
//! The reserve is part of the library's own memory; pages of it that nobody touches cost nothing. It is a stack:
//! what was taken last can be given back, all else stays lost.
//!
//! A program whose limits leave it little is not recorded at all ([`leaves_room`]): each page that the agent
//! takes there is one that the program may lack.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::collections::TryReserveError;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::set_once::SetOnce;

/// What threads allocate until they leave their hooks is far below this.
const RESERVE_BYTES: usize = 512 << 10;
/// Whatever may be larger than this must be asked for in a way that may fail.
const LARGEST_FROM_RESERVE: usize = 128 << 10;
/// What a recording may come to take with a dozen threads, and some more.
const ENOUGH_BYTES: u64 = 64 << 20;

/// Stops what needs memory. Called anywhere, so it takes neither memory nor a lock.
#[unsafe(link_section = ".data.asleep")]
static STOP: SetOnce<fn()> = SetOnce::new();

#[global_allocator]
static MEMORY: Memory = Memory;

struct Memory;

/// Bytes, handed out from the first on.
#[repr(align(64))]
struct Reserve<const BYTES: usize> {
    bytes: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

static IS_USED_UP: AtomicBool = AtomicBool::new(false);
static RESERVE: Reserve<RESERVE_BYTES> = Reserve::new();

// SAFETY: no byte has two owners at a time.
unsafe impl<const BYTES: usize> Sync for Reserve<BYTES> {}

impl<const BYTES: usize> Reserve<BYTES> {
    const fn new() -> Self {
        Reserve { bytes: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) }
    }

    /// Null if there is no room.
    fn take(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get().cast::<u8>();
        let end_of = |used: usize| {
            let start = (base as usize + used).checked_next_multiple_of(layout.align())?;
            let end = (start - base as usize).checked_add(layout.size())?;
            (end <= BYTES).then_some(end)
        };
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end_of) {
            // SAFETY: the end is inside, and as far behind the start as the layout says.
            Ok(used) => unsafe { base.add(end_of(used).unwrap_or(0) - layout.size()) },
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// The owner gives it back.
    fn give_back(&self, at: *mut u8, bytes: usize) {
        let start = at as usize - self.bytes.get() as usize;
        let (newest, orders) = (start + bytes, (Ordering::Relaxed, Ordering::Relaxed));
        // Another one is on top of it: then it stays lost.
        let _ = self.used.compare_exchange(newest, start, orders.0, orders.1);
    }

    fn holds(&self, at: *mut u8) -> bool {
        (at as usize).wrapping_sub(self.bytes.get() as usize) < BYTES
    }
}

// SAFETY: malloc's own, or bytes of the reserve that nobody else has; no panic leaves it.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let at = unsafe { System.alloc(layout) };
        if at.is_null() { from_reserve(layout) } else { at }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let at = unsafe { System.alloc_zeroed(layout) };
        if at.is_null() { zeros_from_reserve(layout) } else { at }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if RESERVE.holds(at) {
            RESERVE.give_back(at, layout.size());
        } else {
            // SAFETY: the caller's contract, and not the reserve's.
            unsafe { System.dealloc(at, layout) }
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !RESERVE.holds(at) {
            // SAFETY: the caller's contract, and not the reserve's.
            let moved = unsafe { System.realloc(at, layout, bytes) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's contract: the size is valid for this alignment, both places are as long as
        // what is copied, and the old one is the caller's no more.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !moved.is_null() {
                at.copy_to_nonoverlapping(moved, layout.size().min(bytes));
                self.dealloc(at, layout);
            }
            moved
        }
    }
}

#[cold]
#[inline(never)]
fn from_reserve(layout: Layout) -> *mut u8 {
    if layout.size() > LARGEST_FROM_RESERVE {
        return std::ptr::null_mut();
    }
    let at = RESERVE.take(layout);
    stop();
    at
}

#[cold]
fn zeros_from_reserve(layout: Layout) -> *mut u8 {
    let at = from_reserve(layout);
    if !at.is_null() {
        // SAFETY: so many bytes are there, and new to the caller.
        unsafe { at.write_bytes(0, layout.size()) };
    }
    at
}

/// What is to be called when the system has no memory for the agent.
pub(crate) fn when_used_up(stop: fn()) {
    STOP.set(stop);
}

fn stop() {
    IS_USED_UP.store(true, Ordering::Relaxed);
    STOP.get().inspect(|stop| stop());
}

/// Whether the system once had no memory for the agent. That is the end of its work.
pub(crate) fn is_used_up() -> bool {
    IS_USED_UP.load(Ordering::Relaxed)
}

/// So many zeros, if there is memory for them.
pub(crate) fn zeros(bytes: usize) -> Option<Vec<u8>> {
    if is_used_up() {
        return None;
    }
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(bytes).ok()?;
    zeros.resize(bytes, 0);
    Some(zeros)
}

/// What becomes of asking for room: without memory, recording stops and the hook is left by a panic. So this
/// is called inside a guard.
#[track_caller]
pub(crate) fn made_room(asked: Result<(), TryReserveError>) {
    if asked.is_err() {
        stop();
        panic!("no memory");
    }
}

/// Whether a recording could take memory from the program that it may need itself; the error is a sentence.
pub(crate) fn leaves_room() -> Result<(), String> {
    let left = left_by_limits();
    if left >= ENOUGH_BYTES {
        return Ok(());
    }
    let mib = left >> 20;
    Err(format!(
        "the limits of the program (`ulimit`) leave it {mib} MiB of memory, which it may need"
    ))
}

/// Whether the program's memory is limited.
pub(crate) fn limits_are_set() -> bool {
    limits() != [None; 2]
}

fn limits() -> [Option<u64>; 2] {
    // Its type differs between C libraries.
    let limit = |resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is ours.
        let is_known = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
        (is_known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    };
    [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(limit)
}

fn left_by_limits() -> u64 {
    if !limits_are_set() {
        return u64::MAX;
    }
    let [size, data] = taken().unwrap_or([u64::MAX; 2]);
    let [all, of_data] = limits().map(|limit| limit.unwrap_or(u64::MAX));
    all.saturating_sub(size).min(of_data.saturating_sub(data))
}

/// The bytes of address space, and of data and stacks, that the process has.
fn taken() -> Option<[u64; 2]> {
    let mut text = [0; 128];
    let file = std::fs::File::open("/proc/self/statm").ok()?;
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let pages: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // SAFETY: a question to the system.
    let page_bytes = unsafe { libc::getauxval(libc::AT_PAGESZ) };
    let bytes = |at: usize| Some(pages.get(at)?.saturating_mul(page_bytes));
    Some([bytes(0)?, bytes(5)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_gives_what_fits_and_nothing_twice() {
        let reserve = Reserve::<256>::new();
        let take = |bytes, align| {
            let at = reserve.take(Layout::from_size_align(bytes, align).expect("valid"));
            (!at.is_null()).then(|| at as usize - reserve.bytes.get() as usize)
        };
        assert_eq!([take(3, 1), take(8, 8), take(1, 1)], [Some(0), Some(8), Some(16)]);
        assert_eq!([take(240, 1), take(200, 64), take(192, 64)], [None, None, Some(64)]);
        assert_eq!(take(1, 1), None);
        let at = |place: usize| reserve.bytes.get().cast::<u8>().wrapping_add(place);
        reserve.give_back(at(8), 8);
        assert_eq!(take(1, 1), None, "others are on top of it");
        reserve.give_back(at(64), 192);
        assert_eq!([take(191, 1), take(1, 1)], [Some(64), Some(255)]);
    }

    #[test]
    fn what_the_limits_leave_is_known() {
        assert_eq!(left_by_limits(), u64::MAX, "the tests have no limits");
        let [size, data] = taken().expect("there is a /proc");
        assert!(size > data && data > 0);
    }

    #[test]
    fn more_than_there_is_can_be_asked_for() {
        assert_eq!(zeros(3), Some(vec![0; 3]));
        assert_eq!(zeros(isize::MAX as usize), None);
        assert!(!is_used_up());
    }
}
