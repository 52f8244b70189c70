//! Batches that programs build token by token with libllama's functions (`llama_batch_ext_…`, since
//! autumn 2026). Such a batch is never looked into: what the program adds to it is noted as it is
//! added.

use ggprof_spool::layout::BATCH_EMBEDDINGS;

use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::batch_facts::{BatchFacts, Places};
use crate::lock::{HeldAtFork, Ranked, rank};

/// A program has one or two, and frees them.
const MOST_BATCHES: usize = 64;
/// More tokens than any context takes at once.
const MOST_ROWS: usize = 1 << 22;

#[derive(Clone, Copy, Debug)]
struct Row {
    sequence: i32,
    /// -1 until the program gives one.
    position: i32,
    wants_output: bool,
}

#[derive(Debug, Default)]
struct Built {
    at: usize,
    rows: Vec<Row>,
    /// Sequences beyond the first: row and sequence.
    more: Vec<(usize, i32)>,
    has_embeddings: bool,
}

static BATCHES: Ranked<{ rank::BATCHES }, Vec<Built>> = Ranked::new(Vec::new());

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &BATCHES
}

fn with<R>(batch: Pointer, work: impl FnOnce(&mut Built) -> R) -> R {
    let mut batches = BATCHES.lock();
    fault_point!();
    let place = match batches.iter().position(|built| built.at == batch as usize) {
        Some(place) => place,
        None => {
            if batches.len() >= MOST_BATCHES {
                batches.remove(0);
            }
            batches.push(Built { at: batch as usize, ..Default::default() });
            batches.len() - 1
        }
    };
    work(&mut batches[place])
}

/// The program added a row, and was told its number; negative where it failed.
pub(crate) fn add_row(batch: Pointer, sequence: i32, row: i32, is_embedding: bool) {
    let Ok(row) = usize::try_from(row) else { return };
    if row < MOST_ROWS {
        with(batch, |built| {
            built.rows.truncate(row);
            // Several rows may be added at once.
            let new = Row { sequence, position: -1, wants_output: false };
            built.rows.resize(row + 1, new);
            built.has_embeddings |= is_embedding;
        });
    }
}

/// A row belongs to one more sequence.
pub(crate) fn add_sequence(batch: Pointer, row: i32, sequence: i32) {
    with(batch, |built| {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        if row < built.rows.len() && built.rows[row].sequence != sequence {
            built.more.push((row, sequence));
        }
    });
}

pub(crate) fn set_position(batch: Pointer, row: i32, position: i32) {
    change_row(batch, row, |row| row.position = position);
}

pub(crate) fn set_output(batch: Pointer, row: i32, wants_output: bool) {
    change_row(batch, row, |row| row.wants_output |= wants_output);
}

fn change_row(batch: Pointer, row: i32, change: impl FnOnce(&mut Row)) {
    let row = usize::try_from(row).unwrap_or(usize::MAX);
    with(batch, |built| _ = built.rows.get_mut(row).map(change));
}

/// The program cleared the batch.
pub(crate) fn clear(batch: Pointer) {
    with(batch, |built| {
        built.rows.clear();
        built.more.clear();
        built.has_embeddings = false;
    });
}

pub(crate) fn free(batch: Pointer) {
    BATCHES.lock().retain(|built| built.at != batch as usize);
}

/// What a batch holds now.
pub(crate) fn facts(batch: Pointer) -> BatchFacts {
    with(batch, |built| {
        let (mut facts, mut places) = (BatchFacts::new(built.rows.len() as u32), Places::new());
        if built.has_embeddings {
            facts.flags |= BATCH_EMBEDDINGS;
        }
        let mut more = built.more.iter().peekable();
        for (number, row) in built.rows.iter().enumerate() {
            facts.outputs += u32::from(row.wants_output);
            facts.count(&mut places, row.sequence, row.position, row.wants_output);
            while let Some((_, sequence)) = more.next_if(|(other, _)| *other == number) {
                facts.count(&mut places, *sequence, row.position, row.wants_output);
            }
        }
        facts
    })
}
