//! The functions that ggml calls in place of its own. Each is thin: observe, call the real function
//! exactly once, observe. What the pointers mean is up to `observe`.
//!
//! A *stand-in* is such a function of ours. A *hook* is the place that was changed so that calls
//! arrive at it: an exported symbol, a slot, an entry of a backend's table, the first bytes of a
//! function.
//!
//! All are `extern "C-unwind"`, because ggml's C++ exceptions pass through them.

mod abort_callback;
mod asked_for;
mod backend_table;
mod barrier;
pub(crate) mod cpu_ops;
pub(crate) mod device_nodes;
pub(crate) mod entry;
mod inline_ops;
pub(crate) mod late;
pub(crate) mod library;
pub(crate) mod linked_in;
pub(crate) mod opened;
pub(crate) mod real_function;
mod sockets;
mod turn;
mod unloading;

use crate::observe::backend_hooks::BackendHooks;

/// What `observe` puts into backends and their libraries.
pub(crate) static BACKEND_HOOKS: BackendHooks = BackendHooks {
    graph_compute: backend_table::graph_compute,
    cpy_tensor_async: backend_table::cpy_tensor_async,
    free: backend_table::free,
    ops: library::hook_ops,
    nodes: device_nodes::hook,
};
