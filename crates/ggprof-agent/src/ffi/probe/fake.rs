//! A fake backend that reports what ggml does with it, in a child process.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::table::FUNCTIONS;
use crate::arch;
use crate::ffi::api::Pointer;
use crate::ffi::rehearsal::{self, Stage, end_child};

/// Words of the fake; real backends have 17 to 19, but forks put what they like before the table.
pub(super) const WORDS: usize = 1024;
/// Calls that one function makes through the table: more are not kept.
pub(super) const CALLS: usize = 4;
/// From one word's page to the next: further than any field of a struct is from its start.
const SPACING: usize = 64 * 1024;

/// What a word of the fake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FakeWord {
    /// A function that reports its number; 0 for words beyond the functions there are.
    Function,
    Untouchable,
    Nothing,
    Zeros,
}

/// What the functions did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The words that each of them called, in order; 0 for none.
    pub(super) calls: [[usize; CALLS]; FUNCTIONS],
    /// The function that did not return, and why.
    pub(super) stop: Option<(usize, Stop)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// It followed a word that is not a function of the table.
    Followed(usize),
    FollowedNothing,
    Crashed,
}

#[derive(Debug)]
pub(super) struct FakeBackend {
    words: [usize; WORDS],
    /// Where the first word's page is.
    pages: usize,
    function: AtomicUsize,
    calls: [[AtomicUsize; CALLS]; FUNCTIONS],
    stage: *mut Stage<Found>,
}

static FAKE: AtomicPtr<FakeBackend> = AtomicPtr::new(std::ptr::null_mut());

/// Makes the fake of this child, and answers what happens to it from now on.
pub(super) fn install(words: &[FakeWord; WORDS], stage: *mut Stage<Found>) -> &'static FakeBackend {
    let pages = reserve(WORDS * SPACING, libc::PROT_NONE);
    let zeros = reserve(SPACING, libc::PROT_READ | libc::PROT_WRITE);
    let function = |word: usize| TELLING.get(word).map_or(0, |tell| *tell as usize);
    let words = std::array::from_fn(|word| match words[word] {
        FakeWord::Function => function(word),
        FakeWord::Untouchable => pages + word * SPACING,
        FakeWord::Nothing => 0,
        FakeWord::Zeros => zeros,
    });
    let (function, calls) = Default::default();
    let fake = Box::leak(Box::new(FakeBackend { words, pages, function, calls, stage }));
    FAKE.store(fake, Ordering::Release);
    rehearsal::handle_faults(on_fault);
    fake
}

impl FakeBackend {
    pub(super) fn backend(&self) -> Pointer {
        self.words.as_ptr().cast_mut().cast()
    }

    /// Attributes all later calls to this function.
    pub(super) fn begin(&self, function: usize) {
        self.function.store(function, Ordering::Relaxed);
    }

    pub(super) fn found(&self) -> Found {
        let calls = |words: &[AtomicUsize; CALLS]| {
            words.each_ref().map(|word| word.load(Ordering::Relaxed))
        };
        Found { calls: self.calls.each_ref().map(calls), stop: None }
    }

    /// The word whose page holds the address.
    fn word_at(&self, address: usize) -> Option<usize> {
        let word = address.checked_sub(self.pages)? / SPACING;
        (word < WORDS).then_some(word)
    }

    /// Not inlined: there are many functions that call it.
    #[inline(never)]
    fn note_call(&self, word: usize) {
        let calls = self.calls.get(self.function.load(Ordering::Relaxed));
        let free = calls.iter().flat_map(|calls| calls.iter());
        let free = free.into_iter().find(|place| place.load(Ordering::Relaxed) == 0);
        free.into_iter().for_each(|place| place.store(word, Ordering::Relaxed));
    }

    fn stop(&self, why: Stop) -> ! {
        let stop = Some((self.function.load(Ordering::Relaxed), why));
        // SAFETY: this child's stage.
        unsafe { Stage::finish(self.stage, Found { stop, ..self.found() }) }
    }
}

fn reserve(bytes: usize, access: c_int) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        end_child();
    }
    at as usize
}

/// ggml touched an untouchable page, or gave up.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    /// Where no memory ever is.
    const NOTHING: usize = 64 * 1024;
    // SAFETY: set before the handler was, and never freed.
    let fake = unsafe { &*FAKE.load(Ordering::Acquire) };
    if !matches!(signal, libc::SIGSEGV | libc::SIGBUS) {
        fake.stop(Stop::Crashed);
    }
    // SAFETY: the kernel's own arguments.
    let (address, context) = unsafe { ((*info).si_addr() as usize, &mut *context.cast()) };
    match fake.word_at(address) {
        Some(word) if arch::is_call_of(context, address) => {
            fake.note_call(word);
            arch::go_on_in(context, answer as *const () as usize);
        }
        Some(word) => fake.stop(Stop::Followed(word)),
        // A function that a struct of zeros should have had.
        None if address == 0 && arch::is_call_of(context, address) => {
            arch::go_on_in(context, answer as *const () as usize);
        }
        None if address < NOTHING => fake.stop(Stop::FollowedNothing),
        None => fake.stop(Stop::Crashed),
    }
}

/// What every function of the fake answers: "done", so that ggml tries nothing else.
extern "C" fn answer() -> usize {
    1
}

extern "C" fn tell<const WORD: usize>() -> usize {
    // SAFETY: set before the fake was handed out, and never freed.
    unsafe { &*FAKE.load(Ordering::Acquire) }.note_call(WORD);
    answer()
}

macro_rules! telling {
    ($($word:literal)*) => { [$(tell::<$word>),*] };
}

/// For as many words as backends of all versions have, twice over.
static TELLING: [extern "C" fn() -> usize; 40] = telling!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19
    20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
);
