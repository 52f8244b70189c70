//! NVIDIA's tracing library, found and loaded at run time: nothing of CUDA is
//! needed to build the agent or to load it.
//!
//! Three storeys: `raw` holds the names, numbers and layouts of CUPTI, `calls`
//! turns its functions into ones that can fail, and `session` is what the rest of
//! the folder uses. `records` reads what CUPTI delivers; `library` finds the file.

mod calls;
pub(crate) mod library;
pub(crate) mod raw;
pub(crate) mod records;
pub(crate) mod session;

pub(crate) use calls::Cupti;
