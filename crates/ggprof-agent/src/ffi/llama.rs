//! The batches that programs hand to libllama: `struct llama_batch`, passed by value. Where its
//! fields are is not assumed: a child makes some with libllama's own functions and looks
//! (`rehearsal`). Tokens, texts and embeddings are never read.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use ggprof_spool::layout::{
    BATCH_EMBEDDINGS, BATCH_MOST_SEQUENCES, BATCH_ONE_SEQUENCE, BATCH_OUTPUTS_UNSAID,
    BATCH_PARTLY_KNOWN,
};

use super::api::Pointer;
use super::batch_facts::{BatchFacts, Places};
use super::{in_place, rehearsal};
use crate::arch::{MakesStruct, Word};
use crate::fault::fault_point;
use crate::patch::inline;
use crate::patch::loaded_object::{self, LoadedObject};
use crate::patch::scope::Scope;
use crate::patch::symbols;

/// Which word of a batch holds what. The same in all versions since batches have sequences.
const N_TOKENS: usize = 0;
const TOKENS: usize = 1;
const EMBEDDINGS: usize = 2;
const POSITIONS: usize = 3;
const SEQUENCE_COUNTS: usize = 4;
const SEQUENCES: usize = 5;
const OUTPUTS: usize = 6;

/// More tokens than any context takes at once.
const MOST_TOKENS: i32 = 1 << 22;

/// What is known of a libllama's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Proof {
    Nothing = 1,
    /// The number of tokens is proven; another field is proven only where it is null.
    Count,
    All,
}

impl BatchFacts {
    /// # Safety
    /// The program has just passed the batch with these words to the libllama that this was proven of.
    pub(crate) unsafe fn read(batch: *const Word, proof: Proof) -> BatchFacts {
        // SAFETY: all versions have these words.
        let word = |index: usize| unsafe { *batch.add(index) };
        let count = word(N_TOKENS) as u32 as i32;
        if proof == Proof::Nothing || !(0..=MOST_TOKENS).contains(&count) {
            return BatchFacts::unread(0);
        }
        let says_more = [POSITIONS, SEQUENCE_COUNTS, SEQUENCES, OUTPUTS];
        if proof == Proof::Count && says_more.iter().any(|&index| word(index) != 0) {
            return BatchFacts::unread(count as u32);
        }
        let mut facts = BatchFacts::new(count as u32);
        if word(TOKENS) == 0 && word(EMBEDDINGS) != 0 {
            facts.flags |= BATCH_EMBEDDINGS;
        }
        if word(SEQUENCES) == 0 || word(SEQUENCE_COUNTS) == 0 {
            facts.flags |= BATCH_ONE_SEQUENCE;
        }
        if word(OUTPUTS) == 0 {
            facts.flags |= BATCH_OUTPUTS_UNSAID;
        }
        let mut places = Places::new();
        for index in 0..count as usize {
            // SAFETY: libllama is about to read as many of each, where there are any.
            if !unsafe { facts.add(&mut places, batch, index) } {
                facts.flags |= BATCH_PARTLY_KNOWN;
                break;
            }
        }
        facts
    }

    /// Counts the token at an index; false if what is there is not likely.
    ///
    /// # Safety
    /// The arrays of the batch that are there have that many entries.
    unsafe fn add(&mut self, places: &mut Places, batch: *const Word, index: usize) -> bool {
        // SAFETY: the caller's contract.
        let (position, wants_output, sequences) = unsafe {
            let position = element::<i32>(batch, POSITIONS, index).unwrap_or(-1);
            let wants_output = element::<i8>(batch, OUTPUTS, index).unwrap_or(0) != 0;
            (position, wants_output, sequences_of(batch, index, self.flags))
        };
        self.outputs += u32::from(wants_output);
        let is_likely = sequences.is_some();
        let sequences = sequences.into_iter().flatten();
        sequences.for_each(|&it| self.count(places, it, position, wants_output));
        is_likely
    }
}

/// An element of an array of the batch; `None` without the array.
///
/// # Safety
/// The batch has the word, which is null or points to more elements of this type than the index.
unsafe fn element<T: Copy>(batch: *const Word, word: usize, index: usize) -> Option<T> {
    // SAFETY: the caller's contract.
    let array = unsafe { *batch.add(word) } as *const T;
    // SAFETY: the caller's contract.
    (!array.is_null()).then(|| unsafe { array.add(index).read_unaligned() })
}

/// # Safety
/// As for [`element`], for the words of sequences.
unsafe fn sequences_of<'a>(batch: *const Word, index: usize, flags: u8) -> Option<&'a [i32]> {
    if flags & BATCH_ONE_SEQUENCE != 0 {
        return Some(&[0]);
    }
    // SAFETY: the caller's contract.
    let (count, list) = unsafe {
        let count = element::<c_int>(batch, SEQUENCE_COUNTS, index)?;
        (count, element::<*const i32>(batch, SEQUENCES, index)?)
    };
    let is_likely = (1..=BATCH_MOST_SEQUENCES as c_int).contains(&count) && !list.is_null();
    // SAFETY: libllama reads as many from there.
    is_likely.then(|| unsafe { std::slice::from_raw_parts(list, count as usize) })
}

/// Answers to a question about a function, each found out once; a process has one libllama, rarely
/// two.
#[derive(Debug)]
struct Answers {
    known: [KnownAnswer; 4],
    /// The loader's count of unloads when they were found.
    unloads: AtomicU64,
}

#[derive(Debug)]
struct KnownAnswer {
    function: AtomicUsize,
    answer: AtomicU8,
}

impl Answers {
    const fn new() -> Self {
        Answers {
            known: [const { KnownAnswer { function: AtomicUsize::new(0), answer: AtomicU8::new(0) } };
                4],
            unloads: AtomicU64::new(0),
        }
    }

    /// The answer for a function; `otherwise` if there are too many functions to remember: asking
    /// takes milliseconds, and must not happen at every call.
    fn of(&self, function: usize, otherwise: u8, ask: impl FnOnce() -> u8) -> u8 {
        let unloads = loaded_object::unloads();
        if self.unloads.swap(unloads, Ordering::Relaxed) != unloads {
            self.known.iter().for_each(|known| known.function.store(0, Ordering::Relaxed));
        }
        let known = || self.known.iter();
        if let Some(known) = known().find(|it| it.function.load(Ordering::Acquire) == function) {
            return known.answer.load(Ordering::Relaxed);
        }
        let free = known().find(|it| it.function.load(Ordering::Relaxed) == 0);
        free.map_or(otherwise, |free| {
            let answer = ask();
            fault_point!();
            free.answer.store(answer, Ordering::Relaxed);
            free.function.store(function, Ordering::Release);
            answer
        })
    }
}

/// What is known of the batches of the libllama that holds the function: found out at its first
/// use.
pub(crate) fn proof_for(function: usize) -> Proof {
    static PROOFS: Answers = Answers::new();
    let object = || LoadedObject::containing(inline::function_behind(function));
    let prove = || object().map_or(Proof::Nothing, |object| prove_batches(&object)) as u8;
    match PROOFS.of(function, Proof::Nothing as u8, prove) {
        proof if proof == Proof::All as u8 => Proof::All,
        proof if proof == Proof::Count as u8 => Proof::Count,
        _ => Proof::Nothing,
    }
}

/// Finds out what is known of the batches of a libllama; its children are made once, however often this
/// is asked.
pub(crate) fn prove_batches(libllama: &LoadedObject) -> Proof {
    Makers::of(libllama).prove()
}

/// libllama's own functions that make batches; 0 where one is not there.
#[derive(Clone, Copy, Debug)]
struct Makers {
    init: usize,
    get_one: usize,
}

impl Makers {
    fn of(object: &LoadedObject) -> Makers {
        let names = [c"llama_batch_init", c"llama_batch_get_one"];
        let [init, get_one] = names.map(|name| find_in(object, name));
        Makers { init, get_one }
    }

    fn prove(self) -> Proof {
        static INIT: Answers = Answers::new();
        static GET_ONE: Answers = Answers::new();
        let (init, get_one) = (self.init, self.get_one);
        let is_so = |answers: &Answers, function: usize, try_out: fn(usize) -> bool| {
            let tried = || u8::from(rehearsal::rehearse(|_| try_out(function)) == Ok(true));
            function != 0 && answers.of(function, u8::from(false), tried) == u8::from(true)
        };
        if is_so(&INIT, init, init_is_as_expected) {
            return Proof::All;
        }
        match is_so(&GET_ONE, get_one, get_one_is_as_expected) {
            true => Proof::Count,
            false => Proof::Nothing,
        }
    }
}

/// A function that the object shows, or hides and has a name for.
fn find_in(object: &LoadedObject, name: &CStr) -> usize {
    let shown = Scope::of(&object.name).map_or(0, |scope| scope.find(name));
    if object.holds(shown) {
        return inline::way_past(shown);
    }
    let own = symbols::functions(object, |other| other == name.to_bytes());
    own.first().map_or(0, |function| inline::way_past(function.address))
}

/// What no field is before somebody writes to it.
const UNTOUCHED: Word = 0x5a5a_5a5a_5a5a_5a5a;

/// In a child: a batch for tokens, and one for embeddings, with room for so many of everything that
/// the arrays differ in size where their elements do.
fn init_is_as_expected(init: usize) -> bool {
    const COUNT: usize = 64;
    // SAFETY: the address of the function of this name; a struct that it makes lies where it is
    // told to put it. If anything of that is wrong, this child dies.
    let init: MakesStruct<(c_int, c_int, c_int)> = unsafe { MakesStruct::at(init) };
    let of_tokens = init.call((COUNT as c_int, 0, 2), UNTOUCHED);
    let of_embeddings = init.call((COUNT as c_int, 8, 2), UNTOUCHED);
    let word = |index: usize| of_tokens.0[index];
    let has = |index: usize, bytes: std::ops::Range<usize>| bytes.contains(&room_at(word(index)));
    let are_numbers = [POSITIONS, SEQUENCE_COUNTS];
    word(N_TOKENS) as u32 == 0
        && word(EMBEDDINGS) == 0
        && of_embeddings.0[TOKENS] == 0
        && of_embeddings.0[EMBEDDINGS] != 0
        && are_numbers.iter().all(|&index| has(index, 4 * COUNT..8 * COUNT))
        && has(TOKENS, 4 * COUNT..8 * COUNT)
        && has(OUTPUTS, COUNT..4 * COUNT)
        && has(SEQUENCES, 8 * COUNT..usize::MAX)
        && (0..COUNT).all(|index| {
            // SAFETY: as above; the array has room for as many.
            let list = unsafe { element::<usize>(of_tokens.0.as_ptr(), SEQUENCES, index) };
            list.is_some_and(|list| (8..4 * COUNT).contains(&room_at(list)))
        })
}

/// How many bytes were allocated there.
fn room_at(pointer: Word) -> usize {
    unsafe extern "C" {
        fn malloc_usable_size(pointer: *mut c_void) -> usize;
    }
    match pointer {
        0 | UNTOUCHED => 0,
        // SAFETY: a child of a rehearsal, which may die of it.
        _ => unsafe { malloc_usable_size(pointer as *mut c_void) },
    }
}

/// In a child: the batch that is made of a list of tokens alone.
fn get_one_is_as_expected(get_one: usize) -> bool {
    const COUNT: c_int = 5;
    let tokens = [0_i32; COUNT as usize];
    // SAFETY: as in `init_is_as_expected`. Until October 2024 there were two more arguments, which
    // are given here in any case.
    let get_one: MakesStruct<(*const i32, c_int, c_int, c_int)> =
        unsafe { MakesStruct::at(get_one) };
    let batch = get_one.call((tokens.as_ptr(), COUNT, 0, 0), UNTOUCHED);
    batch.0[N_TOKENS] as u32 as c_int == COUNT
        && batch.0[TOKENS] == tokens.as_ptr() as Word
        && batch.0[EMBEDDINGS..=OUTPUTS].iter().all(|&word| word == 0)
}

/// `llama_batch_ext_set_pos`.
type SetPosition = unsafe extern "C" fn(Pointer, Word, Word, Word, Word, Word) -> bool;

/// The position that the program has just set, if it was passed by a pointer.
///
/// A position has 32 bits. An argument with more of them that leads to memory is a pointer. A child is
/// asked about others only, because by now the program has its weights and its cache: a child would
/// cost it a fault for each page of these that it writes to.
///
/// # Safety
/// The program has just called the function with these arguments.
pub(crate) unsafe fn position_set(
    function: usize,
    batch: Pointer,
    row: Word,
    place: Word,
) -> Option<i32> {
    let is_pointer = match place > u32::MAX as Word {
        true => is_memory(place),
        // SAFETY: the caller's contract.
        false => unsafe { takes_position_by_pointer(function, batch, row, place) },
    };
    // SAFETY: memory, as was just seen, or where the function reads a position from.
    is_pointer.then(|| unsafe { (place as *const i32).read_unaligned() })
}

/// The same where the position before was in memory right there, in no time: programs pass the same place
/// again and again.
///
/// # Safety
/// As for [`position_set`].
pub(crate) unsafe fn position_set_where_last(place: Word) -> Option<i32> {
    let is_known = place > u32::MAX as Word && LAST_PAGE.load(Ordering::Relaxed) == page_of(place);
    // SAFETY: the function has just read a position there, as it did on that page before.
    is_known.then(|| unsafe { (place as *const i32).read_unaligned() })
}

/// The page where a position was last.
static LAST_PAGE: AtomicUsize = AtomicUsize::new(0);
const LEAST_PAGE_BYTES: Word = 4096;

fn page_of(place: Word) -> usize {
    place / LEAST_PAGE_BYTES
}

/// Whether a position can be read there.
fn is_memory(place: Word) -> bool {
    let is_aligned = place.is_multiple_of(size_of::<i32>() as Word);
    let page = page_of(place);
    let is_memory = is_aligned && in_place::compare(page * LEAST_PAGE_BYTES, 0).is_some();
    if is_memory {
        LAST_PAGE.store(page, Ordering::Relaxed);
    }
    is_memory
}

/// Whether the function that sets a token's position reads it from where its third argument points
/// to: found out at its first use, in children that repeat the call, with a pointer and with
/// something that is none.
///
/// # Safety
/// The program has just called the function with these arguments.
unsafe fn takes_position_by_pointer(
    function: usize,
    batch: Pointer,
    row: Word,
    place: Word,
) -> bool {
    static BY_POINTER: Answers = Answers::new();
    const NOWHERE: Word = 8;
    let repeat = |place: Word| {
        rehearsal::rehearse(|_| {
            // SAFETY: the function of this type, in a child that may die of it.
            unsafe {
                let set = std::mem::transmute::<usize, SetPosition>(function);
                set(batch, row, place, 0, 0, 0)
            }
        })
    };
    let is_pointer =
        || repeat(place) == Ok(true) && repeat(NOWHERE) == Err(rehearsal::Failure::Crashed);
    BY_POINTER.of(function, u8::from(false), || u8::from(is_pointer())) == u8::from(true)
}
