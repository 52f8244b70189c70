//! Batches: how programs hand them to libllama, and how newer programs build them with libllama's functions.

use std::ffi::c_int;

use super::{Entry, Real, Word, is_true, number};
use crate::arch::{StructByValue, words_around_struct};
use crate::ffi::api::Pointer;
use crate::ffi::batch_facts::BatchFacts;
use crate::ffi::llama;
use crate::observe::batches::{BatchFunction, ThreadInCall};
use crate::observe::begun::{self, Kind, Mark};
use crate::observe::built_batches::{self, Change};
use crate::observe::fail_open::guard;
use crate::recorder::current;

pub(super) static ENTRIES: [Entry; 12] = [
    decode_real::ENTRY,
    encode_real::ENTRY,
    process_real::ENTRY,
    batch_add_real::ENTRY,
    batch_add_token_real::ENTRY,
    batch_add_embd_real::ENTRY,
    batch_add_seq_real::ENTRY,
    batch_set_pos_real::ENTRY,
    batch_set_logits_real::ENTRY,
    batch_set_embd_real::ENTRY,
    batch_clear_real::ENTRY,
    batch_free_real::ENTRY,
];

/// What libllama gives back for a batch that it cannot compute.
const NOT_COMPUTED: c_int = -1;

/// A function that takes a batch by value.
macro_rules! takes_batch {
    ($symbol:ident, $real:ident, $body:ident, $function:expr) => {
        $crate::arch::words_around_struct! {
            [context], takes_batch! { $symbol, $real, $body, $function }
        }
    };
    (
        @before [$($before:ident)*] @behind [$($behind:ident)*]
        $symbol:ident, $real:ident, $body:ident, $function:expr
    ) => {
        entry!($symbol, $real:
            fn(
                Pointer,
                $(takes_batch!(@type $before),)*
                StructByValue
                $(, takes_batch!(@type $behind))*
            ) -> c_int,
            $body);

        unsafe extern "C-unwind" fn $body(
            context: Pointer,
            $($before: Word,)*
            batch: StructByValue,
            $($behind: Word,)*
        ) -> c_int {
            let Some(real) = $real::find() else { return NOT_COMPUTED };
            let facts = || {
                let proof = llama::proof_for(real as usize);
                // SAFETY: the program calls this very function with the batch.
                unsafe { BatchFacts::read(batch.words(), proof) }
            };
            // SAFETY: what the program would have called, with what it passed.
            let call = || unsafe { real(context, $($before,)* batch $(, $behind)*) };
            compute($function, context, facts, call)
        }
    };
    (@type $word:ident) => { Word };
}

takes_batch!(llama_decode, decode_real, decode, BatchFunction::Decode);
takes_batch!(llama_encode, encode_real, encode, BatchFunction::Encode);

passing_all_on!(llama_process, process_real:
    process(context: Pointer, kind: Word, batch: Pointer) -> c_int, otherwise NOT_COMPUTED);

/// The same for a batch that the program built.
fn process(
    real: Real<impl FnOnce() -> c_int>,
    context: Pointer,
    kind: Word,
    batch: Pointer,
) -> c_int {
    const ENCODE: i32 = 0;
    let function =
        if number(kind) == ENCODE { BatchFunction::Encode } else { BatchFunction::Decode };
    compute(function, context, || built_batches::facts(batch), || real.call())
}

fn compute(
    function: BatchFunction,
    context: Pointer,
    facts: impl FnOnce() -> BatchFacts,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let mark = Mark::new(Kind::Call);
    begun::end_left(mark.frame());
    let call =
        guard(None, |this| ThreadInCall::enter(this, mark.frame(), function, context, facts));
    let status = real();
    call.into_iter().for_each(|call| call.finish(status));
    status
}

passing_all_on!(llama_batch_ext_add, batch_add_real:
    batch_add(batch: Pointer, sequence: Word) -> Word, otherwise NOT_COMPUTED as Word);
passing_all_on!(llama_batch_ext_add_token, batch_add_token_real:
    batch_add(batch: Pointer, sequence: Word) -> Word, otherwise NOT_COMPUTED as Word);

fn batch_add(real: Real<impl FnOnce() -> Word>, batch: Pointer, sequence: Word) -> Word {
    let result = real.call();
    let (sequence, row) = (number(sequence), number(result));
    built(batch, Change::Row { sequence, row, is_embedding: false });
    result
}

/// The embedding is passed by value.
macro_rules! takes_embedding {
    (@before [$($before:ident)*] @behind [$($behind:ident)*]) => {
        entry!(llama_batch_ext_add_embd, batch_add_embd_real:
            fn(
                Pointer,
                Word,
                $(takes_embedding!(@type $before),)*
                StructByValue
                $(, takes_embedding!(@type $behind))*
            ) -> c_int,
            batch_add_embd);

        unsafe extern "C-unwind" fn batch_add_embd(
            batch: Pointer,
            sequence: Word,
            $($before: Word,)*
            embedding: StructByValue,
            $($behind: Word,)*
        ) -> c_int {
            let Some(real) = batch_add_embd_real::find() else { return NOT_COMPUTED };
            // SAFETY: what the program would have called, with what it passed.
            let call = || unsafe { real(batch, sequence, $($before,)* embedding $(, $behind)*) };
            let row = call();
            let sequence = number(sequence);
            built(batch, Change::Row { sequence, row, is_embedding: true });
            row
        }
    };
    (@type $word:ident) => { Word };
}
words_around_struct!([batch sequence], takes_embedding! {});

passing_all_on!(llama_batch_ext_add_seq, batch_add_seq_real:
    batch_add_seq(batch: Pointer, row: Word, sequence: Word) -> Word, otherwise 0);

fn batch_add_seq(
    real: Real<impl FnOnce() -> Word>,
    batch: Pointer,
    row: Word,
    sequence: Word,
) -> Word {
    let result = real.call();
    built(batch, Change::Sequence { row: number(row), sequence: number(sequence) });
    result
}

passing_all_on!(llama_batch_ext_set_pos, batch_set_pos_real:
    batch_set_pos(batch: Pointer, row: Word, place: Word) -> Word, otherwise 0);

fn batch_set_pos(
    real: Real<impl FnOnce() -> Word>,
    batch: Pointer,
    row: Word,
    place: Word,
) -> Word {
    let address = real.address;
    let is_set = real.call();
    if !is_true(is_set) || !current::is_on() {
        return is_set;
    }
    let change = |position: i32| Change::Position { row: number(row), position };
    // SAFETY: the program has just made this call.
    if let Some(position) = unsafe { llama::position_set_where_last(place) } {
        built_batches::note(batch, change(position));
        return is_set;
    }
    guard((), |this| {
        // SAFETY: as above.
        let position = unsafe { llama::position_set(address, batch, row, place) };
        let change = position.map(change);
        change.into_iter().for_each(|it| built_batches::note_guarded(this, batch, it));
    });
    is_set
}

passing_all_on!(llama_batch_ext_set_output_logits, batch_set_logits_real:
    batch_set_output(batch: Pointer, row: Word, wanted: Word) -> Word, otherwise 0);
passing_all_on!(llama_batch_ext_set_output_embd, batch_set_embd_real:
    batch_set_output(batch: Pointer, row: Word, wanted: Word) -> Word, otherwise 0);

fn batch_set_output(
    real: Real<impl FnOnce() -> Word>,
    batch: Pointer,
    row: Word,
    wanted: Word,
) -> Word {
    let result = real.call();
    // The other kind of result may be wanted all the same.
    if is_true(wanted) {
        built(batch, Change::Output { row: number(row) });
    }
    result
}

passing_all_on!(llama_batch_ext_clear, batch_clear_real:
    batch_clear(batch: Pointer) -> Word, otherwise 0);

fn batch_clear(real: Real<impl FnOnce() -> Word>, batch: Pointer) -> Word {
    let result = real.call();
    built(batch, Change::Clear);
    result
}

passing_all_on!(llama_batch_ext_free, batch_free_real: batch_free(batch: Pointer));

/// Before the address may belong to another.
fn batch_free(real: Real<impl FnOnce()>, batch: Pointer) {
    if current::is_on() {
        guard((), |_| built_batches::free(batch));
    }
    real.call();
}

/// Notes a step of building a batch, where that can ever matter.
#[inline(always)]
fn built(batch: Pointer, change: Change) {
    if current::is_on() {
        built_batches::note(batch, change);
    }
}
