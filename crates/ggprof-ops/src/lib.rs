//! Single ops on any libggml, through its public C API and nothing else.
//!
//! All of this runs in a process of its own, which the command starts for each library or op: a
//! library may end its process whenever something is not to its liking.

mod library;
mod numbers;

pub use numbers::list as list_numbers;
