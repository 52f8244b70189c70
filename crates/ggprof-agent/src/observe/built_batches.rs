//! Batches that programs build token by token with libllama's functions (`llama_batch_ext_…`, since
//! autumn 2026). Such a batch is never looked into: what the program adds to it is noted as it is
//! added.
//!
//! That is three calls for each token, so they take no lock: a thread remembers the batch that it worked on
//! last, and writes to a place that is never freed. libllama lets one thread at a time work on a batch, and
//! a program that hands one to another thread hands over what is noted here in the same way. All of it is
//! atomic, so that a program that breaks that rule gets wrong numbers and nothing else.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};

use ggprof_spool::layout::BATCH_EMBEDDINGS;

use super::fail_open::{guard, hot};
use super::this_thread::ThisThread;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::batch_facts::{BatchFacts, Places};
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::memory;

/// A program has one or two, and frees them.
const MOST_BATCHES: usize = 64;
/// Rows are kept in chunks, each as large as all before it: together more than any context takes at once.
const CHUNKS: usize = 14;
const FIRST_CHUNK: usize = 512;

/// Something that the program does to a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// It added a row, and was told its number; negative where it failed.
    Row {
        sequence: i32,
        row: i32,
        is_embedding: bool,
    },
    /// A row belongs to one more sequence.
    Sequence {
        row: i32,
        sequence: i32,
    },
    Position {
        row: i32,
        position: i32,
    },
    /// A row has a result.
    Output {
        row: i32,
    },
    Clear,
}

#[derive(Debug, Default)]
struct Row {
    sequence: AtomicI32,
    /// -1 until the program gives one.
    position: AtomicI32,
    wants_output: AtomicBool,
}

/// The place of a batch.
#[derive(Debug)]
pub(super) struct Built {
    /// The batch; 0 if the place is free.
    at: AtomicUsize,
    rows: AtomicUsize,
    chunks: [OnceLock<Box<[Row]>>; CHUNKS],
    has_embeddings: AtomicBool,
    /// Some rows belong to several sequences (`Others`).
    has_more: AtomicBool,
}

static PLACES: [Built; MOST_BATCHES] = [const { Built::new() }; MOST_BATCHES];

/// Which batch has which place, and what the places have no room for.
#[derive(Debug)]
struct Others {
    /// Sequences of rows beyond the first: place, row and sequence.
    more: Vec<(usize, usize, i32)>,
    /// The place that is given to another batch next, when all are taken.
    next: usize,
}

static BATCHES: Ranked<{ rank::BATCHES }, Others> =
    Ranked::new(Others { more: Vec::new(), next: 0 });

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &BATCHES
}

impl Built {
    const fn new() -> Built {
        Built {
            at: AtomicUsize::new(0),
            rows: AtomicUsize::new(0),
            chunks: [const { OnceLock::new() }; CHUNKS],
            has_embeddings: AtomicBool::new(false),
            has_more: AtomicBool::new(false),
        }
    }

    fn is_of(&self, batch: Pointer) -> bool {
        self.at.load(Relaxed) == batch as usize
    }

    /// The chunk of a row, and the first row of that.
    fn chunk_of(row: usize) -> (usize, usize) {
        match (row / FIRST_CHUNK).checked_ilog2() {
            None => (0, 0),
            Some(doublings) => (doublings as usize + 1, FIRST_CHUNK << doublings),
        }
    }

    fn row(&self, row: usize) -> Option<&Row> {
        let (chunk, first) = Self::chunk_of(row);
        self.chunks.get(chunk)?.get()?.get(row - first)
    }

    /// A row that the batch has.
    fn existing(&self, row: i32) -> Option<&Row> {
        let row = usize::try_from(row).ok().filter(|&row| row < self.rows.load(Relaxed))?;
        self.row(row)
    }

    /// Notes a change; false if that takes more room, or the lock. Must not panic.
    #[inline(always)]
    fn take(&self, change: Change) -> bool {
        match change {
            Change::Row { sequence, row, is_embedding } => {
                let Ok(row) = usize::try_from(row) else { return true };
                if self.row(row).is_none() {
                    return false;
                }
                // Several may be added at once.
                for at in self.rows.load(Relaxed).min(row)..=row {
                    let Some(new) = self.row(at) else { return false };
                    new.sequence.store(sequence, Relaxed);
                    new.position.store(-1, Relaxed);
                    new.wants_output.store(false, Relaxed);
                }
                self.rows.store(row + 1, Relaxed);
                if is_embedding {
                    self.has_embeddings.store(true, Relaxed);
                }
            }
            Change::Position { row, position } => {
                self.existing(row)
                    .into_iter()
                    .for_each(|row| row.position.store(position, Relaxed));
            }
            Change::Output { row } => {
                self.existing(row)
                    .into_iter()
                    .for_each(|row| row.wants_output.store(true, Relaxed));
            }
            Change::Clear if !self.has_more.load(Relaxed) => self.empty(),
            Change::Clear | Change::Sequence { .. } => return false,
        }
        true
    }

    fn empty(&self) {
        self.rows.store(0, Relaxed);
        self.has_embeddings.store(false, Relaxed);
        self.has_more.store(false, Relaxed);
    }

    fn make_room(&self, row: i32) {
        let Ok(row) = usize::try_from(row) else { return };
        let (last, _) = Self::chunk_of(row);
        for (number, chunk) in self.chunks.get(..=last).into_iter().flatten().enumerate() {
            let rows = FIRST_CHUNK << number.saturating_sub(1);
            chunk.get_or_init(|| {
                let mut new = Vec::new();
                memory::made_room(new.try_reserve_exact(rows));
                new.resize_with(rows, Row::default);
                new.into_boxed_slice()
            });
        }
    }
}

impl Others {
    fn find(batch: Pointer) -> Option<usize> {
        PLACES.iter().position(|place| place.is_of(batch))
    }

    /// The place of a batch, which may be given one.
    fn find_or_give(&mut self, batch: Pointer) -> usize {
        let null = std::ptr::null_mut();
        if let Some(place) = Self::find(batch) {
            return place;
        }
        let place = Self::find(null).unwrap_or_else(|| {
            self.next = (self.next + 1) % MOST_BATCHES;
            self.next
        });
        self.empty(place);
        PLACES[place].at.store(batch as usize, Relaxed);
        place
    }

    fn empty(&mut self, place: usize) {
        self.more.retain(|(of, ..)| *of != place);
        PLACES[place].empty();
    }
}

/// Notes a change of a batch.
#[inline(always)]
pub(crate) fn note(batch: Pointer, change: Change) {
    let is_known = |this: &ThisThread| this.built.get().filter(|built| built.is_of(batch));
    if !hot(false, |this| is_known(this).is_some_and(|built| built.take(change))) {
        guard((), |this| note_guarded(this, batch, change));
    }
}

/// The same inside a guard.
#[cold]
pub(crate) fn note_guarded(this: &ThisThread, batch: Pointer, change: Change) {
    let mut others = BATCHES.lock();
    fault_point!();
    let place = others.find_or_give(batch);
    let built = &PLACES[place];
    this.built.set(Some(built));
    match change {
        Change::Sequence { row, sequence } => {
            let is_new = |row: &Row| row.sequence.load(Relaxed) != sequence;
            if built.existing(row).is_some_and(is_new) {
                memory::made_room(others.more.try_reserve(1));
                others.more.push((place, row as usize, sequence));
                built.has_more.store(true, Relaxed);
            }
        }
        Change::Clear => others.empty(place),
        Change::Row { row, .. } => {
            built.make_room(row);
            fault_point!();
            built.take(change);
        }
        Change::Position { .. } | Change::Output { .. } => _ = built.take(change),
    }
}

/// The program is about to free the batch.
pub(crate) fn free(batch: Pointer) {
    let mut others = BATCHES.lock();
    if let Some(place) = Others::find(batch) {
        PLACES[place].at.store(0, Relaxed);
        others.empty(place);
    }
}

/// What a batch holds now.
pub(crate) fn facts(batch: Pointer) -> BatchFacts {
    let others = BATCHES.lock();
    fault_point!();
    let Some(place) = Others::find(batch) else { return BatchFacts::unread(0) };
    let built = &PLACES[place];
    let count = built.rows.load(Relaxed);
    let (mut facts, mut places) = (BatchFacts::new(count as u32), Places::new());
    if built.has_embeddings.load(Relaxed) {
        facts.flags |= BATCH_EMBEDDINGS;
    }
    let mut more = others.more.iter().filter(|(of, ..)| *of == place).peekable();
    for (number, row) in (0..count).map_while(|row| built.row(row)).enumerate() {
        let wants_output = row.wants_output.load(Relaxed);
        let position = row.position.load(Relaxed);
        facts.outputs += u32::from(wants_output);
        facts.count(&mut places, row.sequence.load(Relaxed), position, wants_output);
        while let Some((.., sequence)) = more.next_if(|(_, other, _)| *other == number) {
            facts.count(&mut places, *sequence, position, wants_output);
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(number: usize) -> Pointer {
        (number * 8) as Pointer
    }

    /// Adds rows of a sequence, with positions from `first` on; the last one has a result.
    fn add(batch: Pointer, sequence: i32, rows: std::ops::Range<i32>, first: i32) {
        for (row, position) in rows.clone().zip(first..) {
            note(batch, Change::Row { sequence, row, is_embedding: false });
            note(batch, Change::Position { row, position });
        }
        note(batch, Change::Output { row: rows.end - 1 });
    }

    /// Tokens, and of each sequence: its number, first and last position, tokens and results.
    fn found(batch: Pointer) -> (u32, Vec<[i32; 5]>) {
        let facts = facts(batch);
        let of_each = facts.sequences.iter();
        let of_each =
            of_each.map(|it| [it.sequence, it.first, it.last, it.tokens as i32, it.outputs as i32]);
        (facts.tokens, of_each.collect())
    }

    #[test]
    fn what_is_added_is_there_until_it_is_cleared() {
        let it = batch(1);
        for size in [3, 600, 5000] {
            add(it, 0, 0..size, 0);
            add(it, 7, size..size + 1, 40);
            note(it, Change::Sequence { row: 1, sequence: 9 });
            let expected = vec![[0, 0, size - 1, size, 1], [9, 1, 1, 1, 0], [7, 40, 40, 1, 1]];
            assert_eq!(found(it), (size as u32 + 1, expected));
            note(it, Change::Clear);
            assert_eq!(found(it), (0, Vec::new()));
        }
        // The program may begin anew without clearing.
        add(it, 0, 0..4, 0);
        add(it, 0, 0..2, 4);
        assert_eq!(found(it), (2, vec![[0, 4, 5, 2, 1]]));
        free(it);
        assert!(facts(it).sequences.is_empty());
    }

    #[test]
    fn rows_that_do_not_exist_are_nothing() {
        let it = batch(2);
        add(it, 0, 0..1, 0);
        note(it, Change::Row { sequence: 1, row: -1, is_embedding: true });
        for row in [-1, 1, i32::MAX] {
            note(it, Change::Position { row, position: 5 });
            note(it, Change::Output { row });
            note(it, Change::Sequence { row, sequence: 3 });
        }
        note(it, Change::Row { sequence: 1, row: i32::MAX, is_embedding: false });
        assert_eq!(found(it).1, [[0, 0, 0, 1, 1]]);
        free(it);
    }

    /// One thread builds, another computes, and the first one goes on.
    #[test]
    fn a_batch_may_go_from_thread_to_thread() {
        let it = batch(3) as usize;
        add(it as Pointer, 0, 0..5, 0);
        let other = std::thread::spawn(move || {
            let of_first = found(it as Pointer);
            note(it as Pointer, Change::Clear);
            add(it as Pointer, 1, 0..1, 5);
            of_first
        });
        assert_eq!(other.join().unwrap(), (5, vec![[0, 0, 4, 5, 1]]));
        add(it as Pointer, 2, 1..2, 9);
        assert_eq!(found(it as Pointer), (2, vec![[1, 5, 5, 1, 1], [2, 9, 9, 1, 1]]));
        free(it as Pointer);
    }
}
