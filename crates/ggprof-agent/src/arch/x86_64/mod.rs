//! x86-64 with the System V calling convention.

pub(crate) mod arguments;
pub(crate) mod barrier;
pub(crate) mod direct_calls;
pub(crate) mod entry_code;
pub(crate) mod hidden_names;
pub(crate) mod instructions;
pub(crate) mod layout;
pub(crate) mod node_question;
pub(crate) mod registers;
pub(crate) mod stand_ins;
pub(crate) mod steps;
pub(crate) mod thread_memory;
