//! What programs do to the contexts of libllama and to their memory. The functions for the latter were renamed
//! twice, in spring and in summer 2025. Results pass through as the register they are in: some versions return
//! nothing.

use ggprof_spool::layout::{
    CONTEXT_CLEARED, CONTEXT_COPIED, CONTEXT_DIVIDED, CONTEXT_KEPT, CONTEXT_REMOVED,
    CONTEXT_SHIFTED, CONTEXT_WARM_UP, CONTEXT_WARMED_UP, ContextChange,
};

use super::{Entry, Real, Word, is_true, number};
use crate::ffi::api::Pointer;
use crate::observe::contexts;
use crate::observe::fail_open::guard;
use crate::recorder::current;

pub(super) static ENTRIES: [Entry; 24] = [
    free_real::ENTRY,
    set_warmup_real::ENTRY,
    get_memory_real::ENTRY,
    memory_clear_real::ENTRY,
    memory_remove_real::ENTRY,
    memory_shift_real::ENTRY,
    memory_copy_real::ENTRY,
    memory_keep_real::ENTRY,
    memory_divide_real::ENTRY,
    self_clear_real::ENTRY,
    self_remove_real::ENTRY,
    self_shift_real::ENTRY,
    self_copy_real::ENTRY,
    self_keep_real::ENTRY,
    self_divide_real::ENTRY,
    cache_clear_real::ENTRY,
    cache_remove_real::ENTRY,
    cache_shift_real::ENTRY,
    cache_copy_real::ENTRY,
    cache_keep_real::ENTRY,
    cache_divide_real::ENTRY,
    embeddings_real::ENTRY,
    embeddings_of_row_real::ENTRY,
    embeddings_of_sequence_real::ENTRY,
];

passing_all_on!(llama_free, free_real: free(context: Pointer));

/// Noted first: afterwards the address may belong to another object.
fn free(real: Real<impl FnOnce()>, context: Pointer) {
    guard((), |this| contexts::note_free(this, context));
    real.call();
}

passing_all_on!(llama_get_memory, get_memory_real:
    get_memory(context: Pointer) -> Word, otherwise 0);

fn get_memory(real: Real<impl FnOnce() -> Word>, context: Pointer) -> Word {
    let memory = real.call();
    if current::is_on() {
        guard((), |_| contexts::note_memory(context, memory));
    }
    memory
}

passing_all_on!(llama_memory_clear, memory_clear_real: clear(of: Pointer) -> Word, otherwise 0);
passing_all_on!(llama_kv_self_clear, self_clear_real: clear(of: Pointer) -> Word, otherwise 0);
passing_all_on!(llama_kv_cache_clear, cache_clear_real: clear(of: Pointer) -> Word, otherwise 0);

fn clear(real: Real<impl FnOnce() -> Word>, of: Pointer) -> Word {
    changed(real, of, contexts::of_all_sequences(CONTEXT_CLEARED))
}

passing_all_on!(llama_memory_seq_rm, memory_remove_real:
    remove(of: Pointer, sequence: Word, first: Word, last: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_self_seq_rm, self_remove_real:
    remove(of: Pointer, sequence: Word, first: Word, last: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_cache_seq_rm, cache_remove_real:
    remove_unsaid(of: Pointer, sequence: Word, first: Word, last: Word) -> Word, otherwise 0);

/// Some models have a memory from which positions in the middle cannot be taken.
fn remove(
    real: Real<impl FnOnce() -> Word>,
    of: Pointer,
    sequence: Word,
    first: Word,
    last: Word,
) -> Word {
    let result = real.call();
    if is_true(result) {
        note(of, removed(sequence, first, last));
    }
    result
}

/// The same where it may have no result that says whether it was done: before spring 2024.
fn remove_unsaid(
    real: Real<impl FnOnce() -> Word>,
    of: Pointer,
    sequence: Word,
    first: Word,
    last: Word,
) -> Word {
    changed(real, of, removed(sequence, first, last))
}

fn removed(sequence: Word, first: Word, last: Word) -> ContextChange {
    let [sequence, first, last] = [sequence, first, last].map(number);
    ContextChange { what: CONTEXT_REMOVED, sequence, first, last, ..Default::default() }
}

passing_all_on!(llama_memory_seq_add, memory_shift_real:
    shift(of: Pointer, sequence: Word, first: Word, last: Word, by: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_self_seq_add, self_shift_real:
    shift(of: Pointer, sequence: Word, first: Word, last: Word, by: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_cache_seq_add, cache_shift_real:
    shift(of: Pointer, sequence: Word, first: Word, last: Word, by: Word) -> Word, otherwise 0);

fn shift(
    real: Real<impl FnOnce() -> Word>,
    of: Pointer,
    sequence: Word,
    first: Word,
    last: Word,
    by: Word,
) -> Word {
    changed(real, of, moved(CONTEXT_SHIFTED, [sequence, first, last, by]))
}

passing_all_on!(llama_memory_seq_div, memory_divide_real:
    divide(of: Pointer, sequence: Word, first: Word, last: Word, by: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_self_seq_div, self_divide_real:
    divide(of: Pointer, sequence: Word, first: Word, last: Word, by: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_cache_seq_div, cache_divide_real:
    divide(of: Pointer, sequence: Word, first: Word, last: Word, by: Word) -> Word, otherwise 0);

fn divide(
    real: Real<impl FnOnce() -> Word>,
    of: Pointer,
    sequence: Word,
    first: Word,
    last: Word,
    by: Word,
) -> Word {
    changed(real, of, moved(CONTEXT_DIVIDED, [sequence, first, last, by]))
}

fn moved(what: u8, words: [Word; 4]) -> ContextChange {
    let [sequence, first, last, other] = words.map(number);
    ContextChange { what, sequence, first, last, other, ..Default::default() }
}

passing_all_on!(llama_memory_seq_cp, memory_copy_real:
    copy(of: Pointer, sequence: Word, to: Word, first: Word, last: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_self_seq_cp, self_copy_real:
    copy(of: Pointer, sequence: Word, to: Word, first: Word, last: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_cache_seq_cp, cache_copy_real:
    copy(of: Pointer, sequence: Word, to: Word, first: Word, last: Word) -> Word, otherwise 0);

fn copy(
    real: Real<impl FnOnce() -> Word>,
    of: Pointer,
    sequence: Word,
    to: Word,
    first: Word,
    last: Word,
) -> Word {
    let [sequence, other, first, last] = [sequence, to, first, last].map(number);
    let what = CONTEXT_COPIED;
    changed(real, of, ContextChange { what, sequence, first, last, other, ..Default::default() })
}

passing_all_on!(llama_memory_seq_keep, memory_keep_real:
    keep(of: Pointer, sequence: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_self_seq_keep, self_keep_real:
    keep(of: Pointer, sequence: Word) -> Word, otherwise 0);
passing_all_on!(llama_kv_cache_seq_keep, cache_keep_real:
    keep(of: Pointer, sequence: Word) -> Word, otherwise 0);

fn keep(real: Real<impl FnOnce() -> Word>, of: Pointer, sequence: Word) -> Word {
    let all = contexts::of_all_sequences(CONTEXT_KEPT);
    changed(real, of, ContextChange { sequence: number(sequence), ..all })
}

passing_all_on!(llama_set_warmup, set_warmup_real:
    set_warmup(of: Pointer, is_on: Word) -> Word, otherwise 0);

fn set_warmup(real: Real<impl FnOnce() -> Word>, of: Pointer, is_on: Word) -> Word {
    let what = if is_true(is_on) { CONTEXT_WARM_UP } else { CONTEXT_WARMED_UP };
    let result = real.call();
    guard((), |this| contexts::note_trial(this, of, what));
    result
}

passing_all_on!(llama_get_embeddings, embeddings_real:
    read_embeddings(context: Pointer) -> Word, otherwise 0);
passing_all_on!(llama_get_embeddings_ith, embeddings_of_row_real:
    read_embeddings(context: Pointer) -> Word, otherwise 0);
passing_all_on!(llama_get_embeddings_seq, embeddings_of_sequence_real:
    read_embeddings(context: Pointer) -> Word, otherwise 0);

/// The embeddings themselves are none of our business.
fn read_embeddings(real: Real<impl FnOnce() -> Word>, context: Pointer) -> Word {
    guard((), |this| contexts::note_embeddings_read(this, context));
    real.call()
}

/// `of` is a context, or its memory.
fn changed(real: Real<impl FnOnce() -> Word>, of: Pointer, change: ContextChange) -> Word {
    let result = real.call();
    note(of, change);
    result
}

fn note(of: Pointer, change: ContextChange) {
    guard((), |this| contexts::note_change(this, of, change));
}
