//! What programs ask of libllama: to compute batches, and to change the memory of a context. The
//! functions for the latter were renamed twice, in spring and in summer 2025.

use std::ffi::c_int;

use ggprof_spool::layout::{
    CONTEXT_CLEARED, CONTEXT_COPIED, CONTEXT_REMOVED, CONTEXT_SHIFTED, CONTEXT_WARM_UP,
    CONTEXT_WARMED_UP,
};

use super::{Entry, Word};
use crate::arch::StructOnStack;
use crate::ffi::api::Pointer;
use crate::ffi::llama::{self, BatchFacts};
use crate::observe::batches::{Function, ThreadInCall};
use crate::observe::built_batches;
use crate::observe::contexts::{self, Change};
use crate::observe::fail_open::guard;

pub(super) static ENTRIES: [&Entry; 27] = [
    &decode_real::ENTRY,
    &encode_real::ENTRY,
    &process_real::ENTRY,
    &free_real::ENTRY,
    &set_warmup_real::ENTRY,
    &get_memory_real::ENTRY,
    &memory_clear_real::ENTRY,
    &memory_remove_real::ENTRY,
    &memory_shift_real::ENTRY,
    &memory_copy_real::ENTRY,
    &self_clear_real::ENTRY,
    &self_remove_real::ENTRY,
    &self_shift_real::ENTRY,
    &self_copy_real::ENTRY,
    &cache_clear_real::ENTRY,
    &cache_remove_real::ENTRY,
    &cache_shift_real::ENTRY,
    &cache_copy_real::ENTRY,
    &batch_add_real::ENTRY,
    &batch_add_token_real::ENTRY,
    &batch_add_embd_real::ENTRY,
    &batch_add_seq_real::ENTRY,
    &batch_set_pos_real::ENTRY,
    &batch_set_logits_real::ENTRY,
    &batch_set_embd_real::ENTRY,
    &batch_clear_real::ENTRY,
    &batch_free_real::ENTRY,
];

/// What libllama gives back for a batch that it cannot compute.
const FAILED: c_int = -1;

macro_rules! computes {
    ($symbol:ident, $real:ident, $body:ident, $function:expr) => {
        entry!($symbol, $real:
            fn(Pointer, Word, Word, Word, Word, Word, StructOnStack) -> c_int, $body);

        unsafe extern "C-unwind" fn $body(
            context: Pointer,
            w2: Word,
            w3: Word,
            w4: Word,
            w5: Word,
            w6: Word,
            batch: StructOnStack,
        ) -> c_int {
            let Some(real) = $real::find() else { return FAILED };
            let facts = || {
                let proof = llama::proof_for(real as usize);
                // SAFETY: the program calls this very function with the batch.
                unsafe { BatchFacts::read(&batch, proof) }
            };
            let call =
                guard(None, |this| ThreadInCall::enter(this, $function, context, facts));
            // SAFETY: what the program would have called, with what it passed.
            let status = unsafe { real(context, w2, w3, w4, w5, w6, batch) };
            call.into_iter().for_each(|call| call.finish(status));
            status
        }
    };
}

computes!(llama_decode, decode_real, decode, Function::Decode);
computes!(llama_encode, encode_real, encode, Function::Encode);

entry!(llama_process, process_real:
    fn(Pointer, Word, Pointer, Word, Word, Word) -> c_int, process);

/// The same for a batch that the program built.
unsafe extern "C-unwind" fn process(
    context: Pointer,
    kind: Word,
    batch: Pointer,
    w4: Word,
    w5: Word,
    w6: Word,
) -> c_int {
    const ENCODE: i32 = 0;
    let Some(real) = process_real::find() else { return FAILED };
    let function = if number(kind) == ENCODE { Function::Encode } else { Function::Decode };
    let facts = || built_batches::facts(batch);
    let call = guard(None, |this| ThreadInCall::enter(this, function, context, facts));
    // SAFETY: what the program would have called, with what it passed.
    let status = unsafe { real(context, kind, batch, w4, w5, w6) };
    call.into_iter().for_each(|call| call.finish(status));
    status
}

/// A call of a function whose first argument is a context, its memory or a batch, once it has done
/// its work.
struct Followed {
    handle: Pointer,
    /// The first four of the others.
    arguments: [Word; 4],
    result: Word,
    /// The function.
    real: usize,
}

macro_rules! follows {
    ($symbol:ident, $real:ident, $body:ident, $note:expr) => {
        entry!($symbol, $real: fn(Pointer, Word, Word, Word, Word, Word) -> Word, $body);

        unsafe extern "C-unwind" fn $body(
            handle: Pointer,
            w2: Word,
            w3: Word,
            w4: Word,
            w5: Word,
            w6: Word,
        ) -> Word {
            let Some(real) = $real::find() else { return 0 };
            // SAFETY: what the program would have called, with what it passed.
            let result = unsafe { real(handle, w2, w3, w4, w5, w6) };
            let call = Followed { handle, arguments: [w2, w3, w4, w5], result, real: real as usize };
            guard((), |this| $note(this, call));
            result
        }
    };
}

/// The same for a change of the memory.
macro_rules! changes {
    ($symbol:ident, $real:ident, $body:ident, $change:expr) => {
        follows!($symbol, $real, $body, |this, call: Followed| {
            contexts::note_change(this, call.handle, $change(call.arguments));
        });
    };
}

fn clear(_: [Word; 4]) -> Change {
    Change::of_all(CONTEXT_CLEARED)
}

fn remove([sequence, first, last, _]: [Word; 4]) -> Change {
    let [sequence, first, last] = [sequence, first, last].map(number);
    Change { what: CONTEXT_REMOVED, sequence, first, last, other: 0 }
}

fn shift([sequence, first, last, by]: [Word; 4]) -> Change {
    let [sequence, first, last, other] = [sequence, first, last, by].map(number);
    Change { what: CONTEXT_SHIFTED, sequence, first, last, other }
}

fn copy([sequence, to, first, last]: [Word; 4]) -> Change {
    let [sequence, other, first, last] = [sequence, to, first, last].map(number);
    Change { what: CONTEXT_COPIED, sequence, first, last, other }
}

/// A number of 32 bits in a register.
fn number(word: Word) -> i32 {
    word as u32 as i32
}

follows!(llama_get_memory, get_memory_real, get_memory, |_, call: Followed| {
    contexts::note_memory(call.handle, call.result);
});

changes!(llama_memory_clear, memory_clear_real, memory_clear, clear);
changes!(llama_memory_seq_rm, memory_remove_real, memory_remove, remove);
changes!(llama_memory_seq_add, memory_shift_real, memory_shift, shift);
changes!(llama_memory_seq_cp, memory_copy_real, memory_copy, copy);

changes!(llama_kv_self_clear, self_clear_real, self_clear, clear);
changes!(llama_kv_self_seq_rm, self_remove_real, self_remove, remove);
changes!(llama_kv_self_seq_add, self_shift_real, self_shift, shift);
changes!(llama_kv_self_seq_cp, self_copy_real, self_copy, copy);

changes!(llama_kv_cache_clear, cache_clear_real, cache_clear, clear);
changes!(llama_kv_cache_seq_rm, cache_remove_real, cache_remove, remove);
changes!(llama_kv_cache_seq_add, cache_shift_real, cache_shift, shift);
changes!(llama_kv_cache_seq_cp, cache_copy_real, cache_copy, copy);

changes!(llama_set_warmup, set_warmup_real, set_warmup, |[is_on, ..]: [Word; 4]| {
    Change::of_all(if is_true(is_on) { CONTEXT_WARM_UP } else { CONTEXT_WARMED_UP })
});

entry!(llama_free, free_real: fn(Pointer, Word, Word, Word, Word, Word), free);

/// Before the address may belong to another.
unsafe extern "C-unwind" fn free(
    context: Pointer,
    w2: Word,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
) {
    if let Some(real) = free_real::find() {
        guard((), |this| contexts::note_free(this, context));
        // SAFETY: what the program would have called, with what it passed.
        unsafe { real(context, w2, w3, w4, w5, w6) };
    }
}

follows!(llama_batch_ext_add, batch_add_real, batch_add, |_, call| note_row(call));
follows!(llama_batch_ext_add_token, batch_add_token_real, batch_add_token, |_, call| note_row(
    call
));
follows!(llama_batch_ext_add_seq, batch_add_seq_real, batch_add_seq, |_, call: Followed| {
    let [row, sequence, ..] = call.arguments.map(number);
    built_batches::add_sequence(call.handle, row, sequence);
});
follows!(llama_batch_ext_set_pos, batch_set_pos_real, batch_set_pos, |_, call| note_position(call));
follows!(llama_batch_ext_set_output_logits, batch_set_logits_real, batch_set_logits, |_, call| {
    note_output(call);
});
follows!(llama_batch_ext_set_output_embd, batch_set_embd_real, batch_set_embd, |_, call| {
    note_output(call);
});
follows!(llama_batch_ext_clear, batch_clear_real, batch_clear, |_, call: Followed| {
    built_batches::clear(call.handle);
});
follows!(llama_batch_ext_free, batch_free_real, batch_free, |_, call: Followed| {
    built_batches::free(call.handle);
});

fn note_row(call: Followed) {
    let [sequence, ..] = call.arguments.map(number);
    built_batches::add_row(call.handle, sequence, number(call.result), false);
}

fn note_position(call: Followed) {
    let ([row, place, ..], batch) = (call.arguments, call.handle);
    // SAFETY: the program has just made this call.
    let is_pointer = unsafe { llama::takes_position_by_pointer(call.real, batch, row, place) };
    if is_true(call.result) && is_pointer {
        // SAFETY: libllama has just read a position from there.
        let position = unsafe { (place as *const i32).read_unaligned() };
        built_batches::set_position(batch, number(row), position);
    }
}

fn note_output(call: Followed) {
    let [row, wanted, ..] = call.arguments;
    built_batches::set_output(call.handle, number(row), is_true(wanted));
}

/// A truth value in a register, of which only the lowest byte counts.
fn is_true(word: Word) -> bool {
    word as u8 != 0
}

entry!(llama_batch_ext_add_embd, batch_add_embd_real:
    fn(Pointer, Word, Word, Word, Word, Word, StructOnStack) -> c_int, batch_add_embd);

/// The embedding is passed by value.
unsafe extern "C-unwind" fn batch_add_embd(
    batch: Pointer,
    sequence: Word,
    w3: Word,
    w4: Word,
    w5: Word,
    w6: Word,
    embedding: StructOnStack,
) -> c_int {
    let Some(real) = batch_add_embd_real::find() else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    let row = unsafe { real(batch, sequence, w3, w4, w5, w6, embedding) };
    guard((), |_| built_batches::add_row(batch, number(sequence), row, true));
    row
}
