//! The meaning of the pointers that hooks are given.
//!
//! * `this_thread`, `fail_open`: what is kept per thread, and the guard around all that is done;
//! * `lane_memory`: what is known of nodes and copies, kept per lane;
//! * `instance`: a copy of ggml in this process;
//! * `backends`, `backend_facts`, `schedulers`: its long-lived objects;
//! * `buffers`: the memory that tensors are in;
//! * `backend_hooks`: what is put into them;
//! * `batches`, `built_batches`, `contexts`: what the program hands to libllama, and its memory;
//! * `run`, `split`: a graph being computed, and one backend's part of it;
//! * `graph`, `node`: nodes into descriptions, cheaply when seen before;
//! * `cpu_op`: a thread's share of a node;
//! * `ticking`, `ticks`: nodes of a library that shows only how many it has computed;
//! * `device_api`: the interface to the APIs with which devices get their work;
//! * `budget`: how much time sampling may take;
//! * `visits`: the node a device's library works on;
//! * `memory_kinds`: what sort of memory a tensor is in;
//! * `placement`: why the processor computes a node and not a device;
//! * `copies`, `known_copies`: tensors moved between backends, cheaply when seen before;
//! * `serialize`: one node at a time, when asked for.

mod backend_facts;
pub(crate) mod backend_hooks;
pub(crate) mod backends;
pub(crate) mod batches;
pub(crate) mod budget;
pub(crate) mod buffers;
pub(crate) mod built_batches;
pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod cpu_op;
pub(crate) mod device_api;
mod devices;
pub(crate) mod fail_open;
pub(crate) mod graph;
pub(crate) mod instance;
pub(crate) mod known_copies;
mod lane_memory;
mod memory_kinds;
pub(crate) mod node;
mod placement;
pub(crate) mod run;
pub(crate) mod schedulers;
pub(crate) mod serialize;
pub(crate) mod split;
pub(crate) mod this_thread;
pub(crate) mod ticking;
pub(crate) mod ticks;
pub(crate) mod visits;
