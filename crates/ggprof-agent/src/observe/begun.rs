//! What the hooks of this thread have begun and not ended, the newest first: a call of libllama, a graph
//! run, a split. A hook ends it when the real function returns or an exception passes.
//!
//! But a program may also leave ggml by `longjmp`, from a callback of its own: R, Lua and Postgres report
//! errors in that way. Then the hook never goes on, and its stack is used for something else. So what
//! was begun is kept apart from the stack, together with the address of the hook's frame. While a hook is
//! under way, every call from inside of it has a frame further down the stack. So if a hook's frame is not
//! further down than that of an earlier one, the program has left the earlier one, and what that one had
//! begun is ended. If it is further down, but hooks of these two kinds are rarely inside of each other, the
//! earlier frame is looked at: has it changed, the program has left it.
//!
//! A program with several stacks for one thread may seem to have left a hook that is still under way.
//! Then the hook finds, when it goes on, that there is nothing to end any more.

use std::ptr::{self, NonNull};

use super::this_thread::ThisThread;
use crate::ffi::in_place;

/// What hooks begin, in the order in which they are inside of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Call,
    Run,
    Split,
}

/// More than the distance between the frames of two functions of a scheduler, one of which calls the other.
const NEAR: usize = 4096;

/// Frames have gaps that nobody writes to, most often of a word or two.
const MARK_WORDS: usize = 4;

/// A local variable of a hook, whose frame it marks for as long as it is there: with its number, in each
/// word.
#[derive(Debug)]
pub(crate) struct Mark {
    numbers: [u64; MARK_WORDS],
    kind: Kind,
}

/// Where a hook's frame is, and what is there until the hook has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    at: usize,
    number: u64,
    kind: Kind,
}

impl Mark {
    pub(crate) fn new(kind: Kind) -> Mark {
        ThisThread::with(|this| Mark { numbers: [this.next_begun(); MARK_WORDS], kind })
    }

    pub(crate) fn frame(&self) -> Frame {
        Frame { at: &raw const self.numbers as usize, number: self.numbers[0], kind: self.kind }
    }
}

impl Drop for Mark {
    /// A volatile write, so that the compiler keeps the variable in memory until then.
    fn drop(&mut self) {
        // SAFETY: a field of this value.
        unsafe { ptr::write_volatile(&raw mut self.numbers, [0; MARK_WORDS]) };
    }
}

impl Frame {
    /// Whether a hook whose frame is `other` proves that the program left this frame by `longjmp`.
    /// `looks`: it left a frame inside of this one, so the bytes of this one are compared too.
    #[inline(always)]
    fn is_left_for(&self, other: Frame, looks: bool) -> bool {
        if self.at <= other.at {
            return true;
        }
        // One function of schedulers calls the other, so runs are inside of runs.
        let is_usual = self.kind < other.kind
            || (self.kind, other.kind) == (Kind::Run, Kind::Run) && self.at - other.at < NEAR;
        (looks || !is_usual) && self.is_gone()
    }

    /// Whether something else is in its place. Asked of the system, because the place may not even
    /// be memory any more, where a thread has several stacks.
    #[cold]
    fn is_gone(&self) -> bool {
        let halves = self.number.to_ne_bytes();
        let (halves, _) = halves.as_chunks::<4>();
        let halves = halves.iter().map(|half| u32::from_ne_bytes(*half)).cycle();
        let mut words = (self.at..).step_by(4).zip(halves).take(2 * MARK_WORDS);
        words.any(|(at, half)| in_place::compare(at, half) == Some(false))
    }
}

/// Something that a hook begins.
pub(crate) trait CanBeLeft {
    /// Ends it. The program has left ggml, and may have freed everything that this value refers to. Called
    /// outside any guard.
    fn left(self);
}

/// What all entries begin with.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Head {
    frame: Frame,
    number: u64,
    outer: *mut Head,
    /// Called with this very head; frees its entry.
    leave: unsafe fn(*mut Head),
}

#[derive(Debug)]
#[repr(C)]
struct BegunEntry<T> {
    head: Head,
    value: T,
}

/// A hook's hold of what it has begun. Whoever drops it ends that first.
#[derive(Debug)]
pub(crate) struct Begun<T> {
    entry: NonNull<BegunEntry<T>>,
    /// Tells it from another one at the same address.
    number: u64,
}

impl<T: CanBeLeft> Begun<T> {
    pub(crate) fn new(this: &ThisThread, frame: Frame, value: T) -> Begun<T> {
        let number = this.next_begun();
        let head = Head { frame, number, outer: this.begun.get(), leave: leave::<T> };
        let entry = NonNull::from(Box::leak(Box::new(BegunEntry { head, value })));
        this.begun.set(entry.as_ptr().cast());
        Begun { entry, number }
    }

    /// Where it is, until it is taken.
    pub(crate) fn value(&self) -> *const T {
        // SAFETY: computes an address in memory that was allocated as an entry.
        unsafe { &raw const (*self.entry.as_ptr()).value }
    }

    /// `None` once it has ended.
    pub(crate) fn get(&self) -> Option<&T> {
        match self.is_in_list() {
            // SAFETY: in the list, so it has not been freed, and only this thread could do that.
            true => Some(unsafe { &self.entry.as_ref().value }),
            false => None,
        }
    }

    /// Removes and returns it; `None` if it has ended already. Ends everything that was begun after it.
    pub(crate) fn take(&mut self) -> Option<T> {
        if !self.is_in_list() {
            return None;
        }
        let own = self.entry.as_ptr().cast::<Head>();
        ThisThread::with(|this| {
            while this.begun.get() != own {
                leave_newest(this);
            }
            // SAFETY: made by `new`, in the list until now, and found by nobody from now on.
            let entry = unsafe { Box::from_raw(self.entry.as_ptr()) };
            this.begun.set(entry.head.outer);
            Some(entry.value)
        })
    }

    fn is_in_list(&self) -> bool {
        ThisThread::with(|this| {
            let mut next = this.begun.get();
            // SAFETY: what is in the list was made by `new` and not freed.
            while let Some(head) = unsafe { next.as_ref() } {
                if ptr::eq(next, self.entry.as_ptr().cast()) {
                    return head.number == self.number;
                }
                next = head.outer;
            }
            false
        })
    }
}

/// Ends what was begun in frames that the program has left, as a hook with this frame shows. Called outside
/// any guard.
#[inline(always)]
pub(crate) fn end_left(frame: Frame) {
    ThisThread::with(|this| {
        let newest = || {
            // SAFETY: what is in the list was made by `Begun::new` and not freed.
            unsafe { this.begun.get().as_ref() }
        };
        let mut looks = false;
        while newest().is_some_and(|newest| newest.frame.is_left_for(frame, looks)) {
            leave_newest(this);
            looks = true;
        }
    });
}

#[cold]
fn leave_newest(this: &ThisThread) {
    let newest = this.begun.get();
    // SAFETY: in the list, so made by `Begun::new` for the type that its function is for.
    unsafe {
        this.begun.set((*newest).outer);
        ((*newest).leave)(newest);
    }
}

/// # Safety
/// The head of an entry of this type, which nobody else has.
unsafe fn leave<T: CanBeLeft>(head: *mut Head) {
    // SAFETY: the caller's contract; an entry begins with its head.
    let entry = unsafe { Box::from_raw(head.cast::<BegunEntry<T>>()) };
    entry.value.left();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static LEFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    impl CanBeLeft for u8 {
        fn left(self) {
            LEFT.with_borrow_mut(|left| left.push(self));
        }
    }

    /// With a frame at any address: no mark is needed for that.
    fn begin(at: usize, value: u8) -> Begun<u8> {
        let frame = Frame { at, number: 0, kind: Kind::Run };
        end_left(frame);
        ThisThread::with(|this| Begun::new(this, frame, value))
    }

    fn left() -> Vec<u8> {
        LEFT.with_borrow_mut(std::mem::take)
    }

    #[test]
    fn a_frame_is_compared_wherever_it_is() {
        let number = 0x1234_5678_9abc_def0_u64;
        let mark = [number; MARK_WORDS];
        let at = &raw const mark as usize;
        let frame = |at, number| Frame { at, number, kind: Kind::Run };
        assert!(!frame(at, number).is_gone());
        assert!(frame(at, number ^ 1).is_gone());
        assert!(frame(at, number ^ 1 << 63).is_gone());
        assert!(!frame(4096, number).is_gone(), "nothing is there");
        let changed = [number, number, number, 0];
        assert!(frame(&raw const changed as usize, number).is_gone());
    }

    #[test]
    fn what_returns_is_ended_by_its_hook() {
        let mut run = begin(900, 1);
        let mut split = begin(800, 2);
        assert_eq!((split.get().copied(), split.take(), split.take()), (Some(2), Some(2), None));
        let mut next = begin(800, 3);
        assert_eq!((next.take(), run.take(), left()), (Some(3), Some(1), vec![]));
    }

    #[test]
    fn what_the_program_has_left_is_ended_by_the_next_hook_from_there() {
        let mut run = begin(900, 1);
        let mut split = begin(800, 2);
        let mut inside = begin(700, 3);
        assert_eq!(left(), []);
        let mut next = begin(800, 4);
        assert_eq!(left(), [3, 2], "the newest first");
        assert_eq!((split.take(), inside.take(), next.take()), (None, None, Some(4)));
        let mut further_up = begin(950, 5);
        assert_eq!((left(), run.get().copied(), run.take()), (vec![1], None, None));
        assert_eq!(further_up.take(), Some(5));
    }

    /// A callback may jump out of an inner call to somewhere inside of ggml.
    #[test]
    fn a_hook_that_goes_on_ends_what_was_left_inside_of_it() {
        let mut run = begin(900, 1);
        let _split = begin(800, 2);
        assert_eq!((run.take(), left()), (Some(1), vec![2]));
    }

    #[test]
    fn a_frame_further_up_that_is_not_as_it_was_has_been_left() {
        let mark = Mark::new(Kind::Split);
        let further_down = Frame { at: 1, number: 0, kind: Kind::Split };
        assert!(!mark.frame().is_left_for(further_down, false));
        let mut other = mark.frame();
        other.number += 1;
        assert!(other.is_left_for(further_down, false));
        let run = Frame { kind: Kind::Run, ..other };
        assert!(!run.is_left_for(further_down, false), "not looked at");
        assert!(run.is_left_for(further_down, true), "what was inside of it has been left");
        let nowhere = Frame { at: 16, ..other };
        assert!(!nowhere.is_left_for(further_down, false), "nobody knows");
    }
}
