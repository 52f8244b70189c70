//! The formats a recording is read from and written to, one file each.

pub mod chrome;
pub mod csv;
pub mod ggml_json;
mod input;
mod lanes;
pub mod op_lines;
mod packing;
pub mod perfetto;
pub mod pprof;
mod protobuf;
pub mod spool;
pub mod timeline;
mod zstd_frames;

pub use ggprof_spool::bytes::{Bytes, FileBytes};
pub use input::{ReadError, copy_recording, read, read_source};
pub use packing::Packing;
