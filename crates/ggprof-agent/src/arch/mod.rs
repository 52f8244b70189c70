//! All that depends on the processor: the one place where its instructions and registers, its rules
//! for calls and its thread-local memory are named. Another processor gets a folder of its own that
//! provides the same names.

/// For macros, which look their own pieces up from where they are used; others use what is below.
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the agent's shims are written for x86-64");

/// Functions of which every argument reaches another one, and what is written down on the way.
pub(crate) use x86_64::barrier::barrier_stand_in;
pub(crate) use x86_64::node_question::node_question;
pub(crate) use x86_64::stand_ins::{
    ENTRIES_APART, jump_to, note_caller_then_jump, note_way_past_then_jump, numbered_entries,
    stand_in,
};

/// Names of this library's own that lead on to another function.
pub(crate) use x86_64::hidden_names::hidden_names;

/// Memory of each thread that is found without a call.
pub(crate) use x86_64::thread_memory::thread_memory;

/// The processor's counter of time, and hints of what will be needed.
pub(crate) use x86_64::instructions::{CLOCK_SOURCE, ask_to_read, ask_to_write, cycles};

/// Code of others: where it leads, and how it is changed.
pub(crate) use x86_64::direct_calls::calls;
pub(crate) use x86_64::entry_code::{
    EntryCode, JUMP, JUMP_REACH, MOST_CHANGED, WAY_IN, jump_anywhere, jump_telling_way_past,
};

/// What the linker and the rules for calls say.
pub(crate) use x86_64::layout::{
    MakesStruct, OnStack, StructOnStack, Word, caller_of, is_function_slot, own_bounds,
    sixth_behind_two_sizes,
};
