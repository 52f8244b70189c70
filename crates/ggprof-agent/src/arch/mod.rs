//! Everything that depends on the processor: its instructions and registers, its calling convention
//! and its thread-local memory. Each processor has its own folder, which provides the same names.

/// For macros, which resolve their parts where they are used; all other code uses the names below.
#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

mod made_struct;
mod unknown_calls;

#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

use processor::steps::step;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("the agent's stand-ins are written for x86-64 and aarch64");

/// Functions that note something and pass all their arguments on to another function.
pub(crate) use processor::barrier::barrier_stand_in;
pub(crate) use processor::node_question::node_question;
pub(crate) use processor::stand_ins::{
    ENTRIES_APART, jump_to, note_caller_then_jump, note_way_past_then_jump, numbered_entries,
    stand_in,
};

/// Symbols of this library that lead to another function.
pub(crate) use processor::hidden_names::hidden_names;

/// Memory of each thread that is found without a call.
pub(crate) use processor::thread_memory::thread_memory;

/// The processor's time counter, prefetch hints, and new code.
pub(crate) use processor::instructions::{
    CLOCK_SOURCE, ask_to_read, ask_to_write, cycles, publish_code,
};

/// Foreign code: what it calls, and how it is changed.
pub(crate) use processor::direct_calls::{calls, jumps_into};
pub(crate) use processor::entry_code::{
    EntryCode, JUMP, JUMP_REACH, MOST_CHANGED, WAY_IN, jump_anywhere, jump_telling_way_past,
};

pub(crate) use unknown_calls::calls_unknown;

/// What the linker and the calling convention define.
pub(crate) use made_struct::MakesStruct;
pub(crate) use processor::arguments::{words_around_struct, words_beside};
pub(crate) use processor::layout::{
    BehindSix, StructByValue, Word, caller_of, go_on_in, is_call_of, is_function_slot, own_bounds,
    sixth_behind_two_sizes,
};
