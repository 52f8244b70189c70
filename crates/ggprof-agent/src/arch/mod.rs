//! Everything that depends on the processor: its instructions and registers, its calling convention
//! and its thread-local memory. Another processor gets its own folder, which provides the same
//! names.

/// For macros, which resolve their parts where they are used; all other code uses the names below.
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the agent's shims are written for x86-64");

/// Functions that note something and pass all their arguments on to another function.
pub(crate) use x86_64::barrier::barrier_stand_in;
pub(crate) use x86_64::node_question::node_question;
pub(crate) use x86_64::stand_ins::{
    ENTRIES_APART, jump_to, note_caller_then_jump, note_way_past_then_jump, numbered_entries,
    stand_in,
};

/// Symbols of this library that lead to another function.
pub(crate) use x86_64::hidden_names::hidden_names;

/// Memory of each thread that is found without a call.
pub(crate) use x86_64::thread_memory::thread_memory;

/// The processor's time counter, and prefetch hints.
pub(crate) use x86_64::instructions::{CLOCK_SOURCE, ask_to_read, ask_to_write, cycles};

/// Foreign code: what it calls, and how it is changed.
pub(crate) use x86_64::direct_calls::calls;
pub(crate) use x86_64::entry_code::{
    EntryCode, JUMP, JUMP_REACH, MOST_CHANGED, WAY_IN, jump_anywhere, jump_telling_way_past,
};

/// What the linker and the calling convention define.
pub(crate) use x86_64::layout::{
    MakesStruct, OnStack, StructOnStack, Word, caller_of, is_function_slot, own_bounds,
    sixth_behind_two_sizes,
};
