//! The model of a recording, and the formats it is read from and written to.
//!
//! Everything downstream (analysis, reports, the viewer) works on one [`Trace`];
//! everything upstream (a ggml profiler JSON, the agent's spool) is turned into one.
//! This crate does no I/O outside [`formats`], reads no clock and prints nothing.

#![forbid(unsafe_code)]

mod divisor;
mod done;
pub mod formats;
mod gaps;
pub mod graph_runs;
mod merge;
pub mod model;
mod selection;
#[cfg(any(test, feature = "text-fixture"))]
pub mod text_fixture;

pub use divisor::Divisor;
pub use done::done;
pub use merge::{CannotMerge, merge};
pub use model::*;
