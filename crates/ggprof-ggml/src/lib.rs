//! What ggml does by convention and no call of its API tells: which nodes of a graph are passed
//! over, what an op touches of its tensors, how
//! the scheduler names its copies and libllama its caches, what `GGML_PROFILE` asks for.
//!
//! Whoever needs such a rule asks here, inside the program and behind the recording alike, so that
//! they cannot disagree. Layouts of structs are no conventions: the agent probes them.

#![forbid(unsafe_code)]

mod cache_name;
mod copy_name;
mod nodes;
mod profile_variable;
mod touched;

pub use cache_name::is_of_cache;
pub use copy_name::copied_tensor;
pub use nodes::{computes, is_marked, is_wanted};
pub use profile_variable::{PROFILE_VARIABLE, profile_file};
pub use touched::{Touched, touched};
