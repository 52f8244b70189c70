//! The agent's locks. Each has a rank, and a thread that holds one waits only for locks of higher
//! ranks, so no two threads can wait for each other. A thread that holds a lock does not call the
//! loader: a thread inside a library's constructor holds the loader's lock, and may need one of
//! ours. ARCHITECTURE.md says what each lock protects.
//!
//! Builds with debug assertions check both rules; in all others a ranked lock is a mutex.
//!
//! In a forked child nobody lets go of the locks that other threads of its parent held. Where that may
//! be, all locks count as abandoned: the agent does nothing more in this child, and what the program
//! needs of it waits for no lock.
//!
//! A panic may leave what a lock protects half-changed. It is used all the same: every change is
//! made in steps that each leave a usable state.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

macro_rules! ranks {
    ($($name:ident $(= $number:literal)?)*) => {
        /// In the order in which they are taken.
        pub(crate) mod rank {
            #[repr(u8)]
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Rank { $($name $(= $number)?),* }
            $(pub(crate) const $name: u8 = Rank::$name as u8;)*
            #[cfg(test)]
            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        }
    };
}

// Two of them begin a range for the locks of device APIs (`device_ranks`).
ranks! {
    RECORDER
    ADOPTING
    INSTANCES
    OUTER_OF_DEVICES = 8
    BUFFERS = 16
    INTERNER
    DEFINITIONS
    GROWTH
    SCHEDULERS
    CONTEXTS
    BATCHES
    CPU_LIBRARIES
    DEVICE_LIBRARIES
    LINKED_IN
    ENTRY_HOOKS
    STANDING
    ABORT_CALLBACKS
    INNER_OF_DEVICES = 32
    OPEN_PAGE = 48
    THREAD_KEY
}

#[unsafe(link_section = ".data.asleep")]
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// This is a forked child, and one of the locks may be held for ever.
pub(crate) fn abandon() {
    ABANDONED.store(true, Ordering::Relaxed);
}

#[inline(always)]
pub(crate) fn are_abandoned() -> bool {
    ABANDONED.load(Ordering::Relaxed)
}

/// Numbers the locks of one device API, in the order in which they are taken. Outer ones may be held
/// while a recording is written to; inner ones are held only around code that needs none of the locks
/// in between. A thread that holds a lock of one API never waits for one of another, so the APIs
/// share numbers.
macro_rules! device_ranks {
    (outer: $($outer:ident)*; inner: $($inner:ident)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code)]
        enum Outer { $($outer),* }
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code)]
        enum Inner { $($inner),* }
        $(pub(super) const $outer: u8 = $crate::lock::rank::OUTER_OF_DEVICES + Outer::$outer as u8;)*
        $(pub(super) const $inner: u8 = $crate::lock::rank::INNER_OF_DEVICES + Inner::$inner as u8;)*
        $(const _: () = assert!($outer < $crate::lock::rank::BUFFERS);)*
        $(const _: () = assert!($inner < $crate::lock::rank::OPEN_PAGE);)*
        /// For the test that compares them with the document.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] =
            &[$(stringify!($outer),)* $(stringify!($inner)),*];
    };
}
pub(crate) use device_ranks;

/// A mutex with its place in the order, and what it protects.
#[derive(Debug, Default)]
pub(crate) struct Ranked<const RANK: u8, T> {
    mutex: Mutex<()>,
    at_fork: AtFork,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a [`Locked`], of which the mutex allows one at a time.
unsafe impl<const RANK: u8, T: Send> Sync for Ranked<RANK, T> {}

impl<const RANK: u8, T> Ranked<RANK, T> {
    pub(crate) const fn new(value: T) -> Self {
        let at_fork = AtFork(UnsafeCell::new(None));
        Ranked { mutex: Mutex::new(()), at_fork, value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Locked<'_, RANK, T> {
        order::check::<RANK>();
        Locked { _hold: Hold::take(&self.mutex), value: &self.value, _held: order::Held::new() }
    }

    /// For what the program needs. `None` if it is held and abandoned.
    pub(crate) fn lock_unless_abandoned(&self) -> Option<Locked<'_, RANK, T>> {
        if are_abandoned() { self.try_lock() } else { Some(self.lock()) }
    }

    /// `None` if another thread holds it. A thread that does not wait need not keep to the order.
    pub(crate) fn try_lock(&self) -> Option<Locked<'_, RANK, T>> {
        let _hold = Hold::try_take(&self.mutex)?;
        Some(Locked { _hold, value: &self.value, _held: order::Held::new() })
    }
}

/// A mutex that this thread has, until this is dropped. Its functions are not inlined: locks are taken in
/// hundreds of places, and the standard library's code for it is large.
#[derive(Debug)]
struct Hold<'a>(ManuallyDrop<MutexGuard<'a, ()>>);

impl<'a> Hold<'a> {
    #[inline(never)]
    fn take(mutex: &'a Mutex<()>) -> Self {
        Hold(ManuallyDrop::new(mutex.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    #[inline(never)]
    fn try_take(mutex: &'a Mutex<()>) -> Option<Self> {
        without_poison(mutex.try_lock()).map(|guard| Hold(ManuallyDrop::new(guard)))
    }
}

impl Drop for Hold<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: once, and the guard is not used any more.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// A lock that is held while the process forks. So what it protects is consistent in the child, and
/// the child never waits for a thread that exists only in the parent.
pub(crate) trait HeldAtFork {
    fn rank(&self) -> u8;

    /// Whether no other thread has it.
    fn try_hold(&'static self) -> bool;

    /// In the parent and in the child.
    ///
    /// # Safety
    /// On the thread for which [`Self::try_hold`] was true last, once.
    unsafe fn let_go(&'static self);
}

/// The hold of a lock for the length of a fork.
#[derive(Debug, Default)]
struct AtFork(UnsafeCell<Option<Hold<'static>>>);

// SAFETY: only the thread that has the lock touches it.
unsafe impl Sync for AtFork {}
// SAFETY: as above; it is empty whenever the lock can be moved.
unsafe impl Send for AtFork {}

impl<const RANK: u8, T: Send> HeldAtFork for Ranked<RANK, T> {
    fn rank(&self) -> u8 {
        RANK
    }

    fn try_hold(&'static self) -> bool {
        let Some(hold) = Hold::try_take(&self.mutex) else { return false };
        // SAFETY: this thread has the lock.
        unsafe { *self.at_fork.0.get() = Some(hold) };
        true
    }

    unsafe fn let_go(&'static self) {
        // SAFETY: the caller's contract: this thread has the lock, until the hold is dropped.
        drop(unsafe { (*self.at_fork.0.get()).take() });
    }
}

fn without_poison<T>(tried: Result<T, TryLockError<T>>) -> Option<T> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A lock that is held; dropping it lets the next thread have it.
#[derive(Debug)]
pub(crate) struct Locked<'a, const RANK: u8, T> {
    value: &'a UnsafeCell<T>,
    _hold: Hold<'a>,
    _held: order::Held<RANK>,
}

impl<const RANK: u8, T> Deref for Locked<'_, RANK, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock of this value, for as long as `self` lives.
        unsafe { &*self.value.get() }
    }
}

impl<const RANK: u8, T> DerefMut for Locked<'_, RANK, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and nobody else borrows from `self`.
        unsafe { &mut *self.value.get() }
    }
}

/// A lock that is never waited for: a thread that does not get it goes on without. So the loader
/// may be asked while it is held.
#[derive(Debug, Default)]
pub(crate) struct Tried<T>(Mutex<T>);

impl<T> Tried<T> {
    pub(crate) const fn new(value: T) -> Self {
        Tried(Mutex::new(value))
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        without_poison(self.0.try_lock())
    }
}

/// A value that is made once; others wait meanwhile, as for a lock of this rank.
#[derive(Debug)]
pub(crate) struct Once<const RANK: u8, T>(OnceLock<T>);

impl<const RANK: u8, T> Once<RANK, T> {
    pub(crate) const fn new() -> Self {
        Once(OnceLock::new())
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get().unwrap_or_else(|| {
            order::check::<RANK>();
            let _held = order::Held::<RANK>::new();
            self.0.get_or_init(make)
        })
    }
}

/// The loader is about to be asked: to open or close something, or for a symbol. (A walk through
/// what is loaded takes another of the loader's locks, which nobody holds for long.)
#[inline(always)]
pub(crate) fn before_asking_the_loader() {
    order::check_none_held();
}

/// Which locks this thread holds.
#[cfg(debug_assertions)]
mod order {
    use std::cell::Cell;

    use super::rank;

    thread_local! {
        /// A bit for each rank.
        static HELD: Cell<u64> = const { Cell::new(0) };
    }

    const _: () = assert!((rank::THREAD_KEY as u32) < u64::BITS);

    #[derive(Debug)]
    pub(super) struct Held<const RANK: u8>;

    impl<const RANK: u8> Held<RANK> {
        pub(super) fn new() -> Self {
            HELD.set(HELD.get() | 1 << RANK);
            Held
        }
    }

    impl<const RANK: u8> Drop for Held<RANK> {
        fn drop(&mut self) {
            HELD.set(HELD.get() & !(1 << RANK));
        }
    }

    pub(super) fn check<const RANK: u8>() {
        complain(HELD.get() >> RANK == 0, "a lock is waited for out of order");
    }

    pub(super) fn check_none_held() {
        complain(HELD.get() == 0, "the loader is asked while a lock is held");
    }

    /// Caught and counted like any fault; not during another panic.
    #[track_caller]
    fn complain(right: bool, wrong: &str) {
        assert!(right || std::thread::panicking(), "{wrong}: {:#x}", HELD.get());
    }
}

#[cfg(not(debug_assertions))]
mod order {
    #[derive(Debug)]
    pub(super) struct Held<const RANK: u8>;

    impl<const RANK: u8> Held<RANK> {
        #[inline(always)]
        pub(super) fn new() -> Self {
            Held
        }
    }

    #[inline(always)]
    pub(super) fn check<const RANK: u8>() {}

    #[inline(always)]
    pub(super) fn check_none_held() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Low = Ranked<{ rank::RECORDER }, u8>;
    type High = Ranked<{ rank::GROWTH }, u8>;

    fn panics(work: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn locks_are_taken_in_their_order() {
        let (one, other) = (Low::new(1), High::new(2));
        let low = one.lock();
        let high = other.lock();
        assert_eq!((*low, *high), (1, 2));
        drop(low);
        assert!(panics(|| _ = one.lock()), "the higher one is held");
        assert!(one.try_lock().is_some(), "nobody waits");
        assert!(panics(|| _ = other.lock()), "it would wait for itself");
        drop(high);
        drop(one.lock());
    }

    #[test]
    fn the_loader_is_asked_without_locks() {
        before_asking_the_loader();
        let lock = Low::new(1);
        let low = lock.lock();
        assert!(panics(before_asking_the_loader));
        drop(low);
        before_asking_the_loader();
    }

    #[test]
    fn what_is_made_once_is_waited_for_in_order() {
        let once = Once::<{ rank::ADOPTING }, u8>::new();
        let (low, high) = (Low::new(1), High::new(2));
        let held = high.lock();
        assert!(panics(|| _ = once.get_or_init(|| 3)));
        drop(held);
        assert!(panics(|| _ = once.get_or_init(|| *low.lock())), "while others may wait");
        assert_eq!(*once.get_or_init(|| *high.lock()), 2);
        let _held = high.lock();
        assert_eq!(*once.get_or_init(|| 4), 2, "nobody waits for what is there");
    }

    /// Names and order of the page that people read.
    #[test]
    fn the_document_lists_all_locks_in_this_order() {
        let document = include_str!("../../../ARCHITECTURE.md");
        let section = document.split("## Locks").nth(1).expect("a section about locks");
        let rows = section.split("\n##").next().unwrap_or_default().lines();
        let listed: Vec<&str> =
            rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(listed, rank::NAMES);
    }
}
