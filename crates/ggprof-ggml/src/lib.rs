//! Conventions of ggml that no call of its API reveals: which nodes of a graph are skipped, which
//! multiply matrices or attend to a cache, which parts of its tensors an op touches, how the scheduler names its
//! copies, libllama its weights and caches and backends their devices, their memory and their servers, and what the values of `GGML_PROFILE` mean.
//!
//! The agent and the readers both use these rules, so they cannot disagree. Struct layouts are not
//! conventions: the agent probes them.

#![forbid(unsafe_code)]

mod attention;
mod cache_name;
mod copy_name;
mod device_name;
mod memory_name;
mod nodes;
mod profile_variable;
mod remote_name;
mod touched;
mod weight_name;

pub use attention::{AttentionStep, SOFT_MAX, WHOLE_ATTENTION, attention_step};
pub use cache_name::{CACHED_KEYS, CACHED_VALUES, is_of_cache};
pub use copy_name::copied_tensor;
pub use device_name::{DeviceInterface, device_interface};
pub use memory_name::is_pinned;
pub use nodes::{computes, is_input, is_marked, is_matrix_product, is_wanted};
pub use profile_variable::{PROFILE_VARIABLE, PROFILE_VARIABLE_IN_C, profile_file};
pub use remote_name::endpoint;
pub use touched::{Touched, touched};
pub use weight_name::{is_of_experts, is_weight, layer_of_weight};
