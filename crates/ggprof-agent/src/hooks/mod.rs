//! The functions ggml calls in place of its own. Each is thin: observe, call the
//! real function exactly once, observe. What the pointers mean is `observe`'s
//! to know.
//!
//! All are `extern "C-unwind"`: ggml's C++ exceptions pass through them.

pub(crate) mod abort_callback;
pub(crate) mod backend_table;
mod barrier;
pub(crate) mod cpu_ops;
pub(crate) mod cuda_calls;
pub(crate) mod cupti;
pub(crate) mod device_nodes;
pub(crate) mod entry;
mod inline_ops;
pub(crate) mod late;
pub(crate) mod library;
pub(crate) mod linked_in;
pub(crate) mod opened;
mod process_end;
pub(crate) mod real_function;
pub(crate) mod shim;
mod turn;
mod unloading;
pub(crate) mod vulkan;
