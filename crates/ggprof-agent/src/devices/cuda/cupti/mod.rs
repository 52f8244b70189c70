//! NVIDIA's tracing library, found and loaded at run time: the agent is built and loaded without
//! any part of CUDA.
//!
//! `raw` holds the names, numbers and layouts of CUPTI, `calls` makes its functions fallible, and
//! `session` is what the rest of the folder uses. `records` reads what CUPTI delivers; `library`
//! finds the file.

mod calls;
pub(crate) mod library;
pub(crate) mod raw;
pub(crate) mod records;
pub(crate) mod session;

pub(crate) use calls::Cupti;
