//! The JSON of ggml's in-tree profiler, all generations, and what ggprof adds to it.
//!
//! Generations differ in how a record describes tensors: the first has `ne`, the second
//! `ne_src0..2`, the third `ne_src`/`nb_src`/`type_src`, the tensor's name and parameters. Each
//! record shows its generation by itself; the file's `version` is only reported.
//!
//! Reading is streamed: the file passes through one window (`window.rs`), whose content is cut into
//! values (`scan.rs`). A record whose description was seen before takes the fast path
//! (`fast_record.rs`); any other is parsed in full (`record.rs`).

mod coverage;
mod fast_record;
mod fusion;
mod header;
mod placement;
mod processes;
mod reader;
mod record;
mod scan;
mod sub_ops;
mod window;
mod writer;

pub use reader::read;
pub use writer::write;
