//! ggml's functions and struct layouts, and libllama's. Nothing here is fixed per version: functions
//! are looked up by name in the target, and `probe` finds offsets in child processes (`rehearsal`).

pub(crate) mod api;
pub(crate) mod backend_table;
pub(crate) mod batch_facts;
pub(crate) mod graph;
pub(crate) mod in_place;
mod kept_signals;
pub(crate) mod llama;
pub(crate) mod loader;
pub(crate) mod one_node;
pub(crate) mod probe;
pub(crate) mod rehearsal;
pub(crate) mod tensor;
pub(crate) mod versions;
pub(crate) mod which_ggml;
